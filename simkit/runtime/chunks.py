"""The work of a sweep: its grid of members, how many fit in memory at once, and one chunk after another."""

import dataclasses
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError
from simkit.runtime import datasets
from simkit.runtime.files import DamagedFileError, read_arrays, write_arrays
from simkit.runtime.outcome import record
from simkit.runtime.run_directory import RunDirectory
from simkit.runtime.runs import plan_of
from simkit.runtime.store import Store
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation

type Report = Callable[[float, str], None]
"""Told the fraction done and a few words."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What to sweep.

    Attributes:
        scenario: overrides applied.
        over: values by parameter; the grid is their Cartesian product.
        seeds: how many random seeds per grid point, counted up from the scenario's seed.
        chunk: members per program.
        final_frames: whether the last frame of every member is kept beside its diagnostics.
    """

    scenario: Scenario
    over: dict[str, tuple[float, ...]]
    seeds: int
    chunk: int
    final_frames: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid points per parameter, then seeds."""
        return (*(len(values) for values in self.over.values()), self.seeds)

    @property
    def members(self) -> int:
        """Number of simulations."""
        return math.prod(self.shape)

    @property
    def chunks(self) -> int:
        """Number of programs run, all of one size; the last is padded with repeats of the last member."""
        return -(-self.members // self.chunk)

    def member(self, index: int) -> dict[str, float]:
        """Return the swept values and the seed of one member."""
        *where, seed = np.unravel_index(index, self.shape)
        values = {name: self.over[name][i] for name, i in zip(self.over, where, strict=True)}
        return values | {"seed": self.scenario.run.seed + int(seed)}


def fitting_chunk(simulation: "Simulation", plan: Sweep, chunk: int | None, memory: int | None) -> int:
    """Return how many members run as one program; what they need comes from the compiler.

    Args:
        simulation: the member.
        plan: the sweep.
        chunk: how many the user asks for; ``None`` takes as many as fit.
        memory: bytes they may take; ``None`` takes a share of what is free.

    Raises:
        UserError: if the chunk asked for, one member, or the results of all members do not fit.
    """
    import jax

    from simkit.runtime.memory import SHARE, available_bytes, needed_bytes, show_size

    limit = memory or int(SHARE * available_bytes())
    wanted = chunk or plan.members

    def needed(members: int) -> int:
        params, keys, ensemble, compiled = _program(simulation, dataclasses.replace(plan, chunk=members), 0)
        state = jax.eval_shape(ensemble.init, params, keys)
        return needed_bytes(compiled.lower(state, params).compile())

    kept = plan.members * _frame_bytes(simulation) if plan.final_frames else 0
    if kept > (free := available_bytes()):
        raise UserError(
            f"the final frames of {plan.members} members need {show_size(kept)} and {show_size(free)} are free; "
            "pass --no-frames to keep the diagnostics only, or sweep fewer values"
        )
    need = needed(wanted)
    if need <= limit:
        return wanted
    if chunk is not None:
        raise UserError(
            f"a chunk of {chunk} members needs {show_size(need)} and {show_size(limit)} may be used; "
            f"pass a smaller --chunk (about {max(chunk * limit // need, 1)}) or more --memory"
        )
    fitting = wanted * limit // need
    while fitting > 1 and needed(fitting) > limit:
        fitting //= 2
    if fitting < 1 or needed(fitting) > limit:
        raise UserError(
            f"one member needs {show_size(needed(1))} and {show_size(limit)} may be used; "
            "pass more --memory (such as --memory 8GiB) or make the simulation smaller with --set"
        )
    return fitting


def _frame_bytes(simulation: "Simulation") -> int:
    """Return the size of what one member observes."""
    import jax

    def observed(key: jax.Array) -> Any:
        return simulation.observe(simulation.init(simulation.params, key), simulation.params)

    leaves = jax.tree.leaves(jax.eval_shape(observed, jax.random.key(0)))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def _program(simulation: "Simulation", plan: Sweep, chunk_index: int) -> tuple[Any, Any, "Simulation", Any]:
    """Return the params, keys, ensemble and jitted segment of one chunk, spread over the local devices."""
    import jax
    import jax.numpy as jnp

    from simkit.core.ensemble import ensemble
    from simkit.runtime.driver import compile_segment

    first = chunk_index * plan.chunk
    members = [plan.member(min(first + i, plan.members - 1)) for i in range(plan.chunk)]
    keys = jnp.stack([jax.random.key(member["seed"]) for member in members])
    swept = {
        name: jnp.asarray([member[name] for member in members], dtype=simulation.params[name].dtype)
        for name in plan.over
    }
    devices = jax.local_devices()
    if len(devices) > 1 and plan.chunk % len(devices) == 0:
        mesh = jax.sharding.Mesh(np.asarray(devices), ("member",))
        spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("member"))
        keys, swept = jax.device_put((keys, swept), spread)
    many = ensemble(simulation, list(plan.over))
    # Frames of every member at every time would not fit anywhere; the last one is observed at the end.
    many = dataclasses.replace(many, observe=lambda state, params: {})
    return {**simulation.params, **swept}, keys, many, compile_segment(many, plan_of(plan.scenario))


def execute(
    simulation: "Simulation", plan: Sweep, directory: RunDirectory | None, report: Report, warn: Callable[[str], None]
) -> "xarray.Dataset":
    """Run every chunk that is not stored yet and return the labeled result.

    Args:
        simulation: the member.
        plan: the sweep.
        directory: where chunks are stored, or ``None``.
        report: told of progress.
        warn: told in one line what was damaged.
    """
    compiled: Any = None
    results = []
    for index in range(plan.chunks):
        path = directory.path / f"chunk_{index:04d}.npz" if directory else None
        if path and path.exists():
            try:
                results.append(read_arrays(path))
                continue
            except DamagedFileError as error:
                warn(f"{error}; computing it again")
        params, keys, many, fresh = _program(simulation, plan, index)
        compiled = compiled or fresh  # compiled once: every chunk has the same shape
        arrays = _run_chunk(simulation, plan, index, params, keys, many, compiled, directory, report, warn)
        if path:
            write_arrays(path, arrays)
            # A finished chunk is whole in its file; what it left on the way there is needed no more.
            shutil.rmtree(path.with_suffix(""))
        results.append(arrays)
    return _assemble(simulation, plan, results)


def _run_chunk(
    simulation: "Simulation",
    plan: Sweep,
    index: int,
    params: Any,
    keys: Any,
    many: "Simulation",
    compiled: Any,
    directory: RunDirectory | None,
    report: Report,
    warn: Callable[[str], None],
) -> dict[str, np.ndarray]:
    import jax

    from simkit.runtime.driver import final_status

    def on_piece(piece: Any, total: int) -> None:
        report((index + piece.index / total) / plan.chunks, f"chunk {index + 1} of {plan.chunks}")

    store = Store(directory.path / f"chunk_{index:04d}") if directory else None
    cut = plan_of(plan.scenario)
    arrays, last = record(many, keys, cut, store, on_piece, warn, params=params, compiled=compiled)
    # Chunks whose members all converge early are shorter; a frozen member repeats its last value.
    missing = cut.frames + 1 - len(arrays["status"])
    arrays = {name: np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) for name, array in arrays.items()}
    arrays["status"] = final_status(many, last)
    if plan.final_frames:
        axes = {name: 0 if name in plan.over else None for name in simulation.params}
        observed = jax.jit(jax.vmap(simulation.observe, in_axes=(0, axes)))(last.state, params)
        arrays |= {f"observed.{name}": np.asarray(array) for name, array in observed.items()}
    return arrays


def _assemble(simulation: "Simulation", plan: Sweep, chunks: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    import xarray

    from simkit.core.status import Status

    def members(name: str, axis: int) -> np.ndarray:
        joined = np.concatenate([chunk[name] for chunk in chunks], axis=axis)
        joined = np.moveaxis(joined, axis, 0)[: plan.members]
        return joined.reshape(plan.shape + joined.shape[1:])

    grid = (*plan.over, "seed")
    observed, diagnosed = datasets.split(chunks[0])
    variables: dict[str, Any] = {}
    for name in diagnosed:
        variables[name] = ((*grid, "frame"), members(f"diagnosed.{name}", 1))
    for name, array in observed.items():
        named = simulation.dimensions.get(name) or tuple(f"{name}_{axis}" for axis in range(array.ndim - 1))
        # A name may be both diagnosed in time and observed at the end.
        variables[f"final_{name}" if name in variables else name] = ((*grid, *named), members(f"observed.{name}", 0))
    names = np.array([status.name.lower() for status in Status])
    variables["status"] = (grid, names[members("status", 0)])
    used = {dimension for names, _ in variables.values() for dimension in names}
    coordinates: dict[str, Any] = {
        **{name: np.asarray(values) for name, values in plan.over.items()},
        "seed": plan.scenario.run.seed + np.arange(plan.seeds, dtype=np.int32),
        **{name: values for name, values in simulation.coordinates.items() if name in used},
    }
    return xarray.Dataset(
        variables, coords=coordinates, attrs={"title": plan.scenario.title, "scenario": plan.scenario.name}
    )
