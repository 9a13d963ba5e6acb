"""Data sets of sweeps: arrays of members in sealed chunks, which xarray reads when they are indexed."""

import ast
import dataclasses
import importlib.util
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import jax
import numpy as np
import xarray
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from simkit.core.expressions.measures import measure_of
from simkit.core.expressions.syntax import dotted, parse
from simkit.core.objective import reduced
from simkit.core.simulation import Simulation
from simkit.core.status import Status, checks_every_step, stops
from simkit.errors import UserError
from simkit.jobs.points import Members
from simkit.jobs.sweep_results import FAILURE_STATUSES, OBJECTIVE, OMITTED_OBJECTIVES, PREFIX, block_lengths
from simkit.scenario.scenario import ObjectiveSettings, Scenario
from simkit.storage import datasets
from simkit.storage.chunk_files import ChunkFile, members_layout
from simkit.storage.datasets import annotate, attributes_of, components, free_name, oriented
from simkit.storage.files import DamagedFileError, read_arrays, write_arrays
from simkit.storage.run_directory import RunDirectory

type Arrays = Mapping[str, np.ndarray]
type Chunk = Callable[[int], Arrays]
"""Function that returns the arrays of a chunk, by its index."""


def member_axis(name: str) -> int:
    """Return the member axis of a chunk's array: 1 for diagnostics, whose axis 0 is the frame, else 0."""
    return int(name.startswith("diagnosed."))


def members_first(chunk: Arrays, members: int) -> dict[str, np.ndarray]:
    """Return the arrays of a chunk with the member axis first, without members that pad the last chunk."""
    return {name: np.moveaxis(array, member_axis(name), 0)[:members] for name, array in chunk.items()}


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

    def of(self, chunk: Arrays) -> np.ndarray:
        """Return the array of a chunk with the axes of a result, members first."""
        array = np.moveaxis(chunk[self.name], member_axis(self.name), 0)
        array = np.swapaxes(array, -2, -1) if self.is_turned else array
        return array if self.words is None else self.words[array]


class ChunkReader:
    """Reader of the chunks of a finished sweep, with the last two cached: a block of members may lie in two chunks.

    Args:
        directory: run directory of the sweep.
        frames: frames per member, including the initial one.
        length: members in each chunk but the last.
    """

    def __init__(self, directory: RunDirectory, frames: int, length: int) -> None:
        # The working directory may change before a chunk is read.
        self.directory = dataclasses.replace(directory, path=directory.path.absolute())
        self.frames, self.length = frames, length
        self._cached: dict[int, dict[str, np.ndarray]] = {}
        self._lock = threading.Lock()

    def read(self, index: int) -> dict[str, np.ndarray]:
        """Return the checked arrays of a chunk.

        Raises:
            UserError: naming a chunk that is missing or damaged.
        """
        with self._lock:
            if index not in self._cached:
                try:
                    arrays = ChunkFile(self.directory, index, self.frames).read_whole()
                except DamagedFileError as error:
                    raise UserError(f"{error}; make it again with: {self.directory.resuming}") from None
                self._cached = dict(list(self._cached.items())[-1:]) | {index: arrays}
            return self._cached[index]

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for pickling to other processes."""
        return {"directory": self.directory, "frames": self.frames, "length": self.length}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)


class LazyArray(BackendArray):
    """An array that xarray reads in parts: items of equal shape on a grid of members or configurations.

    Args:
        grid: lengths of the axes of the grid.
        shape: shape of each item.
        dtype: dtype of each item.
        fill: ``(out, items, within)``: writes the part ``within`` of each item, given by flat index in the grid, int
            (n,), into an array (n, ...).
    """

    def __init__(self, grid: Sequence[int], shape: Sequence[int], dtype: Any, fill: Callable[..., None]) -> None:
        self._grid, self._fill, self.shape, self.dtype = tuple(grid), fill, (*grid, *shape), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read and return the indexed part."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        axes = len(self._grid)
        items, within = _part(np.arange(math.prod(self._grid)).reshape(self._grid), key[:axes]), key[axes:]
        shape = _part(np.broadcast_to(np.zeros((), self.dtype), self.shape[axes:]), within).shape
        out = np.empty((items.size, *shape), self.dtype)
        self._fill(out, items.ravel(), within)
        return out.reshape((*items.shape, *shape))


def _part(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """Return the part of an array at an integer, slice or index array along each axis, independent of the others."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * axis + (key[axis],)]
    return array


def _fill_from_chunks(
    chunk: Chunk, length: int, stored: StoredArray, out: np.ndarray, items: np.ndarray, within: tuple[Any, ...]
) -> None:
    chunks, rows = np.divmod(items, length)
    for index in np.unique(chunks).tolist():
        here = np.flatnonzero(chunks == index)
        out[here] = _part(stored.of(chunk(index))[rows[here]], (slice(None), *within))


def _fill_from_arrays(
    arrays: "Sequence[xarray.DataArray]", out: np.ndarray, items: np.ndarray, within: tuple[Any, ...]
) -> None:
    for row, index in enumerate(items.tolist()):
        out[row] = arrays[index][within].values


def _variable(dims: Sequence[str], array: LazyArray, together: Mapping[str, int] | None, attributes: Any) -> Variable:
    """Return a variable; one of parts that are read ``together`` is a Dask array if Dask is installed."""
    variable = Variable(dims, indexing.LazilyIndexedArray(array), attributes)
    if together is None:
        return variable
    variable.encoding["preferred_chunks"] = dict(together)
    return variable.chunk(together) if importlib.util.find_spec("dask") else variable


def stacked_variable(arrays: "Sequence[xarray.DataArray]", configs: Mapping[str, int]) -> Variable:
    """Return arrays of all configurations as one variable, whose parts are read when they are indexed.

    Args:
        arrays: one array per configuration, all of one shape.
        configs: number of values of each key, the last of which varies first.
    """
    first = arrays[0]
    stored = first.encoding.get("preferred_chunks")
    dtype = np.result_type(*(array.dtype for array in arrays))
    array = LazyArray(tuple(configs.values()), first.shape, dtype, partial(_fill_from_arrays, arrays))
    together = None if stored is None else dict.fromkeys(configs, 1) | stored
    return _variable((*configs, *map(str, first.dims)), array, together, first.attrs)


def in_memory(simulation: "Simulation", sweep: Members, chunks: Sequence[Arrays], length: int) -> "xarray.Dataset":
    """Return the labeled result of a sweep in memory.

    Args:
        simulation: simulation of one member.
        sweep: the sweep.
        chunks: arrays of every chunk, in order.
        length: members in each chunk but the last.
    """
    described = {name: (array.dtype, array.shape) for name, array in chunks[0].items()}
    objectives = member_objectives(sweep, simulation, chunks)
    labels = datasets.labels_of(simulation)
    return _labeled(sweep, labels, described, (chunks.__getitem__, length), objectives, is_lazy=False).load()


def on_disk(sweep: Members, directory: RunDirectory) -> "xarray.Dataset":
    """Return the labeled result of a sweep whose chunks are all stored; their arrays are read when they are indexed."""
    request, frames = directory.manifest["request"], sweep.plan.frames + 1
    # Only converging members are divided into several blocks.
    reader = ChunkReader(directory, frames, sweep.chunk_length(converges=sweep.blocks > 1))
    described, objectives = members_layout(request, frames).arrays, read_objectives(sweep, directory)
    return _labeled(sweep, request["labels"], described, (reader.read, reader.length), objectives, is_lazy=True)


def _labeled(
    sweep: Members,
    labels: Mapping[str, Any],
    described: Mapping[str, tuple[Any, Sequence[Any]]],
    chunks: tuple[Chunk, int],
    objectives: Mapping[str, np.ndarray],
    *,
    is_lazy: bool,
) -> "xarray.Dataset":
    """Return the labeled result of a sweep.

    Args:
        sweep: the sweep.
        labels: as `simkit.storage.datasets.labels_of` returns them.
        described: type and shape of each array of a chunk.
        chunks: function that returns a chunk, and its number of members.
        objectives: those of `member_objectives`.
        is_lazy: whether the result is marked as one that stays in its chunks.
    """
    grid = dict(zip(sweep.axes, sweep.shape, strict=True))
    together = dict(zip(grid, block_lengths(sweep.shape, chunks[1]), strict=True)) if is_lazy else None

    def variable(stored: StoredArray, axes: Sequence[str]) -> Variable:
        dtype = stored.dtype if stored.words is None else stored.words.dtype
        array = LazyArray(sweep.shape, stored.shape, dtype, partial(_fill_from_chunks, *chunks, stored))
        return _variable((*grid, *axes), array, together, None)

    def of_member(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
        return (*shape[: member_axis(name)], *shape[member_axis(name) + 1 :])

    of_members = {name: (np.dtype(dtype), of_member(name, shape)) for name, (dtype, shape) in described.items()}
    observed, diagnosed = datasets.split(of_members)
    measured = {name: array for name, array in objectives.items() if array.size}
    reserved = {*sweep.axes, *sweep.over, "frame", "status"}
    variables, plain = dict[str, Any](), {*diagnosed, *observed, *measured}
    for name, (dtype, shape) in diagnosed.items():
        # A diagnostic may have the name of a swept parameter, and an observed array that of a diagnostic.
        free = free_name(name, "diagnosed_", reserved, plain)
        variables[free] = variable(StoredArray(f"diagnosed.{name}", dtype, shape), ("frame",))
    for name, (dtype, shape) in observed.items():
        dims = tuple(labels["dimensions"].get(name) or (f"{name}_{axis}" for axis in range(len(shape))))
        free = free_name(name, "final_", reserved | variables.keys(), plain)
        axes, turned = oriented(dims, np.broadcast_to(np.zeros(()), shape))
        variables[free] = variable(StoredArray(f"observed.{name}", dtype, turned.shape, axes != dims), axes)
    names = {free_name(name, PREFIX, reserved | variables.keys(), plain): name for name in measured}
    for free, name in names.items():
        attributes = {"long_name": sweep.objectives[name].doc, OBJECTIVE: name}
        variables[free] = (sweep.axes, measured[name].reshape(sweep.shape), attributes)
    statuses = np.array([status.name.lower() for status in Status])
    variables["status"] = variable(StoredArray("status", np.dtype(np.int32), (), words=statuses), ())
    dataset = xarray.Dataset(variables)
    first = sweep.scenario.run.seed
    coordinates = {**sweep.coordinates, "seed": np.arange(first, first + sweep.seeds)}
    coordinates |= {name: values for name, values in labels["coordinates"].items() if name in dataset.dims}
    words = {
        OMITTED_OBJECTIVES: ", ".join(name for name in objectives if name not in measured),
        FAILURE_STATUSES: " ".join(sweep.failures),
        "points": sweep.origin,
    }
    attributes = attributes_of(sweep.scenario, without=tuple(sweep.over))
    attributes |= {name: value for name, value in words.items() if value} | {"members": sweep.members}
    dataset = dataset.assign_coords(coordinates).assign_attrs(attributes)
    dataset = dataset.assign_coords(components(dataset.sizes))
    annotate(dataset, labels["quantities"], sweep.scenario)
    return dataset


OBJECTIVES = "objectives.npz"
_SEAL = "objectives"


def objectives_to_compute(objectives: Mapping[str, ObjectiveSettings]) -> dict[str, ObjectiveSettings]:
    """Return the objectives other than the last value of a diagnostic, which every result holds."""
    return {
        name: settings
        for name, settings in objectives.items()
        if settings.expression or settings.reduce != "final" or settings.square
    }


def store_objectives(
    sweep: Members, simulation: "Simulation", directory: RunDirectory, chunks: Iterable[Arrays]
) -> None:
    """Compute the objectives of all members, if there are any, and store them; arguments as for `member_objectives`."""
    if objectives_to_compute(sweep.objectives):
        write_arrays(
            directory.path / OBJECTIVES, member_objectives(sweep, simulation, chunks), directory.seal.of(_SEAL)
        )


def read_objectives(sweep: Members, directory: RunDirectory) -> dict[str, np.ndarray]:
    """Read the objectives of all members of a large sweep, as `member_objectives` returned them.

    Raises:
        DamagedFileError: if the file is missing, damaged or of another sweep.
    """
    wanted = objectives_to_compute(sweep.objectives)
    if not wanted:
        return {}
    path = directory.path / OBJECTIVES
    objectives = read_arrays(path, directory.seal.of(_SEAL))
    dtype, shapes = np.dtype(sweep.scenario.run.precision), ((sweep.members,), (0,))
    fits = all(array.dtype == dtype and array.shape in shapes for array in objectives.values())
    if objectives.keys() != wanted.keys() or not fits:
        raise DamagedFileError(f"{path}: it does not hold the objectives of this sweep")
    return objectives


def member_objectives(sweep: Members, simulation: "Simulation", chunks: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Return the objectives of all members, from what a sweep stores of them.

    Args:
        sweep: the sweep.
        simulation: simulation of one member.
        chunks: arrays of every chunk, in order; one is in memory at a time.

    Returns:
        ``{name: array}``, (members,), of the precision of the run; empty for an objective that needs arrays which are
        not stored.
    """
    wanted, functions = objectives_to_compute(sweep.objectives), dict[str, tuple[Callable[..., Any], list[str]]]()
    parts: dict[str, list[np.ndarray]] = {name: [np.zeros(0, sweep.scenario.run.precision)] for name in wanted}
    missing = sweep.members
    for index, chunk in enumerate(chunks if wanted else ()):
        arrays = members_first(chunk, missing)
        observed, diagnosed = datasets.split(arrays)
        missing -= len(arrays["status"])
        if index == 0:
            functions = {
                name: (jax.jit(_measure(simulation, sweep.scenario, settings)), last)
                for name, settings in wanted.items()
                if (last := _last_frames_of(settings, simulation, observed, diagnosed)) is not None
            }
        counted = None
        if diagnosed and checks_every_step(simulation):
            counted = _stored_frames(diagnosed, stops(arrays["status"]))
        for name, (function, last) in functions.items():
            # One member at a time, so that the bits of its value do not depend on the other members.
            values = [_value(function, last, observed, diagnosed, counted, i) for i in range(len(arrays["status"]))]
            parts[name].append(np.array(values, sweep.scenario.run.precision))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _value(
    function: Callable[..., Any],
    last: Collection[str],
    observed: Arrays,
    diagnosed: Arrays,
    counted: np.ndarray | None,
    member: int,
) -> Any:
    # Observed arrays are used in the last frame alone, here repeated beside the diagnostics of every frame.
    frames = max((array.shape[1] for array in diagnosed.values()), default=1)
    arrays = {n: np.broadcast_to(observed[n][member], (frames, *observed[n].shape[1:])) for n in last}
    diagnostics = {name: array[member] for name, array in diagnosed.items()}
    return function(arrays, diagnostics, None if counted is None else counted[member])


def _measure(simulation: "Simulation", scenario: Scenario, settings: ObjectiveSettings) -> Callable[..., "jax.Array"]:
    """Return ``(frames, diagnostics, stored) -> number``."""
    if settings.expression:
        where = f"{scenario.file}: objectives.{settings.name}"
        return cast("Callable[..., jax.Array]", measure_of(simulation, settings.expression, where))

    def measure(frames: Any, diagnostics: Any, stored: Any) -> "jax.Array":
        value = reduced(settings.reduce, diagnostics[settings.quantity], stored)  # type: ignore[arg-type]
        return value**2 if settings.square else value

    return measure


def _last_frames_of(
    settings: ObjectiveSettings, simulation: "Simulation", observed: Collection[str], diagnosed: Collection[str]
) -> list[str] | None:
    """Return the observed arrays that an objective needs; ``None`` if it needs more than their last frames."""
    others = [name for name in settings.made_of if name not in diagnosed]
    used = [name for name in others if name in observed]
    if any(name not in observed and name not in simulation.coordinates for name in others):
        return None
    syntax = parse(settings.expression, "") if used else None
    return None if syntax and syntax.over_frames and _is_outside_final(syntax.tree, used) else used


def _is_outside_final(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether a formula uses one of the names outside ``final(...)``."""
    if isinstance(node, ast.Call) and dotted(node.func) == "final":
        return False
    if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in names:
        return True
    return any(_is_outside_final(part, names) for part in ast.iter_child_nodes(node))


def _stored_frames(diagnosed: Arrays, stopped: np.ndarray) -> np.ndarray:
    """Return a mask of the frames up to the one at which a member stopped, bool (members, frames).

    Later frames repeat that one: they agree with the last frame in every diagnostic, including time.
    """
    count, frames = len(stopped), next(iter(diagnosed.values())).shape[1]
    same_as_last = np.ones((count, frames), bool)
    for array in diagnosed.values():
        rows = array.reshape(count, frames, -1)
        same_as_last &= ((rows == rows[:, -1:]) | (np.isnan(rows) & np.isnan(rows[:, -1:]))).all(axis=-1)
    # True from the first frame that equals all later ones.
    constant = np.logical_and.accumulate(same_as_last[:, ::-1], axis=1)[:, ::-1]
    repeats = np.zeros_like(constant)
    repeats[:, 1:] = constant[:, :-1]
    return ~repeats | ~stopped[:, None]
