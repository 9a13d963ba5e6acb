"""Files of run directories: regular files only, atomic writes, checksums, and sealed archives of arrays."""

import contextlib
import dataclasses
import errno
import fcntl
import functools
import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from simkit.errors import UserError, argument

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_FLAGS = {"rb": os.O_RDONLY, "rb+": os.O_RDWR | os.O_CREAT, "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL}
# Of file systems without locks: Lustre without ``-o flock``, NFS without lockd, some FUSE.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
# Of file systems that write folders by themselves: old CIFS, some FUSE.
_WITHOUT_FOLDER_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
LONGEST_NAME = 255
"""Bytes of a file name."""


def check_regular(path: Path) -> bool:
    """Return whether a regular file exists; its folder may be missing."""
    return _exists(path, stat.S_ISREG, "file")


def check_folder(path: Path) -> bool:
    """Return whether a folder exists, or a link to one that this user has made, for instance on another disk."""
    return _exists(path, stat.S_ISDIR, "folder")


def _exists(path: Path, wanted: Callable[[int], bool], noun: str) -> bool:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if noun == "folder" and stat.S_ISLNK(status.st_mode) and status.st_uid == os.geteuid():
        with contextlib.suppress(OSError):  # a link to nowhere, or to itself, remains a link
            status = os.stat(path)
    if not wanted(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "a device")
        raise UserError(f"{path} is {kind}, and simkit needs a {noun} there; remove or rename it, then try again")
    return True


def open_regular(path: Path, mode: Literal["rb", "rb+", "xb"]) -> BinaryIO:
    """Open a regular file; every file of a run directory is opened here.

    Args:
        path: path of the file.
        mode: ``"rb"`` to read it; ``"rb+"`` to lock it without changing its content, creating a missing one; ``"xb"``
            to write a new file in place of one left by a dead process.
    """
    if check_regular(path) and mode == "xb":
        path.unlink()
    descriptor = os.open(path, _FLAGS[mode] | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(descriptor, mode.replace("x", "w"))  # type: ignore[return-value]


@contextlib.contextmanager
def writing(path: Path, remedy: str) -> Iterator[None]:
    """Turn the errors of a file system while a file or folder is written into one line.

    Raises:
        UserError: with the reason and the remedy.
    """
    try:
        yield
    except OSError as error:
        reason = "another process has just created it" if error.errno == errno.ENOTEMPTY else error.strerror or error
        raise UserError(f"cannot write {path}: {reason}; {remedy}") from None


@functools.cache
def warn_once(words: str) -> None:
    """Warn of a limit of the file system, once in a process."""
    warnings.warn(words, stacklevel=2)


def lock(file: BinaryIO, *, shared: bool = False) -> bool:
    """Lock a file against other processes until it is closed; where the file system has no locks, warn, return False.

    Raises:
        BlockingIOError: if another process has locked it.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise BlockingIOError(error.errno, error.strerror) from None  # EACCES on some network file systems
        warn_once(
            f"the file system has no locks ({error.strerror}), so nothing keeps two processes from writing to one run "
            "directory; start one at a time"
        )
        return False
    return True


def hidden(path: Path, ending: str) -> Path:
    """Return the path of a temporary file or folder beside another one, with a name that is not too long."""
    name = os.fsencode(path.name)[: LONGEST_NAME - len(ending) - 2].decode(errors="ignore")
    return path.with_name(f".{name}.{ending}")


# A manifest lists the coordinates of a grid, rarely more than a megabyte.
MAX_JSON_BYTES = 64 * 2**20
_LEFTOVER = re.compile(r"\..+\.\d+\.tmp")


class DamagedFileError(Exception):
    """A file whose bytes have changed since it was written, or that is from another run."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: a crash at any moment leaves the old or the new file, never a part of one.

    Raises:
        UserError: if the file cannot be written (a full disk, no permission), or the path is a link, folder, pipe or
            device; the old content is unchanged.
    """
    # Processes on two machines that share a folder may have the same process id.
    temporary = hidden(path, f"{os.getpid()}{int.from_bytes(os.urandom(4)):010}.tmp")
    with writing(path, "make room or change permissions, then try again"):
        check_regular(path)
        try:  # also if a signal arrives while the file is created
            with open_regular(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _WITHOUT_FOLDER_SYNC:
            raise
        warn_once(
            f"the file system does not write folders on request ({error.strerror}), so a power failure may take back "
            "the files that were written last"
        )
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder for results, if it does not exist.

    Raises:
        UserError: if the folder cannot be created.
    """
    with writing(folder, f"choose another folder with {argument('output')}"):
        folder.mkdir(parents=True, exist_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that `write_bytes` leaves when its process is killed; no other process may write."""
    for leftover in folder.glob(".*.tmp"):
        if _LEFTOVER.fullmatch(leftover.name) and leftover.is_file() and not leftover.is_symlink():
            leftover.unlink(missing_ok=True)


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file.

    Raises:
        DamagedFileError: if the file is missing or cannot be read.
    """
    try:
        with open_regular(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise DamagedFileError(f"{path}: {error.strerror or error}") from None


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write plain data as JSON, atomically; NaN and infinity, which JSON lacks, become null."""
    write_bytes(path, (json.dumps(_finite(value), indent=indent, allow_nan=False) + "\n").encode())


def write_sealed_json(path: Path, value: Mapping[str, Any], run: str) -> None:
    """Write JSON with the identity of its run and a checksum, under the keys ``run`` and ``checksum``."""
    plain = _finite({**value, "run": run})
    write_json(path, {**plain, "checksum": checksum(plain)})


def read_sealed_json(path: Path, run: str) -> dict[str, Any]:
    """Read a file of `write_sealed_json`.

    Raises:
        DamagedFileError: if the file is missing, altered, or from another run.
    """
    value = read_json(path)
    if value.pop("checksum", None) != checksum(value):
        raise DamagedFileError(f"{path}: its checksum does not match its content")
    if value.pop("run", None) != run:
        raise DamagedFileError(f"{path}: it is from another run")
    return value


def checksum(value: Mapping[str, Any], text: str = "") -> str:
    """Return the SHA-256 checksum of plain data and a text."""
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
                lengths.setdefault(length, stored) if isinstance(length, str) else length
                for length, stored in zip(shape, array.shape, strict=False)
            )
            if array.ndim != len(shape) or array.shape != expected or array.dtype.str != np.dtype(dtype).str:
                raise DamagedFileError(
                    f"{path}: array {name} is {array.dtype}{array.shape}, not "
                    f"{dtype}({', '.join(str(length) for length in shape)})"
                )


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], seal: Seal = UNBOUND) -> None:
    """Write named arrays as an uncompressed ``.npz``, atomically; the same arrays and seal give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: np.asarray(array) for name, array in arrays.items()})
    write_bytes(path, sealed(buffer.getvalue(), seal))


# A zip archive ends with a comment, preceded by its length. Ours holds the seal and a checksum of all bytes before it;
# the checksums of zip itself cover the members, but not the directory of the archive.
_COMMENT = re.compile(rb"run ([0-9a-f]+), ([a-z0-9 ]+), crc32 ([0-9a-f]{8})")
_CRC = 8


def sealed(archive: bytes, seal: Seal) -> bytes:
    """Return a zip archive, which has no comment yet, with its seal and checksum as the comment."""
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
    """Return the identity of the run in an archive's seal, or ``None`` if the archive has no readable seal."""
    try:
        with open_regular(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - 256, 0))
            comment = re.search(_COMMENT.pattern + rb"\Z", file.read())
    except OSError:
        return None
    return comment[1].decode() if comment else None


def _verify(file: BinaryIO, seal: Seal) -> None:
    left, crc, tail = os.fstat(file.fileno()).st_size - _CRC, 0, b""
    while left > 0 and (block := file.read(min(left, 2**20))):
        crc, left, tail = zlib.crc32(block, crc), left - len(block), (tail + block)[-256:]
    # The end record of the archive itself cannot match the pattern of the comment.
    comment = re.search(_COMMENT.pattern + rb"\Z", tail + file.read())
    if not comment or int(comment[3], 16) != crc:
        raise ValueError("its checksum does not match its content")
    stored = Seal(comment[1].decode(), comment[2].decode())
    if stored.run != seal.run:
        raise ValueError("it is from another run")
    if stored.file != seal.file:
        raise ValueError(f"it is {stored.file} of this run, not {seal.file}")
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
