"""Files that are either whole or absent: atomic writes, and array archives that notice any damage."""

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simkit.errors import UserError


class DamagedFileError(Exception):
    """A file whose bytes are not what was written."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one, never a part.

    Args:
        path: where; its folder must exist.
        data: the whole content.

    Raises:
        UserError: if it cannot be written (a full disk, no permission); the old file is still there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
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
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; make room or change permissions, then try again"
        ) from None


def make_folder(folder: Path) -> None:
    """Make a folder that results are to be written to, unless it is there.

    Args:
        folder: what the user gave with ``--output``, or a place in it.

    Raises:
        UserError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}; choose another folder with --output") from None


def remove_leftovers(folder: Path) -> None:
    """Remove what `write_bytes` leaves in a folder when its process is killed while it writes.

    Args:
        folder: one that no other process writes to.
    """
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people and programs, atomically.

    Args:
        path: where.
        value: plain data; a number that JSON does not know (NaN, infinity) becomes null.
    """
    write_bytes(path, (json.dumps(_finite(value), indent=2, allow_nan=False) + "\n").encode())


def write_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with a checksum of what it says.

    Args:
        path: where.
        value: as for `write_json`, without the key ``checksum``.
    """
    plain = _finite(value)
    write_json(path, {**plain, "checksum": _seal(plain)})


def read_sealed_json(path: Path) -> dict[str, Any]:
    """Read what `write_sealed_json` wrote.

    Raises:
        DamagedFileError: if the file is missing, or says something else than what was written.
    """
    value = read_json(path)
    if value.pop("checksum", None) != _seal(value):
        raise DamagedFileError(f"{path}: its checksum does not fit its content")
    return value


def _seal(value: Mapping[str, Any]) -> str:
    return checksum(json.dumps(value, sort_keys=True).encode())


def checksum(data: bytes) -> str:
    """Return the checksum of bytes, as files note it."""
    return f"crc32 {zlib.crc32(data):08x}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        arrays: ``{name: array}`` without object arrays.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    archive = buffer.getvalue()[: -len(_NO_COMMENT)]
    write_bytes(path, archive + _comment(zlib.crc32(archive)))


# An archive ends with the length of its comment and the comment, which here is a checksum of all bytes before: those
# that zip keeps for each member leave its directory unprotected.
_NO_COMMENT = struct.pack("<H", 0)


def _comment(checksum: int) -> bytes:
    text = f"crc32 {checksum:08x}".encode()
    return struct.pack("<H", len(text)) + text


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote, verifying its checksum and every declared size before any memory is taken.

    Raises:
        DamagedFileError: if the file is missing, truncated or altered, or is not such an archive.
    """
    try:
        _verify_checksum(path)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if sum(info.file_size for info in members) > path.stat().st_size:
                raise ValueError("it declares more than it holds")
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}
    except Exception as error:  # zipfile and numpy raise many kinds on bytes that are not what they should be
        raise DamagedFileError(f"{path}: {error}") from None


def _verify_checksum(path: Path) -> None:
    with path.open("rb") as file:
        left, checksum = os.fstat(file.fileno()).st_size - len(_comment(0)), 0
        while left > 0 and (block := file.read(min(left, 2**20))):
            checksum, left = zlib.crc32(block, checksum), left - len(block)
        if file.read() != _comment(checksum):
            raise ValueError("its checksum does not fit its content")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type != zipfile.ZIP_STORED or not info.filename.endswith(".npy"):
        raise ValueError(f"member '{info.filename}' is not a stored array")
    data = archive.read(info)
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"member '{info.filename}' does not hold the array it declares")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
