"""Chunks of a sweep: which members each has, and how it is computed and stored."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.jobs.assembly import frozen, joined
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.job import Prepared
from simkit.jobs.members import Members
from simkit.storage import datasets
from simkit.storage.archives import write_arrays
from simkit.storage.chunk_files import ChunkFile, chunk_layout, lanes_layout
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import jax

    from simkit.core.simulation import Params, Simulation
    from simkit.engine.driver import Program
    from simkit.engine.loop import Piece
    from simkit.engine.plan import Plan


def program_of_chunk(simulation: "Simulation", plan: Members) -> "Program":
    """Return the program of a chunk of members, which observes nothing on its way."""
    from simkit.core.ensemble import ensemble
    from simkit.engine.driver import Program

    # Frames of every member at every time would not fit anywhere; the last one is observed at the end.
    many = dataclasses.replace(ensemble(simulation, list(plan.over)), observe=lambda state, params: {})
    return Program.of(many, cut_of(simulation, plan))


def cut_of(simulation: "Simulation", plan: Members) -> "Plan":
    """Return how the run of a member is cut into segments."""
    from simkit.engine.lanes import SEGMENTS

    cut = plan.cut
    return dataclasses.replace(cut, least_segments=SEGMENTS) if simulation.converges else cut


def spread_of(members: int) -> "jax.sharding.Sharding | None":
    """Return how members are spread over the local devices, if they can be spread evenly."""
    import jax

    devices = jax.local_devices()
    if len(devices) == 1 or members % len(devices):
        return None
    mesh = jax.sharding.Mesh(np.asarray(devices), ("member",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))


def inputs_of(simulation: "Simulation", plan: Members, members: np.ndarray) -> tuple["Params", "jax.Array"]:
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


@dataclasses.dataclass(frozen=True)
class Chunks:
    """The members of a sweep in chunks, each of which can be computed alone, by any process that sees the directory.

    Members that run a fixed number of steps make chunks of one size, the last one padded with repeats of its last
    member. Those that end when they are done make blocks, each through as many lanes as a chunk is large.

    Attributes:
        plan: the sweep.
        prepared: the member, and the program of a chunk, which every chunk uses, so that it is compiled once.
        directory: where chunks are stored, or ``None``.
    """

    plan: Members
    prepared: Prepared
    directory: RunDirectory | None

    @property
    def cut(self) -> "Plan":
        """How the run of a member is cut into segments."""
        return cut_of(self.prepared.simulation, self.plan)

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.plan.members // self._length)

    @property
    def one_by_one(self) -> bool:
        """Whether members end when they are done, each at its own time; the others end together."""
        return self.prepared.simulation.converges

    @property
    def home(self) -> RunDirectory:
        """Where chunks are stored; there is one wherever they are computed by other processes."""
        assert self.directory is not None  # checked where the sweep begins
        return self.directory

    def members(self, index: int) -> range:
        """Return the numbers of the members of a chunk.

        Args:
            index: of the chunk.
        """
        return range(index * self._length, min((index + 1) * self._length, self.plan.members))

    def file(self, index: int) -> ChunkFile | None:
        """Return where a chunk is kept, if there is a directory.

        Args:
            index: of the chunk.
        """
        return ChunkFile(self.directory, index, self.cut.frames + 1) if self.directory else None

    def stored(self, index: int, warn: Warn) -> dict[str, np.ndarray] | None:
        """Return the arrays of a chunk, or ``None`` if it is not finished or damaged.

        Args:
            index: of the chunk.
            warn: called with one line about damage.
        """
        file = self.file(index)
        found = file.read(warn) if file else None
        if file and found is not None:
            file.remove_segments()
        return found

    def read(self, index: int) -> dict[str, np.ndarray]:
        """Return the arrays of a finished chunk.

        Args:
            index: of the chunk.

        Raises:
            DamagedFileError: if its file is missing, damaged or not of this chunk.
        """
        return ChunkFile(self.home, index, self.cut.frames + 1).read_whole()

    def compute(
        self, index: int, report: Report, warn: Warn, *, parts: int = 1, keeps_segments: bool = True
    ) -> dict[str, np.ndarray]:
        """Return the arrays of a chunk, computed as far as they are not stored yet, and store them.

        Args:
            index: of the chunk.
            report: called with the progress within the chunk.
            warn: called with one line that says what was damaged.
            parts: into how many the chunk is divided to take less memory; what is left of a chunk that was begun whole
                is then not gone on with, and its last digits may differ.
            keeps_segments: whether segments are stored on the way, from which the chunk goes on if it is interrupted;
                two processes must not do so for one chunk.
        """
        file, members = self.file(index), self.members(index)
        if parts == 1:
            computed = self._computed(members, file if keeps_segments else None, self._together, report, warn)
        else:
            size = -(-self._together // parts)
            step = len(members) if self.one_by_one else size
            pieces = [range(first, min(first + step, members.stop)) for first in members[::step]]
            found = [self._computed(piece, None, size, report, warn) for piece in pieces]
            computed = {name: joined(name, [one[name] for one in found], len(members)) for name in found[0]}
        if file:
            write_arrays(file.path, computed, file.seal)
            file.remove_segments()
        return computed

    @property
    def _length(self) -> int:
        return self.plan.chunk_length(converges=self.one_by_one)

    @property
    def _together(self) -> int:
        return self.plan.chunk or self.plan.members

    def _computed(
        self, members: range, file: ChunkFile | None, together: int, report: Report, warn: Warn
    ) -> dict[str, np.ndarray]:
        """Return the arrays of members, ``together`` at a time."""
        from simkit.engine.driver import Drive, final_status
        from simkit.engine.lanes import Queue
        from simkit.engine.loop import run_all

        simulation, cut = self.prepared.simulation, self.cut
        if self.one_by_one:

            def inputs(numbers: np.ndarray) -> tuple["Params", "jax.Array"]:
                return inputs_of(simulation, self.plan, members.start + numbers)

            store = file.store(lanes_layout) if file else None
            queue = Queue(self.prepared.program, cut, len(members), together, inputs, self._observe)
            arrays, observed = queue.run(store, report, warn)
        else:

            def on_piece(piece: "Piece") -> None:
                report(piece.index / cut.segments, "")

            store = file.store(chunk_layout) if file else None
            numbers = np.minimum(members.start + np.arange(together), members.stop - 1)
            params, keys = inputs_of(simulation, self.plan, numbers)
            pieces, last = run_all(Drive(self.prepared.program, params, keys, cut), store, warn, on_piece)
            arrays, observed = datasets.join(pieces), self._observe(last.state, params)
        stored = frozen(arrays, cut.frames + 1, {name: np.asarray(array) for name, array in observed.items()})
        stored["status"] = final_status(simulation, stored["status"])
        return stored

    @functools.cached_property
    def _observe(self) -> Any:
        import jax

        if not self.plan.final_frames:
            return lambda *_: {}
        simulation = self.prepared.simulation
        axes = paths.axes(simulation.params, self.plan.over)
        return jax.jit(jax.vmap(simulation.observe, in_axes=(0, axes)))
