"""Access to regular files only: no links followed, no truncation on opening, no waiting on pipes or devices."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from simkit.errors import UserError

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_FLAGS = {"rb": os.O_RDONLY, "rb+": os.O_RDWR | os.O_CREAT, "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL}
# Opening a pipe or device must not block, and a link created after `lstat` must not be followed.
_GUARDED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def check_regular(path: Path) -> bool:
    """Return whether a regular file exists; its folder may be missing.

    Raises:
        UserError: if the path is a link, folder, pipe or device.
    """
    return _exists(path, stat.S_ISREG, "file")


def check_folder(path: Path) -> bool:
    """Return whether a folder exists.

    Raises:
        UserError: if the path is anything else, such as a link to a folder.
    """
    return _exists(path, stat.S_ISDIR, "folder")


def open_regular(path: Path, mode: Literal["rb", "rb+", "xb"]) -> BinaryIO:
    """Open a regular file; every file of a run directory is opened here.

    Args:
        path: path of the file.
        mode: ``"rb"`` to read it; ``"rb+"`` to lock it without changing its content, creating a missing one; ``"xb"``
            to write a new file in place of one left by a dead process.

    Raises:
        UserError: if the path is not a regular file.
        OSError: if the file cannot be opened.
    """
    if check_regular(path) and mode == "xb":
        path.unlink()
    descriptor = os.open(path, _FLAGS[mode] | _GUARDED, 0o666)
    try:
        _refuse_unless(stat.S_ISREG, os.fstat(descriptor).st_mode, path, "file")
        return os.fdopen(descriptor, mode.replace("x", "w"))  # type: ignore[return-value]
    except BaseException:
        os.close(descriptor)
        raise


def _exists(path: Path, wanted: Callable[[int], bool], noun: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    _refuse_unless(wanted, mode, path, noun)
    return True


def _refuse_unless(wanted: Callable[[int], bool], mode: int, path: Path, noun: str) -> None:
    if not wanted(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")
        raise UserError(f"{path} is {kind}, and simkit needs a {noun} there; remove or rename it, then try again")
