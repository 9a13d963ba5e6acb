"""Files of a sweep's chunks, and the layout of their arrays."""

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simkit.core.status import Status
from simkit.storage.files import DamagedFileError, Layout, check_folder, check_regular, read_arrays
from simkit.storage.run_directory import RunDirectory
from simkit.storage.store import LateStore


class ChunkFile:
    """Storage of one chunk: a folder of segments while it is computed, one file when it is finished.

    Attributes:
        folder: folder of the segments.
        path: file of the finished chunk.
        seal: seal of both.

    Args:
        directory: run directory of the sweep.
        index: index of the chunk.
        frames: frames per member, including the initial one.
    """

    def __init__(self, directory: RunDirectory, index: int, frames: int) -> None:
        self.folder = directory.path / f"chunk_{index:04d}"
        self.path = self.folder.with_suffix(".npz")
        self.seal = directory.seal.of(f"chunk {index}")
        self._request, self._frames = directory.manifest["request"], frames

    def store(self, layout: Callable[[Mapping[str, Any]], Layout | None]) -> LateStore:
        """Return the store of the segments, a context manager; ``layout`` is a function of the manifest's request."""
        check_folder(self.folder)
        return LateStore(self.folder, self.seal, layout(self._request))

    def remove_segments(self) -> None:
        """Remove the segments of a finished chunk, whose file holds all results."""
        if check_folder(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, warn: Callable[[str], None]) -> dict[str, np.ndarray] | None:
        """Return the arrays of the chunk, or ``None`` if it is unfinished, or damaged, of which one line warns."""
        if not check_regular(self.path):
            return None
        try:
            return self.read_whole()
        except DamagedFileError as error:
            warn(f"{error}; computing it again")
            return None

    def read_whole(self) -> dict[str, np.ndarray]:
        """Return the arrays of a finished chunk.

        Raises:
            DamagedFileError: if the file is missing, damaged or of another chunk.
        """
        arrays = read_arrays(self.path, self.seal, members_layout(self._request, self._frames))
        if not np.isin(arrays["status"], list(Status)).all():
            raise DamagedFileError(f"{self.path}: it holds an unknown status code")
        return arrays


def check_chunks(directory: RunDirectory, count: int, frames: int = 0, *, read: bool) -> None:
    """Check that the files of all chunks of a finished sweep exist, and with ``read`` that they are intact.

    Raises:
        DamagedFileError: naming the first that is missing, damaged or of another sweep.
    """
    for index in range(count):
        chunk = ChunkFile(directory, index, frames)
        if read:
            chunk.read_whole()
        elif not check_regular(chunk.path):
            raise DamagedFileError(f"{chunk.path}: it is missing")


type _Arrays = dict[str, tuple[str, tuple[int | str, ...]]]


def chunk_layout(request: Mapping[str, Any]) -> Layout:
    """Return the layout of the segments of a chunk, from the manifest's request."""
    return Layout(_diagnosed(request, "frame", request["chunk"]) | {"status": ("int32", ("frame", request["chunk"]))})


def lanes_layout(request: Mapping[str, Any]) -> Layout:
    """Return the layout of the segments of a sweep in lanes, see `simkit.engine.lanes.Queue`."""
    lanes, observed = request["chunk"], _observed(request, "left")
    arrays: _Arrays = {name: ("int32", (lanes,)) for name in ("member", "frame")}
    arrays |= {"status": ("int32", ("row", lanes)), "left": ("int32", ("left",))}
    return Layout(_diagnosed(request, "row", lanes) | arrays | observed, frozenset(observed))


def members_layout(request: Mapping[str, Any], frames: int) -> Layout:
    """Return the layout of the finished chunks of a sweep, with ``frames`` per member, including the initial one."""
    diagnosed, observed = _diagnosed(request, frames, "member"), _observed(request, "member")
    return Layout(diagnosed | observed | {"status": ("int32", ("member",))})


def _diagnosed(request: Mapping[str, Any], frames: int | str, members: int | str) -> _Arrays:
    described = request["arrays"].items()
    return {n: (dtype, (frames, members, *shape)) for n, (dtype, shape) in described if n.startswith("diagnosed.")}


def _observed(request: Mapping[str, Any], members: int | str) -> _Arrays:
    described = request["arrays"].items() if request["final_frames"] else ()
    return {n: (dtype, (members, *shape)) for n, (dtype, shape) in described if n.startswith("observed.")}
