"""Files that are either whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simkit.errors import UserError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; on success the file gets its real name, on any error it is removed.

    Args:
        path: where the file will be; an existing file is replaced, and its folder must exist.

    Raises:
        UserError: if the file cannot be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path.name}: there is no folder '{path.parent}'; create it first")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        if not partial.is_file() or partial.stat().st_size == 0:
            raise UserError(f"cannot write {path.name}: nothing came out")
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
