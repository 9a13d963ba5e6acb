"""Atomic file writes, and JSON files with checksums."""

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simkit.errors import UserError
from simkit.storage.regular_files import check_regular, open_regular

# A manifest lists the coordinates of a grid, rarely more than a megabyte.
MAX_JSON_BYTES = 64 * 2**20

_LEFTOVER = re.compile(r"\..+\.\d+\.tmp")


class DamagedFileError(Exception):
    """A file whose bytes have changed since it was written, or that is from another run."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: a crash at any moment leaves the old or the new file, never a part of one.

    Args:
        path: file to write, in an existing folder.
        data: the complete content.

    Raises:
        UserError: if the file cannot be written (a full disk, no permission), or the path is a link, folder, pipe or
            device; the old content is unchanged.
    """
    # Processes on two machines that share a folder may have the same process id.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{int.from_bytes(os.urandom(4)):010}.tmp")
    try:
        check_regular(path)
        with open_regular(temporary, "xb") as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; make room or change permissions, then try again"
        ) from None


def make_folder(folder: Path) -> None:
    """Create a folder for results, if it does not exist.

    Args:
        folder: the user's ``output``, or a folder in it.

    Raises:
        UserError: if the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; choose another folder with output=") from None


def is_leftover(name: str) -> bool:
    """Return whether a file name is that of a temporary file of `write_bytes`."""
    return _LEFTOVER.fullmatch(name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that `write_bytes` leaves behind when its process is killed.

    Args:
        folder: a folder to which no other process writes.
    """
    for leftover in folder.glob(".*.tmp"):
        if is_leftover(leftover.name) and leftover.is_file() and not leftover.is_symlink():
            leftover.unlink(missing_ok=True)


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        DamagedFileError: if the file is missing or cannot be read.
        UserError: if the path is not a regular file.
    """
    try:
        with open_regular(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise DamagedFileError(f"{path}: {error.strerror or error}") from None


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically.

    Args:
        path: file to write.
        value: plain data; NaN and infinity, which JSON lacks, become null.
    """
    write_bytes(path, (json.dumps(_finite(value), indent=2, allow_nan=False) + "\n").encode())


def write_sealed_json(path: Path, value: Mapping[str, Any], run: str) -> None:
    """Write JSON with the identity of its run and a checksum.

    Args:
        path: file to write.
        value: as for `write_json`, without the keys ``run`` and ``checksum``.
        run: identity of the run.
    """
    plain = _finite({**value, "run": run})
    write_json(path, {**plain, "checksum": checksum(plain)})


def read_sealed_json(path: Path, run: str) -> dict[str, Any]:
    """Read a file of `write_sealed_json`.

    Args:
        path: file to read.
        run: required identity of the run.

    Raises:
        DamagedFileError: if the file is missing, altered, or from another run.
        UserError: if the path is not a regular file.
    """
    value = read_json(path)
    if value.pop("checksum", None) != checksum(value):
        raise DamagedFileError(f"{path}: its checksum does not match its content")
    if value.pop("run", None) != run:
        raise DamagedFileError(f"{path}: it is from another run")
    return value


def checksum(value: Mapping[str, Any], text: str = "") -> str:
    """Return the SHA-256 checksum of plain data and a text.

    Args:
        value: plain data.
        text: text appended to the JSON of the data.
    """
    return f"sha256 {hashlib.sha256((json.dumps(value, sort_keys=True) + text).encode()).hexdigest()}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        DamagedFileError: if the file is missing, is over 64 MiB or is not a JSON object.
        UserError: if the path is not a regular file.
    """
    try:
        with open_regular(path, "rb") as file:
            data = file.read(MAX_JSON_BYTES + 1)
        if len(data) > MAX_JSON_BYTES:
            raise ValueError("it is over 64 MiB")
        value = json.loads(data.decode())
    except RecursionError:
        raise DamagedFileError(f"{path}: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(value, dict):
        raise DamagedFileError(f"{path}: not a JSON object")
    return value
