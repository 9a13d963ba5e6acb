"""Arrays of a sweep's members: as each was when it stopped, joined over chunks, and as one labeled data set."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.jobs.members import Members
from simkit.jobs.stored_arrays import StoredArray, member_axis
from simkit.jobs.sweep_objectives import LEFT_OUT, PREFIX, objective_values, objectives_to_compute
from simkit.storage import datasets
from simkit.storage.chunk_files import members_layout
from simkit.storage.labels import annotate, attributes_of, components, oriented
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def joined(name: str, arrays: Sequence[np.ndarray], members: int) -> np.ndarray:
    """Return an array of several chunks, of the first ``members`` in them; the others only fill up a chunk.

    Args:
        name: of the array in a chunk.
        arrays: that of each chunk.
        members: how many count.
    """
    axis = member_axis(name)
    every = np.concatenate(arrays, axis=axis)
    return every[:, :members] if axis else every[:members]


def frozen(arrays: Mapping[str, np.ndarray], frames: int, observed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a chunk's arrays, and one status per member, as they were when it stopped, whatever the other members do.

    Args:
        arrays: diagnostics and status (frame, member); fewer frames than ``frames`` if all members stopped early.
        frames: how many there shall be.
        observed: last frames (member, ...); those of a member that failed mean nothing and become NaN.
    """
    from simkit.core.status import Status, stops

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


def in_memory(simulation: "Simulation", plan: Members, chunks: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    """Return the labeled result of a sweep, all of it in memory.

    Args:
        simulation: the member.
        plan: the sweep.
        chunks: arrays of every chunk, in order.
    """
    from simkit.core.status import failed

    def every_member(name: str) -> np.ndarray:
        return joined(name, [chunk[name] for chunk in chunks], plan.members)

    def in_a_row(name: str) -> np.ndarray:
        return np.moveaxis(every_member(name), member_axis(name), 0)

    def variable(stored: StoredArray, axes: Sequence[str]) -> Variable:
        every = stored.of(every_member(stored.name))
        return (*plan.axes, *axes), every.reshape(plan.shape + every.shape[1:])

    labels = datasets.labels_of(simulation)
    described = {name: (array.dtype, _of_member(name, array.shape)) for name, array in chunks[0].items()}
    observed, diagnosed = datasets.split(described)
    measured, left_out = objective_values(
        simulation,
        plan.scenario,
        objectives_to_compute(plan.objectives),
        {name: in_a_row(f"observed.{name}") for name in observed},
        {name: in_a_row(f"diagnosed.{name}") for name in diagnosed},
        in_a_row("status"),
    )
    result = _labeled(plan, labels, described, variable, measured, left_out)
    return result.assign_attrs(members=plan.members, failed=int(failed(result["status"].values).sum()))


def on_disk(plan: Members, directory: RunDirectory) -> "xarray.Dataset":
    """Return the labeled result of a sweep whose chunks are all stored, read from there as far as it is used.

    Args:
        plan: the sweep.
        directory: where it is kept.
    """
    from simkit.jobs.lazy_results import ChunkReader, lazy_variable

    request, frames = directory.manifest["request"], plan.cut.frames + 1
    # Only members that end when they are done make several blocks.
    reader = ChunkReader(directory, frames, plan.chunk_length(converges=plan.blocks > 1))
    grid = dict(zip(plan.axes, plan.shape, strict=True))
    layout = members_layout(request, frames).arrays
    described = {name: (dtype, _of_member(name, shape)) for name, (dtype, shape) in layout.items()}
    result = _labeled(
        plan,
        request["labels"],
        described,
        lambda stored, axes: lazy_variable(reader, stored, grid, axes),
        left_out=list(objectives_to_compute(plan.objectives)),
    )
    return result.assign_attrs(members=plan.members)


def _of_member(name: str, shape: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of one member's part of a chunk's array."""
    axis = member_axis(name)
    return (*shape[:axis], *shape[axis + 1 :])


def _labeled(
    plan: Members,
    labels: Mapping[str, Any],
    described: Mapping[str, tuple[Any, tuple[int, ...]]],
    variable: Callable[[StoredArray, Sequence[str]], Variable],
    measured: Mapping[str, np.ndarray] = MappingProxyType({}),
    left_out: Sequence[str] = (),
) -> "xarray.Dataset":
    """Return the labeled result of a sweep.

    Args:
        plan: the sweep.
        labels: as `simkit.storage.datasets.labels_of` returns them.
        described: type and shape of each array of one member.
        variable: makes one of an array, given the names of the axes of one member.
        measured: objectives of members by name, (members,).
        left_out: names of objectives that are not among them.
    """
    import xarray

    from simkit.core.status import Status

    taken = {*plan.axes, *plan.over, "frame", "status"}
    observed, diagnosed = datasets.split(described)
    variables: dict[str, Any] = {}
    for name, (dtype, shape) in diagnosed.items():
        # A diagnostic may repeat a swept parameter, and a name may be both diagnosed in time and observed at the end.
        free = f"diagnosed_{name}" if name in taken else name
        variables[free] = variable(StoredArray(f"diagnosed.{name}", np.dtype(dtype), shape), ("frame",))
    for name, (dtype, shape) in observed.items():
        named = tuple(labels["dimensions"].get(name) or (f"{name}_{axis}" for axis in range(len(shape))))
        free = f"final_{name}" if name in taken or name in variables else name
        axes, turned = oriented(named, np.broadcast_to(np.zeros(()), shape))
        stored = StoredArray(f"observed.{name}", np.dtype(dtype), turned.shape, axes != named)
        variables[free] = variable(stored, axes)
    objectives = {(f"{PREFIX}{n}" if n in taken or n in variables else n): n for n in measured}
    for free, name in objectives.items():
        variables[free] = (plan.axes, measured[name].reshape(plan.shape), {"long_name": plan.objectives[name].doc})
    names = np.array([status.name.lower() for status in Status])
    variables["status"] = variable(StoredArray("status", np.dtype(np.int32), (), words=names), ())
    dataset = xarray.Dataset(variables)
    coordinates: dict[str, Any] = {
        **plan.points.coordinates,
        "seed": np.arange(plan.scenario.run.seed, plan.scenario.run.seed + plan.seeds, dtype=np.int32),
        **{name: values for name, values in labels["coordinates"].items() if name in dataset.dims},
    }
    attributes = attributes_of(plan.scenario, without=tuple(plan.over))
    if left_out:
        attributes[LEFT_OUT] = ", ".join(left_out)
    if plan.origin:
        attributes["points"] = plan.origin
    dataset = dataset.assign_coords(coordinates).assign_attrs(attributes)
    dataset = dataset.assign_coords(components(dataset.sizes))
    annotate(dataset, labels["quantities"], plan.scenario)
    return dataset
