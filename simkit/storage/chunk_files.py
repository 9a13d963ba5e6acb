"""The files of a sweep's chunks, and how their arrays are laid out."""

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simkit.storage.archives import Layout, read_arrays
from simkit.storage.files import DamagedFileError
from simkit.storage.regular_files import check_folder, check_regular
from simkit.storage.run_directory import RunDirectory
from simkit.storage.store import Store


class ChunkFile:
    """Where a chunk is kept: its file once it is finished, and the folder of its segments until then.

    Attributes:
        folder: of its segments.
        path: of its file.
        seal: of both.

    Args:
        directory: of the sweep.
        index: of the chunk.
        frames: how many each member has, with the initial one.
    """

    def __init__(self, directory: RunDirectory, index: int, frames: int) -> None:
        self.folder = directory.path / f"chunk_{index:04d}"
        self.path = self.folder.with_suffix(".npz")
        self.seal = directory.seal.of(f"chunk {index}")
        self._request, self._frames = directory.manifest["request"], frames

    def store(self, layout: Callable[[Mapping[str, Any]], Layout | None]) -> Store:
        """Return the store of its segments, laid out as a function of the request tells.

        Raises:
            UserError: if something else than a folder is in its place.
        """
        check_folder(self.folder)
        return Store(self.folder, self.seal, layout(self._request))

    def remove_segments(self) -> None:
        """Remove what a finished chunk, which is whole in its file, left on the way there.

        Raises:
            UserError: if something else than a folder is in its place.
        """
        if check_folder(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, warn: Callable[[str], None]) -> dict[str, np.ndarray] | None:
        """Return what is kept, or ``None`` if it is not finished or damaged.

        Args:
            warn: called with one line about damage.

        Raises:
            UserError: if something else than a file is in its place.
        """
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
            DamagedFileError: if its file is missing, damaged or not of this chunk.
            UserError: if something else than a file is in its place.
        """
        from simkit.core.status import Status

        arrays = read_arrays(self.path, self.seal, members_layout(self._request, self._frames))
        if not np.isin(arrays["status"], list(Status)).all():
            raise DamagedFileError(f"{self.path}: it holds a status that does not exist")
        return arrays


def check_chunks(directory: RunDirectory, members: int, frames: int) -> None:
    """Check the files of a finished sweep.

    Args:
        directory: of the sweep.
        members: how many there are.
        frames: how many each has, with the initial one.

    Raises:
        DamagedFileError: if one is missing, damaged or not of this sweep.
        UserError: if something else than a file is in the place of one.
    """
    index = 0
    while members > 0:
        members -= len(ChunkFile(directory, index, frames).read_whole()["status"]) or members
        index += 1


def check_chunks_there(directory: RunDirectory, count: int) -> None:
    """Check that the files of all chunks are there, without reading them.

    Args:
        directory: of a finished sweep.
        count: number of chunks.

    Raises:
        DamagedFileError: that names the first that is missing.
        UserError: if something else than a file is in the place of one.
    """
    for index in range(count):
        if not check_regular(path := ChunkFile(directory, index, 0).path):
            raise DamagedFileError(f"{path}: it is missing")


type _Arrays = dict[str, tuple[str, tuple[int | str, ...]]]


def chunk_layout(request: Mapping[str, Any]) -> Layout:
    """Return how the segments of a chunk of a sweep are laid out.

    Args:
        request: of the manifest.
    """
    return Layout(_diagnosed(request, "frame", request["chunk"]) | {"status": ("int32", ("frame", request["chunk"]))})


def lanes_layout(request: Mapping[str, Any]) -> Layout:
    """Return how the segments of a sweep through lanes are laid out, see `simkit.engine.lanes.Queue`.

    Args:
        request: of the manifest.
    """
    lanes, observed = request["chunk"], _observed(request, "left")
    arrays: _Arrays = {name: ("int32", (lanes,)) for name in ("member", "frame")}
    arrays |= {"status": ("int32", ("row", lanes)), "left": ("int32", ("left",))}
    return Layout(_diagnosed(request, "row", lanes) | arrays | observed, frozenset(observed))


def members_layout(request: Mapping[str, Any], frames: int) -> Layout:
    """Return how the finished chunks of a sweep are laid out.

    Args:
        request: of the manifest.
        frames: how many each member has, with the initial one.
    """
    diagnosed, observed = _diagnosed(request, frames, "member"), _observed(request, "member")
    return Layout(diagnosed | observed | {"status": ("int32", ("member",))})


def _diagnosed(request: Mapping[str, Any], frames: int | str, members: int | str) -> _Arrays:
    described = request["arrays"].items()
    return {n: (dtype, (frames, members, *shape)) for n, (dtype, shape) in described if n.startswith("diagnosed.")}


def _observed(request: Mapping[str, Any], members: int | str) -> _Arrays:
    described = request["arrays"].items() if request["final_frames"] else ()
    return {n: (dtype, (members, *shape)) for n, (dtype, shape) in described if n.startswith("observed.")}
