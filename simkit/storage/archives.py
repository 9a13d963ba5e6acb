"""Archives of arrays with checksums and the identity of their run and file."""

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
from simkit.storage.regular_files import open_to_read


@dataclasses.dataclass(frozen=True)
class Seal:
    """Which file of which run an archive is; verified when it is read.

    Attributes:
        run: identity of the run, hexadecimal; ``"0"`` for arrays that belong to no run directory.
        file: what it holds, such as ``"segment 3"``.
    """

    run: str = "0"
    file: str = "arrays"

    def of(self, file: str) -> "Seal":
        """Return the seal of a file that belongs to this one, such as a segment of a chunk."""
        return Seal(self.run, file if self.file == Seal.file else f"{file} of {self.file}")


UNBOUND = Seal()


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names, types and shapes of the arrays in an archive.

    Attributes:
        arrays: ``{name: (dtype, shape)}``; a length that is a word may be any, the same wherever the word stands.
        optional: names that may be missing.
    """

    arrays: Mapping[str, tuple[str, tuple[int | str, ...]]]
    optional: frozenset[str] = frozenset()

    def check(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays that differ.

        Args:
            path: of the file, for the error.
            arrays: what it holds.

        Raises:
            DamagedFileError: that names what differs.
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
        path: where.
        arrays: ``{name: array}`` without object arrays.
        seal: which file of which run it is.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    write_bytes(path, sealed(buffer.getvalue(), seal))


# An archive ends with the length of its comment and the comment. Ours is the seal and a checksum of all bytes before:
# those that zip keeps for each member leave its directory unprotected.
_COMMENT = re.compile(rb"run ([0-9a-f]+), ([a-z0-9 ]+), crc32 ([0-9a-f]{8})")
_CRC = 8


def sealed(archive: bytes, seal: Seal) -> bytes:
    """Return a zip archive without a comment as one with the seal and the checksum.

    Args:
        archive: its bytes.
        seal: which file of which run it is.
    """
    words = f"run {seal.run}, {seal.file}, crc32 ".encode()
    body = archive[: -len(struct.pack("<H", 0))] + struct.pack("<H", len(words) + _CRC) + words
    return body + f"{zlib.crc32(body):08x}".encode()


def read_arrays(path: Path, seal: Seal = UNBOUND, layout: Layout | None = None) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote, verifying seal, checksum and every declared size before any memory is taken.

    Args:
        path: of the file.
        seal: which file of which run it must be.
        layout: which arrays it must hold; ``None`` takes any.

    Raises:
        DamagedFileError: if the file is missing, truncated or altered, belongs elsewhere or is not such an archive.
        UserError: if it is something else than a regular file.
    """
    try:
        with open_to_read(path) as file:
            _verify(file, seal)
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                if sum(info.file_size for info in members) > os.fstat(file.fileno()).st_size:
                    raise ValueError("it declares more than it holds")
                arrays = {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in members}
        if len(arrays) != len(members):
            raise ValueError("it holds an array twice")
    except UserError:
        raise
    except Exception as error:  # zipfile and numpy raise many kinds on bytes that are not what they should be
        raise DamagedFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if layout is not None:
        layout.check(path, arrays)
    return arrays


def run_of(path: Path) -> str | None:
    """Return the identity of the run that an archive says it belongs to, or ``None`` if its end says nothing.

    Args:
        path: of the file.

    Raises:
        UserError: if it is something else than a regular file.
    """
    try:
        with open_to_read(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - 256, 0))
            found = re.search(_COMMENT.pattern + rb"\Z", file.read())
    except OSError:
        return None
    return found[1].decode() if found else None


def _verify(file: BinaryIO, seal: Seal) -> None:
    left, crc, tail = os.fstat(file.fileno()).st_size - _CRC, 0, b""
    while left > 0 and (block := file.read(min(left, 2**20))):
        crc, left, tail = zlib.crc32(block, crc), left - len(block), (tail + block)[-256:]
    # No byte of the archive's own end looks like the words of a comment.
    found = re.search(_COMMENT.pattern + rb"\Z", tail + file.read())
    if not found or int(found[3], 16) != crc:
        raise ValueError("its checksum does not fit its content")
    run, kept = found[1].decode(), found[2].decode()
    if run != seal.run:
        raise ValueError("it belongs to another run")
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
