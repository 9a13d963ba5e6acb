"""Data sets of sweeps: arrays of all members in memory, or read from sealed chunks when they are indexed."""

import dataclasses
import importlib.util
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from simkit.core.status import Status, stops
from simkit.errors import UserError
from simkit.jobs.points import Members
from simkit.jobs.sweep_results import (
    FAILURE_STATUSES,
    OBJECTIVE,
    OMITTED_OBJECTIVES,
    PREFIX,
    MemberObjectives,
    block_lengths,
    is_failure,
    objectives_to_compute,
)
from simkit.storage import datasets
from simkit.storage.chunk_files import ChunkFile, members_layout
from simkit.storage.datasets import annotate, attributes_of, components, free_name, oriented
from simkit.storage.files import DamagedFileError, read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


def member_axis(name: str) -> int:
    """Return the member axis of a chunk's array: 1 for diagnostics, whose axis 0 is the frame, else 0."""
    return int(name.startswith("diagnosed."))


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array of a sweep's chunks.

    Attributes:
        name: name in the chunks.
        dtype: dtype of its numbers.
        shape: shape of one member's part.
        is_turned: whether its last two axes are swapped, see `simkit.storage.datasets.oriented`.
        words: words that replace integer codes, by code; ``None`` for numbers.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_turned: bool = False
    words: np.ndarray | None = None

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return the array with the axes of a result, members first.

        Args:
            array: array of a chunk, or of several chunks joined.
        """
        found = np.moveaxis(array, member_axis(self.name), 0)
        found = np.swapaxes(found, -2, -1) if self.is_turned else found
        return found if self.words is None else self.words[found]


OBJECTIVES = "objectives.npz"
_SEAL = "objectives"


def store_objectives(
    sweep: Members, simulation: "Simulation", directory: RunDirectory, chunks: Iterable[Mapping[str, np.ndarray]]
) -> None:
    """Compute the objectives of all members from the stored chunks of a sweep, and store them.

    Args:
        sweep: the sweep.
        simulation: simulation of one member.
        directory: run directory of the sweep.
        chunks: arrays of every chunk, in order; one is in memory at a time.
    """
    wanted, measures, parts = objectives_to_compute(sweep.objectives), None, list[dict[str, np.ndarray]]()
    if not wanted:
        return
    missing = sweep.members
    for chunk in chunks:
        # The last chunk may be padded.
        arrays = {name: np.moveaxis(array, member_axis(name), 0)[:missing] for name, array in chunk.items()}
        observed, diagnosed = datasets.split(arrays)
        measures = measures or MemberObjectives(simulation, sweep.scenario, wanted, observed, diagnosed)
        parts.append(measures.values(observed, diagnosed, arrays["status"]))
        missing -= len(arrays["status"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Of an objective that was not computed the array is empty.
    stored = {name: joined.get(name, np.zeros(0, sweep.scenario.run.precision)) for name in wanted}
    write_arrays(directory.path / OBJECTIVES, stored, directory.seal.of(_SEAL))


def read_objectives(sweep: Members, directory: RunDirectory) -> dict[str, np.ndarray]:
    """Read the objectives of all members of a large sweep that were computed, each (members,), by name.

    Args:
        sweep: the sweep.
        directory: its run directory.

    Raises:
        DamagedFileError: if the file is missing, damaged or of another sweep.
        UserError: if its path is not a regular file.
    """
    wanted = objectives_to_compute(sweep.objectives)
    if not wanted:
        return {}
    path = directory.path / OBJECTIVES
    found = read_arrays(path, directory.seal.of(_SEAL))
    dtype, shapes = np.dtype(sweep.scenario.run.precision), ((sweep.members,), (0,))
    if found.keys() != wanted.keys() or any(a.dtype != dtype or a.shape not in shapes for a in found.values()):
        raise DamagedFileError(f"{path}: it does not hold the objectives of this sweep")
    return {name: array for name, array in found.items() if array.size}


# Variables of a block are read one after another, and a block may lie in two chunks.
FILES_KEPT = 2


class ChunkReader:
    """Reader of the chunks of a finished sweep, with the last few cached.

    Args:
        directory: run directory of the sweep.
        frames: frames per member, including the initial one.
        length: members in each chunk but the last.
    """

    def __init__(self, directory: RunDirectory, frames: int, length: int) -> None:
        self.directory, self.frames, self.length = directory, frames, length
        self._kept: dict[int, dict[str, np.ndarray]] = {}
        self._lock = threading.Lock()

    def read(self, index: int) -> dict[str, np.ndarray]:
        """Return the checked arrays of a chunk.

        Args:
            index: index of the chunk.

        Raises:
            UserError: naming a chunk that is missing or damaged.
        """
        with self._lock:
            if index not in self._kept:
                try:
                    found = ChunkFile(self.directory, index, self.frames).read_whole()
                except DamagedFileError as error:
                    raise UserError(f"{error}; make it again with: {self.directory.resuming}") from None
                self._kept[index] = found
                while len(self._kept) > FILES_KEPT:
                    del self._kept[next(iter(self._kept))]
            return self._kept[index]

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for pickling to other processes."""
        return {"directory": self.directory, "frames": self.frames, "length": self.length}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)


class _LazyArray(BackendArray):
    """An array that xarray reads in parts: items of equal shape on a grid of members or configurations.

    Args:
        grid: lengths of the axes of the grid.
        shape: shape of each item.
        dtype: dtype of each item.
    """

    def __init__(self, grid: Sequence[int], shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._grid, self.shape, self.dtype = tuple(grid), (*grid, *shape), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read and return the indexed part."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return the part at an integer, slice or index array along each axis."""
        axes = len(self._grid)
        items, within = _part(np.arange(math.prod(self._grid)).reshape(self._grid), key[:axes]), key[axes:]
        shape = _part(np.broadcast_to(np.zeros((), self.dtype), self.shape[axes:]), within).shape
        found = np.empty((items.size, *shape), self.dtype)
        self._fill(found, items.ravel(), within)
        return found.reshape((*items.shape, *shape))

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        """Read the same part of several items, given by flat index in the grid, int (n,), into an array, (n, ...)."""
        raise NotImplementedError


def _part(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """Return the part of an array at an integer, slice or index array along each axis, independent of the others."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * axis + (key[axis],)]
    return array


class _MembersArray(_LazyArray):
    """An array of all members of a sweep, in its chunks."""

    def __init__(self, reader: ChunkReader, stored: StoredArray, grid: Sequence[int]) -> None:
        super().__init__(grid, stored.shape, stored.dtype if stored.words is None else stored.words.dtype)
        self._reader, self._stored = reader, stored

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        chunks, rows = np.divmod(items, self._reader.length)
        for index in np.unique(chunks).tolist():
            here = np.flatnonzero(chunks == index)
            arrays = self._stored.of(self._reader.read(index)[self._stored.name])
            found[here] = _part(arrays[rows[here]], (slice(None), *within))


class _ConfigurationsArray(_LazyArray):
    """Lazy arrays of several configurations, all of one shape, as one."""

    def __init__(self, arrays: "Sequence[xarray.DataArray]", grid: Sequence[int]) -> None:
        super().__init__(grid, arrays[0].shape, arrays[0].dtype)
        self._arrays = arrays

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        for row, index in enumerate(items.tolist()):
            found[row] = self._arrays[index][within].values


def lazy_variable(reader: ChunkReader, stored: StoredArray, grid: Mapping[str, int], dims: Sequence[str]) -> Variable:
    """Return an array of all members as a variable of a data set, a Dask array if Dask is installed.

    Args:
        reader: reader of the chunks.
        stored: the array in the chunks.
        grid: names and lengths of the axes of points and seeds.
        dims: names of the axes of one member.
    """
    lengths = tuple(grid.values())
    together = dict(zip(grid, block_lengths(lengths, reader.length), strict=True))
    return _variable((*grid, *dims), _MembersArray(reader, stored, lengths), together)


def stacked_variable(arrays: "Sequence[xarray.DataArray]", configs: Mapping[str, int]) -> Variable:
    """Return arrays of all configurations as one variable, whose parts are read when they are indexed.

    Args:
        arrays: one array per configuration, made by `lazy_variable`.
        configs: number of values of each key, the last of which varies first.
    """
    first = arrays[0]
    together = dict.fromkeys(configs, 1) | first.encoding["preferred_chunks"]
    array = _ConfigurationsArray(arrays, tuple(configs.values()))
    return _variable((*configs, *map(str, first.dims)), array, together, first.attrs)


def _variable(dims: Sequence[str], array: _LazyArray, together: Mapping[str, int], attributes: Any = None) -> Variable:
    """Return a variable, as a Dask array if Dask is installed, in chunks of members that are read together."""
    variable = Variable(dims, indexing.LazilyIndexedArray(array), attributes)
    variable.encoding["preferred_chunks"] = dict(together)
    return variable.chunk(together) if importlib.util.find_spec("dask") else variable


def joined(name: str, arrays: Sequence[np.ndarray], members: int) -> np.ndarray:
    """Return an array joined over chunks, without the padding members of the last chunk.

    Args:
        name: name of the array in a chunk.
        arrays: the array of each chunk.
        members: number of members, without padding.
    """
    axis = member_axis(name)
    padded = np.concatenate(arrays, axis=axis)
    return padded[:, :members] if axis else padded[:members]


def held_at_stop(
    arrays: Mapping[str, np.ndarray], frames: int, observed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return a chunk's arrays, with each member's values held from the frame at which it stopped, and its last status.

    Args:
        arrays: diagnostics and status (frame, member); fewer frames than ``frames`` if all members stopped early.
        frames: number of frames in the result.
        observed: last frames (member, ...); those of a non-finite member become NaN.
    """
    ended = stops(arrays["status"])
    ended[-1] = True
    rows = np.minimum(np.arange(frames)[:, None], ended.argmax(axis=0))
    kept = {name: np.take_along_axis(array, rows, axis=0) for name, array in arrays.items()}
    kept["status"] = kept["status"][-1]
    failed = kept["status"] == Status.NON_FINITE
    for name, array in observed.items():
        if failed.any() and np.issubdtype(array.dtype, np.floating):
            array = np.where(failed.reshape(-1, *[1] * (array.ndim - 1)), np.full_like(array, np.nan), array)
        kept[f"observed.{name}"] = array
    return kept


type DataVariable = Any
"""A variable of a data set: ``(axes, array)``, or an `xarray.Variable`."""


def in_memory(simulation: "Simulation", sweep: Members, chunks: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    """Return the labeled result of a sweep in memory.

    Args:
        simulation: simulation of one member.
        sweep: the sweep.
        chunks: arrays of every chunk, in order.
    """

    def every_member(name: str) -> np.ndarray:
        return joined(name, [chunk[name] for chunk in chunks], sweep.members)

    def members_first(name: str) -> np.ndarray:
        return np.moveaxis(every_member(name), member_axis(name), 0)

    def variable(stored: StoredArray, axes: Sequence[str]) -> DataVariable:
        array = stored.of(every_member(stored.name))
        return (*sweep.axes, *axes), array.reshape(sweep.shape + array.shape[1:])

    labels = datasets.labels_of(simulation)
    described = {name: (array.dtype, _of_member(name, array.shape)) for name, array in chunks[0].items()}
    observed, diagnosed = datasets.split(described)
    measures = MemberObjectives(
        simulation, sweep.scenario, objectives_to_compute(sweep.objectives), observed, diagnosed
    )
    measured = measures.values(
        {name: members_first(f"observed.{name}") for name in observed},
        {name: members_first(f"diagnosed.{name}") for name in diagnosed},
        members_first("status"),
    )
    result = _labeled(sweep, labels, described, variable, measured, measures.omitted)
    return result.assign_attrs(
        members=sweep.members, failed=int(is_failure(result["status"].values, sweep.failures).sum())
    )


def on_disk(sweep: Members, directory: RunDirectory) -> "xarray.Dataset":
    """Return the labeled result of a sweep whose chunks are all stored; their arrays are read when they are indexed.

    Args:
        sweep: the sweep.
        directory: run directory of the sweep.

    Raises:
        DamagedFileError: if the file of the objectives is damaged or missing.
    """
    request, frames = directory.manifest["request"], sweep.plan.frames + 1
    # Only converging members are divided into several blocks.
    reader = ChunkReader(directory, frames, sweep.chunk_length(converges=sweep.blocks > 1))
    grid = dict(zip(sweep.axes, sweep.shape, strict=True))
    layout = members_layout(request, frames).arrays
    described = {name: (dtype, _of_member(name, shape)) for name, (dtype, shape) in layout.items()}
    measured = read_objectives(sweep, directory)
    result = _labeled(
        sweep,
        request["labels"],
        described,
        lambda stored, axes: lazy_variable(reader, stored, grid, axes),
        measured,
        [name for name in objectives_to_compute(sweep.objectives) if name not in measured],
    )
    return result.assign_attrs(members=sweep.members)


def _of_member(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of one member's part of a chunk's array."""
    axis = member_axis(name)
    return (*shape[:axis], *shape[axis + 1 :])


def _labeled(
    sweep: Members,
    labels: Mapping[str, Any],
    described: Mapping[str, tuple[Any, tuple[int, ...]]],
    variable: Callable[[StoredArray, Sequence[str]], DataVariable],
    measured: Mapping[str, np.ndarray],
    omitted: Sequence[str],
) -> "xarray.Dataset":
    """Return the labeled result of a sweep.

    Args:
        sweep: the sweep.
        labels: as `simkit.storage.datasets.labels_of` returns them.
        described: type and shape of each array of one member.
        variable: function that makes a variable of a stored array, given the names of the axes of one member.
        measured: objectives of members by name, (members,).
        omitted: names of objectives that were not computed.
    """
    taken = {*sweep.axes, *sweep.over, "frame", "status"}
    observed, diagnosed = datasets.split(described)
    variables, plain = dict[str, Any](), {*diagnosed, *observed, *measured}
    for name, (dtype, shape) in diagnosed.items():
        # A diagnostic may have the name of a swept parameter, and an observed array that of a diagnostic.
        free = free_name(name, "diagnosed_", taken, plain)
        variables[free] = variable(StoredArray(f"diagnosed.{name}", np.dtype(dtype), shape), ("frame",))
    for name, (dtype, shape) in observed.items():
        named = tuple(labels["dimensions"].get(name) or (f"{name}_{axis}" for axis in range(len(shape))))
        free = free_name(name, "final_", taken | variables.keys(), plain)
        axes, turned = oriented(named, np.broadcast_to(np.zeros(()), shape))
        stored = StoredArray(f"observed.{name}", np.dtype(dtype), turned.shape, axes != named)
        variables[free] = variable(stored, axes)
    objectives = {free_name(name, PREFIX, taken | variables.keys(), plain): name for name in measured}
    for free, name in objectives.items():
        attributes = {"long_name": sweep.objectives[name].doc, OBJECTIVE: name}
        variables[free] = (sweep.axes, measured[name].reshape(sweep.shape), attributes)
    names = np.array([status.name.lower() for status in Status])
    variables["status"] = variable(StoredArray("status", np.dtype(np.int32), (), words=names), ())
    dataset = xarray.Dataset(variables)
    coordinates: dict[str, Any] = {
        **sweep.points.coordinates,
        "seed": np.arange(sweep.scenario.run.seed, sweep.scenario.run.seed + sweep.seeds),
        **{name: values for name, values in labels["coordinates"].items() if name in dataset.dims},
    }
    attributes = attributes_of(sweep.scenario, without=tuple(sweep.over))
    if omitted:
        attributes[OMITTED_OBJECTIVES] = ", ".join(omitted)
    if sweep.failures:
        attributes[FAILURE_STATUSES] = " ".join(sweep.failures)
    if sweep.origin:
        attributes["points"] = sweep.origin
    dataset = dataset.assign_coords(coordinates).assign_attrs(attributes)
    dataset = dataset.assign_coords(components(dataset.sizes))
    annotate(dataset, labels["quantities"], sweep.scenario)
    return dataset
