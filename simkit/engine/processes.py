"""One simulation over several processes or hosts, each of which holds a part of the fields (``jax.distributed``).

Every process runs the same program; the compiler divides it where the state is divided, with the exchange of halos and
the transposes that it needs (`jax.sharding`). The first process stores what is computed, so that a run directory is the
same whatever the number of processes, and any number of them can go on from it.
"""

import contextlib
import dataclasses
import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from simkit.core.random_keys import keyed, plain
from simkit.core.simulation import Params, Simulation, State
from simkit.engine.driver import Drive, Program
from simkit.engine.loop import Piece
from simkit.engine.plan import Plan
from simkit.errors import UserError, one_line
from simkit.storage.store import Store

# Seconds to wait for the other processes to start, and to go without a sign of life of one before it counts as lost.
SECONDS_TO_JOIN, SECONDS_OF_SILENCE = 60, 15
# Signals that stop a run in order: the first process heeds them between two segments, the others follow it.
STOPS = (signal.SIGINT, signal.SIGTERM)
PART = "part"


class DismissedError(Exception):
    """The first process has stopped, so that there is nothing left to do for this one."""


class ProcessGroup:
    """The processes that run one simulation together.

    Attributes:
        count: how many there are.
        index: of this one; 0 is the first.
    """

    def __init__(self, count: int, index: int) -> None:
        self.count, self.index, self._over = count, index, False
        self._signals = _HeldSignals() if self.is_first else None
        self._mesh = Mesh(np.asarray(jax.devices()), (PART,))
        self._whole = NamedSharding(self._mesh, PartitionSpec())
        self._gathered = jax.jit(lambda tree: tree, out_shardings=self._whole)

    @classmethod
    def joined(cls, count: int, index: int, coordinator: str) -> "ProcessGroup":
        """Join the other processes; nothing may have been computed before.

        Args:
            count: how many there are, at least 2.
            index: of this one, from 0.
            coordinator: ``host:port`` of the first process, where it listens.

        Raises:
            UserError: if the numbers do not fit, or the others do not come.
        """
        if count < 2 or not 0 <= index < count:
            raise UserError(f"processes = {count} and process_id = {index} do not fit; count processes from 0")
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UserError(f"coordinator = {coordinator!r:.80} is no address; write host:port, such as 10.0.0.5:8476")
        # JAX would take SIGTERM for itself.
        jax.config.update("jax_enable_preemption_service", False)
        try:
            jax.distributed.initialize(
                coordinator,
                count,
                index,
                initialization_timeout=SECONDS_TO_JOIN,
                heartbeat_timeout_seconds=SECONDS_OF_SILENCE,
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the {count} processes did not meet at {coordinator} ({one_line(error)})") from None
        if index:
            for number in STOPS:
                signal.signal(number, signal.SIG_IGN)
        group = cls(count, index)
        try:
            with _quiet_output():
                group.from_first(np.bool_(True))
        except jax.errors.JaxRuntimeError as error:
            raise UserError(f"the {count} processes found no way to one another ({one_line(error)})") from None
        return group

    @property
    def is_first(self) -> bool:
        """Whether this process stores and reports."""
        return self.index == 0

    def agree(self, *, stop: bool = False) -> None:
        """Wait for all processes, and stop in all of them where the first one has to.

        Args:
            stop: whether the first process stops; a signal that it was sent stops it, too.

        Raises:
            DismissedError: in the other processes, if the first one stops.
            KeyboardInterrupt: in the first one, if it was sent a signal.
        """
        if self._over:
            return
        asked = self._signals is not None and self._signals.received is not None
        self._over = bool(self._from_first(np.bool_(stop or asked)))
        if self._over and self._signals is not None:
            self._signals.let_go()
        elif self._over:
            raise DismissedError

    def leave(self) -> None:
        """Leave the group, when this process has done its part."""
        try:
            self.agree(stop=self.is_first)
        except DismissedError:
            pass
        finally:
            jax.distributed.shutdown()

    def from_first(self, tree: Any) -> Any:
        """Return the arrays that the first process gives.

        Args:
            tree: of arrays, of the same structure and shapes in all processes.
        """
        return jax.tree.map(keyed, tree, self._from_first(jax.tree.map(plain, tree)))

    def whole(self, tree: Any) -> Any:
        """Return arrays that every process holds all of.

        Args:
            tree: of arrays, divided or of this process alone (then with the same numbers in all).
        """
        numbers = jax.tree.map(plain, tree)
        if all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(numbers)):
            # Not `jax.device_put`, which waits for the other processes to compare their numbers.
            return jax.tree.map(keyed, tree, jax.tree.map(self._copied, numbers))
        return jax.tree.map(keyed, tree, self._gathered(numbers))

    def divided(self, tree: Any, layout: Any) -> Any:
        """Return arrays of which every process holds its part.

        Args:
            tree: of arrays with the same numbers in all processes.
            layout: of `layout`.
        """
        return jax.jit(lambda tree: tree, out_shardings=layout)(self.whole(tree))

    def layout(self, template: State) -> Any:
        """Return how the arrays of a state are divided: all along one axis, those that it does not divide not at all.

        Args:
            template: the state, or its shapes.

        Raises:
            UserError: if no field has an axis that the processes divide evenly.
        """
        devices = self._mesh.size

        def is_cut(leaf: Any, axis: int) -> bool:
            return leaf.ndim > max(axis, 1) and leaf.shape[axis] >= devices and leaf.shape[axis] % devices == 0

        leaves = jax.tree.leaves(template)
        sizes = [sum(leaf.size for leaf in leaves if is_cut(leaf, axis)) for axis in range(3)]
        if not max(sizes):
            raise UserError(
                f"processes = {devices} do not divide the cells along any axis of this simulation; choose numbers of "
                "cells of which one is a multiple of that"
            )
        axis = sizes.index(max(sizes))
        cut = NamedSharding(self._mesh, PartitionSpec(*[None] * axis, PART))
        return jax.tree.map(lambda leaf: cut if is_cut(leaf, axis) else self._whole, template)

    def program(self, simulation: Simulation, plan: Plan) -> Program:
        """Return the program of a simulation whose state is divided.

        Args:
            simulation: what it runs.
            plan: steps and frames.

        Raises:
            UserError: if it has buffers that grow, or cannot be divided.
        """
        if simulation.sized_like is not None:
            raise UserError(
                "a simulation with buffers that grow, such as neighbor lists, runs in one process; leave processes out"
            )
        template = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
        layout = self.layout(template)
        return Program.of(simulation, plan, functools.partial(jax.jit, out_shardings=(layout, self._whole)))

    def _copied(self, leaf: Any) -> jax.Array:
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, self._whole, lambda part: array[part])

    def _from_first(self, tree: Any) -> Any:
        from jax.experimental.multihost_utils import broadcast_one_to_all

        return broadcast_one_to_all(tree, is_source=self.is_first)


@contextlib.contextmanager
def _quiet_output() -> Iterator[None]:
    """Keep what the library that connects processes prints from standard output, which may be read by a machine."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


class _HeldSignals:
    """Signals that stop a run, held back: in the midst of a segment the other processes would wait for this one.

    Attributes:
        received: the number of the first one, or ``None``.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[int, Any] = {number: signal.signal(number, self._receive) for number in STOPS}

    def let_go(self) -> None:
        """Let the former handlers have what was received."""
        for number, handler in self._former.items():
            signal.signal(number, handler)
        handler = self._former.get(self.received) if self.received is not None else None
        if callable(handler) and self.received is not None:
            handler(self.received, None)

    def _receive(self, number: int, frame: object) -> None:
        self.received = self.received or number


@dataclasses.dataclass(frozen=True)
class SharedDrive(Drive):
    """One simulation that a group of processes runs together, as `simkit.engine.loop.Work`.

    Attributes:
        group: of the processes.
    """

    group: ProcessGroup

    @classmethod
    def of(cls, group: ProcessGroup, program: Program, params: Params, key: jax.Array, plan: Plan) -> "SharedDrive":
        """Return the work of a process of a group.

        Args:
            group: of the processes.
            program: of `ProcessGroup.program`.
            params: the simulation's parameters, the same in all processes.
            key: likewise.
            plan: steps and frames.
        """
        return cls(program, group.whole(params), group.whole(key), plan, group)

    def advance(self, piece: Piece) -> tuple[Drive, Piece]:
        """Return the next segment, if the first process goes on."""
        self.group.agree()
        return super().advance(piece)


class SharedStore(Store):
    """The store of the first process, which the others write to and read from through it.

    Args:
        group: of the processes.
        store: where the first process stores; ``None`` in the others.
    """

    def __init__(self, group: ProcessGroup, store: Store | None) -> None:
        self._group, self._store = group, store

    def create(self) -> None:
        """Make the folders."""
        if self._store:
            self._store.create()

    def write(self, index: int, state: State, arrays: dict[str, np.ndarray]) -> None:
        """Store a segment and the state in which it ends, all parts of it together."""
        state = self._group.whole(state)
        if self._store:
            self._store.write(index, state, arrays)

    def restore(
        self, template: State, warn: Callable[[str], None], *, advance: Callable[[State], Any] | None = None
    ) -> tuple[int, State, dict[str, np.ndarray]] | None:
        """Return the newest state from which the run can go on, divided among the processes."""
        self._group.agree()
        found = self._store.restore(template, warn, advance=advance) if self._store else None
        stands = (found[0], found[2]["status"][-1]) if found else (-1, 0)
        index, status = (int(number) for number in self._group.from_first(np.asarray(stands, np.int32)))
        if index < 0:
            return None
        numbers = jax.eval_shape(lambda tree: jax.tree.map(plain, tree), template)
        empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), numbers)
        state = found[1] if found else jax.tree.map(keyed, template, empty)
        state = self._group.divided(self._group.from_first(state), self._group.layout(template))
        return index, state, found[2] if found else {"status": np.asarray([status], np.int32)}

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return the stored segments in order; none in the other processes."""
        return self._store.read() if self._store else []
