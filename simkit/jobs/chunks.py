"""Chunks of a sweep: their members, computation and storage."""

import contextlib
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.devices import devices, platform
from simkit.core.ensemble import ensemble
from simkit.core.simulation import Params, Simulation
from simkit.core.status import BROKEN, stops
from simkit.engine.driver import Drive, Plan, Program, Segment, final_status, run_all
from simkit.engine.lanes import SEGMENTS, Queue
from simkit.jobs.job import Prepared
from simkit.jobs.points import Members
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.sweep_datasets import member_axis
from simkit.storage import datasets
from simkit.storage.chunk_files import ChunkFile, chunk_layout, lanes_layout
from simkit.storage.files import write_arrays
from simkit.storage.run_directory import RunDirectory


def program_of_chunk(simulation: "Simulation", sweep: Members) -> "Program":
    """Return the program of a chunk of members, which stores no frames."""
    # Frames of all members would not fit in memory; the last one is observed after the run.
    many = dataclasses.replace(ensemble(simulation, list(sweep.over)), observe=lambda state, params: {})
    return Program.of(many, member_plan(simulation, sweep))


def member_plan(simulation: "Simulation", sweep: Members) -> "Plan":
    """Return the plan of a member's run: steps, frames and segments."""
    plan = sweep.plan
    return dataclasses.replace(plan, least_segments=SEGMENTS) if simulation.converges else plan


def devices_of_members() -> list[Any]:
    """Return the devices over which the members of a chunk are divided; none for a CPU or a single device.

    The cores of a CPU compute different chunks, see `simkit.jobs.executors.in_this_process`: a chunk then has the same
    bytes on any number of cores.
    """
    local = devices(local=True)
    return local if len(local) > 1 and platform() != "cpu" else []


def cores_for_chunks() -> list[Any]:
    """Return the devices that JAX makes of a CPU; none on other devices, or if the user has set a device in JAX."""
    return devices(local=True) if platform() == "cpu" and jax.config.jax_default_device in (None, "cpu") else []


def member_sharding(members: int) -> "jax.sharding.Sharding | None":
    """Return the sharding of members over the local devices; ``None`` for one device or an uneven division."""
    local = devices_of_members()
    if not local or members % len(local):
        return None
    mesh = jax.sharding.Mesh(np.asarray(local), ("member",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))


def member_inputs(simulation: "Simulation", sweep: Members, members: np.ndarray) -> tuple["Params", "jax.Array"]:
    """Return the params and keys of members, given by index, int (n,)."""
    values, seeds = sweep.values_of(members)
    default = paths.leaves(simulation.params)
    swept = {name: jnp.asarray(array, dtype=default[name].dtype) for name, array in values.items()}
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, dtype=jnp.uint32))
    if sharding := member_sharding(len(members)):
        swept, keys = jax.device_put((swept, keys), sharding)
    return paths.replaced(simulation.params, swept), keys


@dataclasses.dataclass(frozen=True)
class Chunks:
    """Chunks of a sweep, which do not depend on each other and can be computed by any process that sees the directory.

    Members with a fixed number of steps are divided into chunks of equal size, the last one padded with copies of its
    last member. Converging members are divided into blocks; each block is stored as a chunk and runs in as many lanes
    as the chunk size.

    Attributes:
        sweep: the sweep.
        prepared: simulation of one member, and the program of a chunk, compiled once for all chunks.
        directory: run directory of the sweep, or ``None``.
    """

    sweep: Members
    prepared: Prepared
    directory: RunDirectory | None

    @property
    def plan(self) -> "Plan":
        """Plan of a member's run: steps, frames and segments."""
        return member_plan(self.prepared.simulation, self.sweep)

    @property
    def length(self) -> int:
        """Number of members in each chunk but the last."""
        return self.sweep.chunk_length(converges=self.uses_lanes)

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.sweep.members // self.length)

    @property
    def together(self) -> int:
        """Number of members, or lanes, of the compiled program."""
        return self.sweep.chunk or self.sweep.members

    @property
    def uses_lanes(self) -> bool:
        """Whether members run in lanes, since each converges at its own time; others end with their chunk."""
        return self.prepared.simulation.converges

    @property
    def run_directory(self) -> RunDirectory:
        """Run directory of the sweep, which exists if other processes compute the chunks."""
        assert self.directory is not None  # see `Sweep.check_folder`
        return self.directory

    def members(self, index: int) -> range:
        """Return the indices of the members of a chunk."""
        return range(index * self.length, min((index + 1) * self.length, self.sweep.members))

    def file(self, index: int) -> ChunkFile | None:
        """Return the storage of a chunk, or ``None`` without a run directory."""
        return ChunkFile(self.directory, index, self.plan.frames + 1) if self.directory else None

    def stored(self, index: int, warn: Warn) -> dict[str, np.ndarray] | None:
        """Return the stored arrays of a chunk, or ``None`` if it is unfinished, or damaged, of which one line warns."""
        file = self.file(index)
        arrays = file.read(warn) if file else None
        if file and arrays is not None:
            file.remove_segments()
        return arrays

    def read(self, index: int) -> dict[str, np.ndarray]:
        """Return the arrays of a finished chunk."""
        return ChunkFile(self.run_directory, index, self.plan.frames + 1).read_whole()

    def compute(
        self, index: int, report: Report, warn: Warn, *, parts: int = 1, keeps_segments: bool = True
    ) -> dict[str, np.ndarray]:
        """Compute a chunk, resuming from its stored segments, store it and return its arrays.

        Args:
            index: index of the chunk.
            report: called with the progress within the chunk.
            warn: called with one line about damaged files.
            parts: number of parts computed one after another to save memory; more than one ignores the segments stored
                before, and the last digits of the result may differ.
            keeps_segments: whether segments are stored, from which an interrupted chunk resumes; only one process may
                do so for a chunk.
        """
        file, members = self.file(index), self.members(index)
        if parts == 1:
            arrays = self._computed(members, file if keeps_segments else None, self.together, report, warn)
        else:
            size = -(-self.together // parts)
            step = len(members) if self.uses_lanes else size
            ranges = [range(first, min(first + step, members.stop)) for first in members[::step]]
            pieces = [self._computed(part, None, size, report, warn) for part in ranges]
            arrays = {}
            for name in pieces[0]:
                axis = member_axis(name)
                padded = np.concatenate([piece[name] for piece in pieces], axis=axis)
                arrays[name] = padded[:, : len(members)] if axis else padded[: len(members)]
        if file:
            write_arrays(file.path, arrays, file.seal)
            file.remove_segments()
        return arrays

    def _computed(
        self, members: range, file: ChunkFile | None, together: int, report: Report, warn: Warn
    ) -> dict[str, np.ndarray]:
        """Return the arrays of members, computed ``together`` at a time."""
        simulation, plan = self.prepared.simulation, self.plan
        if self.uses_lanes:

            def inputs(numbers: np.ndarray) -> tuple["Params", "jax.Array"]:
                return member_inputs(simulation, self.sweep, members.start + numbers)

            queue = Queue(self.prepared.program, plan, len(members), together, inputs, self._observe)
            with file.store(lanes_layout) if file else contextlib.nullcontext() as store:
                arrays, observed = queue.run(store, report, warn)
        else:

            def on_segment(segment: "Segment") -> None:
                report(segment.index / plan.segments, "")

            numbers = np.minimum(members.start + np.arange(together), members.stop - 1)
            params, keys = member_inputs(simulation, self.sweep, numbers)
            work = Drive(self.prepared.program, params, keys, plan)
            with file.store(chunk_layout) if file else contextlib.nullcontext() as store:
                segments, last = run_all(work, store, warn, on_segment)
            arrays, observed = datasets.join(segments), self._observe(last.state, params)
        stored = _held_at_stop(arrays, plan.frames + 1, {name: np.asarray(array) for name, array in observed.items()})
        stored["status"] = final_status(simulation, stored["status"])
        return stored

    @functools.cached_property
    def _observe(self) -> Any:
        if not self.sweep.final_frames:
            return lambda *_: {}
        simulation = self.prepared.simulation
        axes = paths.axes(simulation.params, self.sweep.over)
        return jax.jit(jax.vmap(simulation.observe, in_axes=(0, axes)))


def _held_at_stop(
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
    held = {name: np.take_along_axis(array, rows, axis=0) for name, array in arrays.items()}
    held["status"] = held["status"][-1]
    failed = np.isin(held["status"], BROKEN)
    for name, array in observed.items():
        if failed.any() and np.issubdtype(array.dtype, np.floating):
            array = np.where(failed.reshape(-1, *[1] * (array.ndim - 1)), np.full_like(array, np.nan), array)
        held[f"observed.{name}"] = array
    return held
