"""Arrays of a sweep's members: as each was when it stopped, joined over chunks, and as one labeled data set."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.jobs.members import Members
from simkit.jobs.sweep_objectives import LEFT_OUT, PREFIX, objective_values
from simkit.storage import datasets
from simkit.storage.labels import annotate, attributes_of, components, oriented

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation


def member_axis(name: str) -> int:
    """Return the axis of a chunk's array along which its members are: diagnostics have their frames first."""
    return int(name.startswith("diagnosed."))


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


def assembled(simulation: "Simulation", plan: Members, chunks: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    """Return the labeled result of a sweep.

    Args:
        simulation: the member.
        plan: the sweep.
        chunks: arrays of every chunk, in order.
    """
    import xarray

    from simkit.core.status import Status, failed

    def in_a_row(name: str) -> np.ndarray:
        return np.moveaxis(joined(name, [chunk[name] for chunk in chunks], plan.members), member_axis(name), 0)

    def members(name: str) -> np.ndarray:
        every = in_a_row(name)
        return every.reshape(plan.shape + every.shape[1:])

    grid = plan.axes
    taken = {*grid, *plan.over, "frame", "status"}
    observed, diagnosed = datasets.split(chunks[0])
    variables: dict[str, Any] = {}
    for name in diagnosed:
        # A diagnostic may repeat a swept parameter, and a name may be both diagnosed in time and observed at the end.
        free = f"diagnosed_{name}" if name in taken else name
        variables[free] = ((*grid, "frame"), members(f"diagnosed.{name}"))
    for name, array in observed.items():
        named = simulation.dimensions.get(name) or tuple(f"{name}_{axis}" for axis in range(array.ndim - 1))
        free = f"final_{name}" if name in taken or name in variables else name
        variables[free] = oriented((*grid, *named), members(f"observed.{name}"))
    measured, left_out = objective_values(
        simulation,
        plan.scenario,
        {name: in_a_row(f"observed.{name}") for name in observed},
        {name: in_a_row(f"diagnosed.{name}") for name in diagnosed},
        in_a_row("status"),
    )
    objectives = {(f"{PREFIX}{n}" if n in taken or n in variables else n): n for n in measured}
    for free, name in objectives.items():
        variables[free] = (grid, measured[name].reshape(plan.shape), {"long_name": plan.scenario.objectives[name].doc})
    names = np.array([status.name.lower() for status in Status])
    status = members("status")
    variables["status"] = (grid, names[status])
    used = {dimension for names, *_ in variables.values() for dimension in names}
    coordinates: dict[str, Any] = {
        **plan.points.coordinates,
        "seed": np.arange(plan.scenario.run.seed, plan.scenario.run.seed + plan.seeds, dtype=np.int32),
        **{name: values for name, values in simulation.coordinates.items() if name in used},
    }
    counts = {"members": plan.members, "failed": int(failed(status).sum())}
    attributes = attributes_of(plan.scenario, without=tuple(plan.over)) | counts
    if left_out:
        attributes[LEFT_OUT] = ", ".join(left_out)
    if plan.origin:
        attributes["points"] = plan.origin
    dataset = xarray.Dataset(variables, coords=coordinates, attrs=attributes)
    dataset = dataset.assign_coords(components(dataset.sizes))
    annotate(dataset, datasets.labels_of(simulation)["quantities"], plan.scenario)
    return dataset
