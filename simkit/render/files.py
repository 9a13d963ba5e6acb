"""Atomic writing of picture files."""

import fcntl
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simkit.errors import UserError
from simkit.storage.regular_files import check_regular, open_new, open_to_lock


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; on success the file gets its real name, on any error it is removed.

    What writers of the same file left when they were killed is removed too.

    Args:
        path: where the file will be; an existing file is replaced, and its folder must exist.

    Raises:
        UserError: if the file cannot be written, or a link, folder, pipe or device is in its place.
    """
    path = Path(path)
    check_regular(path)
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path.name}: there is no folder '{path.parent}'; create it first")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove_abandoned(path.parent, glob.escape(path.name))
    try:
        with open_new(partial) as held:
            try:
                # The system lets go of it when this process ends, however it ends.
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield partial
                if not partial.is_file() or partial.stat().st_size == 0:
                    raise UserError(f"cannot write {path.name}: nothing came out")
                os.fsync(held.fileno())
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error


def remove_abandoned(folder: Path, name: str = "*") -> None:
    """Remove what `whole_file` leaves when its process is killed; what a living one writes stays.

    Args:
        folder: where files were being written.
        name: pattern of what the file was to be called.
    """
    for partial in folder.glob(f".{name}.*.partial"):
        # A file that cannot be opened or removed belongs to another user, and one that is gone needs no more.
        with suppress(OSError, UserError), open_to_lock(partial) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()
