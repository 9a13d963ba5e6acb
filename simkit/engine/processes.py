"""Process groups: one simulation over several processes or hosts, each with a part of the fields (``jax.distributed``).

Every process runs the same program; the compiler partitions it along the sharded axis of the state, with the halo
exchanges and transposes that this needs (`jax.sharding`). The first process stores the results, so the run directory
does not depend on the number of processes, and any number of them can resume from it.
"""

import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from simkit.core.pytrees import keyed, plain
from simkit.core.simulation import Params, Simulation, State
from simkit.engine.driver import Drive, Plan, Program, Segment
from simkit.errors import UserError, one_line
from simkit.scenario import checks
from simkit.storage.store import Store

# Seconds to wait for the other processes to start, and without a heartbeat until a process counts as lost.
JOIN_TIMEOUT, HEARTBEAT_TIMEOUT = 60, 15
# Signals that stop a run in order: handled by the first process between two segments, and ignored by the others.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU)
PART = "part"


class FirstProcessStoppedError(Exception):
    """The first process has stopped, so this one stops too."""


class ProcessGroup:
    """The processes that run one simulation together.

    Attributes:
        count: number of processes.
        index: index of this process; 0 is the first.
    """

    def __init__(self, count: int, index: int) -> None:
        self.count, self.index, self._over = count, index, False
        self._signals = _HeldSignals() if self.is_first else None
        self._mesh = Mesh(np.asarray(jax.devices()), (PART,))
        self._whole = NamedSharding(self._mesh, PartitionSpec())
        self._gathered = jax.jit(lambda tree: tree, out_shardings=self._whole)

    @classmethod
    def joined(cls, count: int, index: int, coordinator: str) -> "ProcessGroup":
        """Connect this process to the others, before anything is computed.

        Args:
            count: number of processes, at least 2.
            index: index of this process, from 0.
            coordinator: ``host:port`` at which the first process listens.

        Raises:
            UserError: if the numbers do not fit, or the other processes do not connect in time.
        """
        checks.integer(count, "processes", 2)
        checks.integer(index, "process_id", 0, count - 1)
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 65536:
            raise UserError(
                f"coordinator = {coordinator!r:.80} is not an address; write host:port, such as 10.0.0.5:8476"
            )
        # JAX would otherwise handle SIGTERM itself.
        jax.config.update("jax_enable_preemption_service", False)
        try:
            jax.distributed.initialize(
                coordinator,
                count,
                index,
                initialization_timeout=JOIN_TIMEOUT,
                heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT,
            )
            if index:
                for number in STOP_SIGNALS:
                    signal.signal(number, signal.SIG_IGN)
            group = cls(count, index)
            with _quiet_output():
                group.from_first(np.bool_(True))
        except (RuntimeError, ValueError) as error:  # also JAX's, if they cannot reach one another
            raise UserError(f"the {count} processes did not all connect to {coordinator} ({one_line(error)})") from None
        return group

    @property
    def is_first(self) -> bool:
        """Whether this process stores and reports."""
        return self.index == 0

    def agree(self, *, stop: bool = False) -> None:
        """Synchronize all processes, and stop all of them if the first one stops.

        Args:
            stop: whether the first process stops; it also stops if it has received a signal.

        Raises:
            FirstProcessStoppedError: in the other processes, if the first one stops.
            KeyboardInterrupt: in the first one, if it has received a signal.
        """
        if self._over:
            return
        signaled = self._signals is not None and self._signals.received is not None
        self._over = bool(self._from_first(np.bool_(stop or signaled)))
        if self._over and self._signals is not None:
            self._signals.deliver()
        elif self._over:
            raise FirstProcessStoppedError

    def leave(self) -> None:
        """Leave the group at the end of this process's work."""
        try:
            self.agree(stop=self.is_first)
        except FirstProcessStoppedError:
            pass
        finally:
            jax.distributed.shutdown()

    def from_first(self, tree: Any) -> Any:
        """Return the arrays of the first process, broadcast to all.

        Args:
            tree: pytree of arrays, of the same structure and shapes in all processes.
        """
        return jax.tree.map(keyed, tree, self._from_first(jax.tree.map(plain, tree)))

    def whole(self, tree: Any) -> Any:
        """Return arrays replicated in every process.

        Args:
            tree: pytree of arrays, sharded or local to this process (then with equal values in all processes).
        """
        numbers = jax.tree.map(plain, tree)
        if all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(numbers)):
            # `jax.device_put` would wait for the other processes to compare their values.
            return jax.tree.map(keyed, tree, jax.tree.map(self._copied, numbers))
        return jax.tree.map(keyed, tree, self._gathered(numbers))

    def members(self, tree: Any) -> Any:
        """Return arrays divided along their first axis, of members that are computed independently.

        Args:
            tree: pytree of arrays with equal values in all processes, of a length that the number of processes divides.
        """
        cut = NamedSharding(self._mesh, PartitionSpec(PART))

        def placed(leaf: Any) -> jax.Array:
            array = np.asarray(plain(leaf))
            return keyed(leaf, jax.make_array_from_callback(array.shape, cut, lambda part: array[part]))

        return jax.tree.map(placed, tree)

    def divided(self, tree: Any, layout: Any) -> Any:
        """Return arrays sharded over the processes.

        Args:
            tree: pytree of arrays with equal values in all processes.
            layout: shardings, from `layout`.
        """
        return jax.jit(lambda tree: tree, out_shardings=layout)(self.whole(tree))

    def layout(self, template: State) -> Any:
        """Return the shardings of a state: arrays divided along one axis, replicated where it is not divisible.

        Args:
            template: the state, or its shapes.

        Raises:
            UserError: if no array has an axis divisible by the number of processes.
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
        """Return the program of a simulation whose state is sharded.

        Args:
            simulation: the simulation to run.
            plan: steps and frames.

        Raises:
            UserError: if the simulation has growing buffers, or cannot be divided.
        """
        self.check_buffers(simulation)
        layout = self.layout(simulation.shapes.state)
        return Program.of(simulation, plan, (layout, self._whole))

    @staticmethod
    def check_buffers(simulation: Simulation) -> None:
        """Refuse a simulation whose buffers grow.

        Args:
            simulation: the simulation.

        Raises:
            UserError: if they do.
        """
        if simulation.sized_like is not None:
            raise UserError(
                "a simulation with buffers that grow, such as neighbor lists, runs in one process; leave processes out"
            )

    def _copied(self, leaf: Any) -> jax.Array:
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, self._whole, lambda part: array[part])

    def _from_first(self, tree: Any) -> Any:
        from jax.experimental.multihost_utils import broadcast_one_to_all

        return broadcast_one_to_all(tree, is_source=self.is_first)


@contextlib.contextmanager
def _quiet_output() -> Iterator[None]:
    """Suppress what the connection library prints to standard output, which may be read as JSON."""
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
    """Stop signals, recorded and handled after the segment: in its midst the other processes would wait for this one.

    Attributes:
        received: number of the first signal, or ``None``.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._former: dict[int, Any] = {number: signal.signal(number, self._receive) for number in STOP_SIGNALS}

    def deliver(self) -> None:
        """Restore the former handlers and pass the received signal on."""
        for number, handler in self._former.items():
            signal.signal(number, handler)
        handler = self._former.get(self.received) if self.received is not None else None
        if callable(handler) and self.received is not None:
            handler(self.received, None)

    def _receive(self, number: int, frame: object) -> None:
        self.received = self.received or number


@dataclasses.dataclass(frozen=True)
class SharedDrive(Drive):
    """One simulation that a group of processes runs together, as `simkit.engine.driver.Work`.

    Attributes:
        group: group of the processes.
    """

    group: ProcessGroup

    @classmethod
    def of(cls, group: ProcessGroup, program: Program, params: Params, key: jax.Array, plan: Plan) -> "SharedDrive":
        """Return the work of one process of a group.

        Args:
            group: group of the processes.
            program: program from `ProcessGroup.program`.
            params: the simulation's parameters, equal in all processes.
            key: random key, equal in all processes.
            plan: steps and frames.
        """
        return cls(program, group.whole(params), group.whole(key), plan, group)

    def advance(self, segment: Segment) -> tuple[Drive, Segment]:
        """Return the next segment, unless the first process stops."""
        self.group.agree()
        return super().advance(segment)


class SharedStore(Store):
    """The store of the first process, shared by the group.

    Args:
        group: group of the processes.
        store: store of the first process; ``None`` in the others.
    """

    def __init__(self, group: ProcessGroup, store: Store | None) -> None:
        self._group, self._store = group, store

    def create(self) -> None:
        """Create the folders."""
        if self._store:
            self._store.create()

    def write(self, index: int, state: State, arrays: dict[str, np.ndarray]) -> None:
        """Store a segment and the state at its end, gathered from all processes."""
        state = self._group.whole(state)
        if self._store:
            self._store.write(index, state, arrays)

    def restore(
        self, template: State, warn: Callable[[str], None], *, advance: Callable[[State], Any] | None = None
    ) -> tuple[int, State, dict[str, np.ndarray]] | None:
        """Return the newest state from which the run can resume, sharded over the processes."""
        self._group.agree()
        restored = self._store.restore(template, warn, advance=advance) if self._store else None
        position = (restored[0], restored[2]["status"][-1]) if restored else (-1, 0)
        index, status = (int(number) for number in self._group.from_first(np.asarray(position, np.int32)))
        if index < 0:
            return None
        numbers = jax.eval_shape(lambda tree: jax.tree.map(plain, tree), template)
        empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), numbers)
        state = restored[1] if restored else jax.tree.map(keyed, template, empty)
        state = self._group.divided(self._group.from_first(state), self._group.layout(template))
        return index, state, restored[2] if restored else {"status": np.asarray([status], np.int32)}

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return the stored segments in order; none in the other processes."""
        return self._store.read() if self._store else []
