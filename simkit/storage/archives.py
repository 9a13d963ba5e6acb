"""Sealed array archives: ``.npz`` files with a checksum and the identity of their run and file."""

import dataclasses
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from simkit.errors import UserError
from simkit.storage.files import DamagedFileError, write_bytes
from simkit.storage.regular_files import open_regular


@dataclasses.dataclass(frozen=True)
class Seal:
    """The identity of an archive, its run and its file; verified when the archive is read.

    Attributes:
        run: identity of the run, hexadecimal; ``"0"`` for arrays outside any run directory.
        file: content of the file, such as ``"segment 3"``.
    """

    run: str = "0"
    file: str = "arrays"

    def of(self, file: str) -> "Seal":
        """Return the seal of a part of this file, such as a segment of a chunk."""
        return Seal(self.run, file if self.file == Seal.file else f"{file} of {self.file}")


UNBOUND = Seal()


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names, types and shapes of the arrays in an archive.

    Attributes:
        arrays: ``{name: (dtype, shape)}``; a length given as a word is free, but equal wherever the word is used.
        optional: names that may be missing.
    """

    arrays: Mapping[str, tuple[str, tuple[int | str, ...]]]
    optional: frozenset[str] = frozenset()

    def check(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        """Check names, types and shapes of the arrays in a file.

        Args:
            path: file, named in the error.
            arrays: arrays read from the file.

        Raises:
            DamagedFileError: naming the first difference.
        """
        missing, odd = set(self.arrays) - self.optional - set(arrays), set(arrays) - set(self.arrays)
        if missing or odd:
            raise DamagedFileError(
                f"{path}: it {f'lacks the array {min(missing)}' if missing else f'holds the unknown array {min(odd)}'}"
            )
        lengths: dict[str, int] = {}
        for name, array in arrays.items():
            dtype, shape = self.arrays[name]
            expected = tuple(
                lengths.setdefault(length, found) if isinstance(length, str) else length
                for length, found in zip(shape, array.shape, strict=False)
            )
            if array.ndim != len(shape) or array.shape != expected or array.dtype.str != np.dtype(dtype).str:
                raise DamagedFileError(
                    f"{path}: array {name} is {array.dtype}{array.shape}, not "
                    f"{dtype}({', '.join(str(length) for length in shape)})"
                )


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], seal: Seal = UNBOUND) -> None:
    """Write named arrays as an uncompressed ``.npz``, atomically and with the same bytes for the same arrays and seal.

    Args:
        path: file to write.
        arrays: ``{name: array}`` without object arrays.
        seal: identity of the file.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    write_bytes(path, sealed(buffer.getvalue(), seal))


# A zip archive ends with a comment, preceded by its length. Ours holds the seal and a checksum of all bytes before it;
# the checksums of zip itself cover the members, but not the directory of the archive.
_COMMENT = re.compile(rb"run ([0-9a-f]+), ([a-z0-9 ]+), crc32 ([0-9a-f]{8})")
_CRC = 8


def sealed(archive: bytes, seal: Seal) -> bytes:
    """Return a zip archive with its seal and checksum appended as the comment.

    Args:
        archive: bytes of a zip archive without a comment.
        seal: identity of the file.
    """
    words = f"run {seal.run}, {seal.file}, crc32 ".encode()
    body = archive[: -len(struct.pack("<H", 0))] + struct.pack("<H", len(words) + _CRC) + words
    return body + f"{zlib.crc32(body):08x}".encode()


def read_arrays(path: Path, seal: Seal = UNBOUND, layout: Layout | None = None) -> dict[str, np.ndarray]:
    """Read an archive of `write_arrays`; seal, checksum and declared sizes are verified before memory is allocated.

    Args:
        path: file to read.
        seal: required identity of the file.
        layout: required arrays; ``None`` accepts any.

    Raises:
        DamagedFileError: if the file is missing, truncated, altered, from elsewhere, or not such an archive.
        UserError: if the path is not a regular file.
    """
    try:
        with open_regular(path, "rb") as file:
            _verify(file, seal)
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if sum(info.file_size for info in members) > os.fstat(file.fileno()).st_size:
                    raise ValueError("it declares more data than it contains")
                arrays = {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}
        if len(arrays) != len(members):
            raise ValueError("it holds an array twice")
    except UserError:
        raise
    except Exception as error:  # zipfile and numpy raise many types of errors on malformed bytes
        raise DamagedFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if layout is not None:
        layout.check(path, arrays)
    return arrays


def run_of(path: Path) -> str | None:
    """Return the identity of the run in an archive's seal, or ``None`` if the archive has no readable seal.

    Args:
        path: archive to read.

    Raises:
        UserError: if the path is not a regular file.
    """
    try:
        with open_regular(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - 256, 0))
            found = re.search(_COMMENT.pattern + rb"\Z", file.read())
    except OSError:
        return None
    return found[1].decode() if found else None


def _verify(file: BinaryIO, seal: Seal) -> None:
    left, crc, tail = os.fstat(file.fileno()).st_size - _CRC, 0, b""
    while left > 0 and (block := file.read(min(left, 2**20))):
        crc, left, tail = zlib.crc32(block, crc), left - len(block), (tail + block)[-256:]
    # The end record of the archive itself cannot match the pattern of the comment.
    found = re.search(_COMMENT.pattern + rb"\Z", tail + file.read())
    if not found or int(found[3], 16) != crc:
        raise ValueError("its checksum does not match its content")
    run, kept = found[1].decode(), found[2].decode()
    if run != seal.run:
        raise ValueError("it is from another run")
    if kept != seal.file:
        raise ValueError(f"it is {kept} of this run, not {seal.file}")
    file.seek(0)


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
