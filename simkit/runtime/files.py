"""Files that are either whole or absent: atomic writes, and array archives that notice any damage."""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


class DamagedFileError(Exception):
    """A file whose bytes are not what was written."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one, never a part.

    Args:
        path: where; its folder must exist.
        data: the whole content.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
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


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs, atomically."""
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        DamagedFileError: if the file is missing or is not a JSON object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise DamagedFileError(f"{path}: not a JSON object")
    return value


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays as an uncompressed ``.npz``, atomically and with the same bytes for the same arrays.

    Args:
        path: where.
        arrays: ``{name: array}`` without object arrays; the archive keeps a checksum of each.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote, verifying every checksum and declared size before any memory is taken.

    Raises:
        DamagedFileError: if the file is missing, truncated or altered, or is not such an archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in archive.infolist()}
    except (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DamagedFileError(f"{path}: {error}") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type != zipfile.ZIP_STORED or not info.filename.endswith(".npy"):
        raise ValueError(f"member '{info.filename}' is not a stored array")
    data = archive.read(info)  # verifies the checksum
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"member '{info.filename}' does not hold the array it declares")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
