"""The work of a sweep: its members, in chunks or through lanes, and the labeled result."""

import dataclasses
import functools
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.engine.plan import plan_of
from simkit.jobs.job import Prepared, Report, Warn
from simkit.storage import datasets
from simkit.storage.archives import write_arrays
from simkit.storage.chunk_files import ChunkFile, chunk_layout, lanes_layout
from simkit.storage.labels import annotate, attributes_of, components, oriented
from simkit.storage.regular_files import check_folder
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import jax
    import xarray

    from simkit.core.simulation import Params, Simulation
    from simkit.engine.driver import Program
    from simkit.engine.loop import Piece
    from simkit.engine.plan import Plan
    from simkit.jobs.sweeps import Sweep


def program_of_chunk(simulation: "Simulation", plan: "Sweep") -> "Program":
    """Return the program of a chunk of members, which observes nothing on its way."""
    from simkit.core.ensemble import ensemble
    from simkit.engine.driver import Program

    # Frames of every member at every time would not fit anywhere; the last one is observed at the end.
    many = dataclasses.replace(ensemble(simulation, list(plan.over)), observe=lambda state, params: {})
    return Program.of(many, cut_of(simulation, plan))


def cut_of(simulation: "Simulation", plan: "Sweep") -> "Plan":
    """Return how the run of a member is cut into segments."""
    from simkit.engine.lanes import SEGMENTS

    cut = plan_of(plan.scenario)
    return dataclasses.replace(cut, least_segments=SEGMENTS) if simulation.converges else cut


def spread_of(members: int) -> "jax.sharding.Sharding | None":
    """Return how members are spread over the local devices, if they can be spread evenly."""
    import jax

    devices = jax.local_devices()
    if len(devices) == 1 or members % len(devices):
        return None
    mesh = jax.sharding.Mesh(np.asarray(devices), ("member",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))


def inputs_of(simulation: "Simulation", plan: "Sweep", members: np.ndarray) -> tuple["Params", "jax.Array"]:
    """Return the params and keys of members.

    Args:
        simulation: the member.
        plan: the sweep.
        members: their numbers, (n,).
    """
    import jax
    import jax.numpy as jnp

    values, seeds = plan.values_of(members)
    known = paths.leaves(simulation.params)
    swept = {name: jnp.asarray(array, dtype=known[name].dtype) for name, array in values.items()}
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, dtype=jnp.uint32))
    if spread := spread_of(len(members)):
        swept, keys = jax.device_put((swept, keys), spread)
    return paths.replaced(simulation.params, swept), keys


def run_members(
    plan: "Sweep", prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
) -> "xarray.Dataset":
    """Run every chunk that is not stored yet and return the labeled result.

    Members that run a fixed number of steps go in chunks of one size, the last one padded with repeats of its last
    member. Those that end when they are done make one chunk of all, through as many lanes as a chunk is large.

    Args:
        plan: the sweep.
        prepared: the member, and the program of a chunk, which every chunk uses, so that it is compiled once.
        directory: where chunks are stored, or ``None``.
        report: told of progress.
        warn: told in one line what was damaged.
    """
    import jax

    from simkit.engine.driver import Drive, final_status
    from simkit.engine.lanes import Queue
    from simkit.engine.loop import run_all

    simulation, program = prepared.simulation, prepared.program
    cut, together = cut_of(simulation, plan), plan.chunk or plan.members
    axes = paths.axes(simulation.params, plan.over)
    observe = jax.jit(jax.vmap(simulation.observe, in_axes=(0, axes))) if plan.final_frames else lambda *_: {}
    chunks = 1 if simulation.converges else -(-plan.members // together)
    results = []
    for index in range(chunks):
        file = ChunkFile(directory, index, cut.frames + 1) if directory else None
        stored = file.read(warn) if file else None
        if stored is None:
            store = file.store(lanes_layout if simulation.converges else chunk_layout) if file else None
            if simulation.converges:
                inputs = functools.partial(inputs_of, simulation, plan)
                queue = Queue(program, cut, plan.members, together, inputs, observe)
                arrays, observed = queue.run(store, report, warn)
            else:

                def on_piece(piece: "Piece", index: int = index) -> None:
                    report((index + piece.index / cut.segments) / chunks, f"chunk {index + 1} of {chunks}")

                members = np.minimum(index * together + np.arange(together), plan.members - 1)
                params, keys = inputs_of(simulation, plan, members)
                pieces, last = run_all(Drive(program, params, keys, cut), store, warn, on_piece)
                arrays = datasets.join(pieces)
                observed = observe(last.state, params)
            stored = _frozen(arrays, cut.frames + 1, {name: np.asarray(array) for name, array in observed.items()})
            stored["status"] = final_status(simulation, stored["status"])
            if file:
                write_arrays(file.path, stored, file.seal)
        if file and check_folder(file.folder):
            # A finished chunk is whole in its file; what it left on the way there is needed no more.
            shutil.rmtree(file.folder)
        results.append(stored)
    return _assemble(simulation, plan, results)


def _frozen(arrays: Mapping[str, np.ndarray], frames: int, observed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
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
    frozen = {name: np.take_along_axis(array, rows, axis=0) for name, array in arrays.items()}
    frozen["status"] = frozen["status"][-1]
    failed = frozen["status"] == Status.NON_FINITE
    for name, array in observed.items():
        if failed.any() and np.issubdtype(array.dtype, np.floating):
            array = np.where(failed.reshape(-1, *[1] * (array.ndim - 1)), np.full_like(array, np.nan), array)
        frozen[f"observed.{name}"] = array
    return frozen


def _assemble(simulation: "Simulation", plan: "Sweep", chunks: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    import xarray

    from simkit.core.status import Status, failed

    def members(name: str, axis: int) -> np.ndarray:
        joined = np.concatenate([chunk[name] for chunk in chunks], axis=axis)
        joined = np.moveaxis(joined, axis, 0)[: plan.members]
        return joined.reshape(plan.shape + joined.shape[1:])

    grid = plan.axes
    taken = {*grid, *plan.over, "frame", "status"}
    observed, diagnosed = datasets.split(chunks[0])
    variables: dict[str, Any] = {}
    for name in diagnosed:
        # A diagnostic may repeat a swept parameter, and a name may be both diagnosed in time and observed at the end.
        free = f"diagnosed_{name}" if name in taken else name
        variables[free] = ((*grid, "frame"), members(f"diagnosed.{name}", 1))
    for name, array in observed.items():
        named = simulation.dimensions.get(name) or tuple(f"{name}_{axis}" for axis in range(array.ndim - 1))
        free = f"final_{name}" if name in taken or name in variables else name
        variables[free] = oriented((*grid, *named), members(f"observed.{name}", 0))
    names = np.array([status.name.lower() for status in Status])
    status = members("status", 0)
    variables["status"] = (grid, names[status])
    used = {dimension for names, _ in variables.values() for dimension in names}
    coordinates: dict[str, Any] = {
        **plan.points.coordinates,
        "seed": np.arange(plan.scenario.run.seed, plan.scenario.run.seed + plan.seeds, dtype=np.int32),
        **{name: values for name, values in simulation.coordinates.items() if name in used},
    }
    counts = {"members": plan.members, "failed": int(failed(status).sum())}
    attributes = attributes_of(plan.scenario, without=tuple(plan.over)) | counts
    if plan.origin:
        attributes["points"] = plan.origin
    dataset = xarray.Dataset(variables, coords=coordinates, attrs=attributes)
    dataset = dataset.assign_coords(components(dataset.sizes))
    annotate(dataset, datasets.labels_of(simulation)["quantities"], plan.scenario)
    return dataset
