"""Regular files only: opened without following links, without truncation and without waiting on pipes or devices."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from simkit.errors import UserError

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
# Opening a pipe or a device must not wait for its other end, and a link that appears after `lstat` is not followed.
_GUARDED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def check_regular(path: Path) -> bool:
    """Return whether there is a file; nothing but a regular file may be in its place.

    Args:
        path: of the file; its folder may be missing.

    Raises:
        UserError: if there is a link, a folder, a pipe or a device instead.
    """
    return _is_there(path, stat.S_ISREG, "file")


def check_folder(path: Path) -> bool:
    """Return whether there is a folder; nothing but a folder may be in its place, nor a link to one.

    Args:
        path: of the folder.

    Raises:
        UserError: if there is something else instead.
    """
    return _is_there(path, stat.S_ISDIR, "folder")


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: of the file.

    Raises:
        UserError: if it is something else than a regular file.
        OSError: if it is missing or cannot be read.
    """
    return _opened(path, os.O_RDONLY, "rb")


def open_to_lock(path: Path) -> BinaryIO:
    """Open a file to lock it, with its content as it is; it is made if it is missing.

    Args:
        path: of the file.

    Raises:
        UserError: if it is something else than a regular file.
        OSError: if it cannot be opened for writing.
    """
    return _opened(path, os.O_RDWR | os.O_CREAT, "rb+")


def open_new(path: Path) -> BinaryIO:
    """Open a new file for writing; a file of that name, left by a process that is gone, is removed first.

    Args:
        path: of a temporary file.

    Raises:
        UserError: if there is something else than a regular file.
        OSError: if it cannot be made.
    """
    if check_regular(path):
        path.unlink()
    return _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "wb")


def _opened(path: Path, flags: int, mode: str) -> BinaryIO:
    check_regular(path)
    descriptor = os.open(path, flags | _GUARDED, 0o666)
    try:
        _refuse_unless(stat.S_ISREG, os.fstat(descriptor).st_mode, path, "file")
        return os.fdopen(descriptor, mode)  # type: ignore[return-value]
    except BaseException:
        os.close(descriptor)
        raise


def _is_there(path: Path, wanted: Callable[[int], bool], noun: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    _refuse_unless(wanted, mode, path, noun)
    return True


def _refuse_unless(wanted: Callable[[int], bool], mode: int, path: Path, noun: str) -> None:
    if not wanted(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")
        raise UserError(f"{path} is {kind} where simkit keeps a {noun}; remove it or rename it, then try again")
