"""Results of a sweep's members: held at the frame where each stopped, joined over chunks, as one labeled data set."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from simkit.core.status import Status, stops
from simkit.jobs.lazy_results import ChunkReader, lazy_variable
from simkit.jobs.members import Members
from simkit.jobs.stored_arrays import StoredArray, member_axis
from simkit.jobs.stored_objectives import read_objectives
from simkit.jobs.sweep_objectives import OBJECTIVE, OMITTED_OBJECTIVES, PREFIX, MemberObjectives, objectives_to_compute
from simkit.jobs.totals import FAILURE_STATUSES, is_failure
from simkit.storage import datasets
from simkit.storage.chunk_files import members_layout
from simkit.storage.labels import annotate, attributes_of, components, free_name, oriented
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


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


type Variable = Any
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

    def variable(stored: StoredArray, axes: Sequence[str]) -> Variable:
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
    variable: Callable[[StoredArray, Sequence[str]], Variable],
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
