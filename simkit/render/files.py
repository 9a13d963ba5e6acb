"""Atomic writes of picture files."""

import fcntl
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simkit.errors import UserError
from simkit.storage.regular_files import check_regular, open_regular


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name to write to; the file is renamed to ``path`` on success and removed on any error.

    Temporary files of killed writers of the same file are removed as well.

    Args:
        path: path of the file; an existing file is replaced, and its folder must exist.

    Raises:
        UserError: if the file cannot be written, or ``path`` is a link, folder, pipe or device.
    """
    path = Path(path)
    check_regular(path)
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path.name}: there is no folder '{path.parent}'; create it first")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove_abandoned(path.parent, glob.escape(path.name))
    try:
        with open_regular(partial, "xb") as held:
            try:
                # The operating system releases the lock when this process ends, even if it is killed.
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield partial
                if not partial.is_file() or partial.stat().st_size == 0:
                    raise UserError(f"cannot write {path.name}: no data was written")
                os.fsync(held.fileno())
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error


def remove_abandoned(folder: Path, name: str = "*") -> None:
    """Remove temporary files of killed writers; those of running writers, which are locked, are kept.

    Args:
        folder: folder of the files.
        name: glob pattern of the final file name.
    """
    for partial in folder.glob(f".{name}.*.partial"):
        # A file that cannot be opened or removed belongs to another user, or has been removed by another process.
        with suppress(OSError, UserError), open_regular(partial, "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            partial.unlink()
