"""Sweeps: many members of one scenario as one vmapped program, in chunks that fit in memory."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simkit.core import paths
from simkit.core.compilation import use_compilation_cache
from simkit.engine.plan import plan_of
from simkit.errors import UserError, one_line
from simkit.jobs.chunk_size import fitting_chunk
from simkit.jobs.chunks import program_of_chunk, run_members
from simkit.jobs.fitting import check_declared
from simkit.jobs.job import Job, Prepared, Report, Warn, begin, returned
from simkit.jobs.outcome import RunFailedError
from simkit.jobs.sweep_results import RESULT, failures, named, read_result, store_result
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load
from simkit.scenario.scenario import Scenario
from simkit.storage import manifest_schema
from simkit.storage.chunk_files import check_chunks
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.driver import Program

type Axes = Mapping[str, Sequence[float]]

# Members that are checked before a sweep, at a few milliseconds each.
CHECKED = 1000


def sweep(
    scenario: Source,
    over: Axes,
    *,
    seeds: int = 1,
    output: Path | str | None = None,
    overwrite: bool = False,
    chunk: int | None = None,
    memory: int | None = None,
    final_frames: bool = True,
    **values: Any,
) -> "xarray.Dataset":
    """Run every combination of parameter values and seeds and return one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        over: ``{parameter: values}``, by path if it is nested: ``{"closure.scale": [0.5, 1.0]}``.
        seeds: random seeds per combination.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        chunk: members that run together; ``None`` chooses by memory. Those of simulations that end when they are done
            leave one by one, and others take their place.
        memory: bytes the program may take; ``None`` takes a share of what is free.
        final_frames: keep the last frame of every member.
        **values: other parameters, config or run settings.

    Returns:
        Diagnostics with dimensions (swept parameters..., seed, frame), final frames without ``frame``, and ``status``.

    Raises:
        UserError: if anything given is wrong or does not fit in memory.
        RunFailedError: if every member turns non-finite; otherwise those that fail are named in a warning.
    """
    use_compilation_cache()
    counts = {"seeds": seeds, "chunk": chunk, "memory": memory}
    counts = {name: checks.unwrapped(count) for name, count in counts.items()}
    job = Sweep(load(scenario, values), over, final_frames=final_frames, **counts)
    return returned(job, partial(begin, job, output, overwrite))


@dataclasses.dataclass(frozen=True)
class Sweep(Job["xarray.Dataset"]):
    """What to sweep.

    Attributes:
        scenario: overrides applied.
        over: values by parameter; the grid is their Cartesian product.
        seeds: how many random seeds per grid point, counted up from the scenario's seed.
        chunk: members per program: one chunk after another, or, of simulations that end when they are done, as many
            lanes as that; ``None`` until `fitted` chooses.
        final_frames: whether the last frame of every member is kept beside its diagnostics.
        memory: bytes a program may take; ``None`` takes a share of what is free.
    """

    kind = "sweep"
    noun = "a sweep"
    files = r"sweep\.(nc|png)|chunk_\d{4,}\.npz"
    stores = r"chunk_\d{4,}"
    asked: ClassVar = {
        "over": manifest_schema.each(manifest_schema.NUMBERS),
        "seeds": manifest_schema.COUNT,
        "chunk": manifest_schema.COUNT,
        "final_frames": manifest_schema.FLAG,
    }
    results = (RESULT, SUMMARY)
    report = "simkit.cli.reports.sweep"
    repair = "make it again"

    over: Axes
    seeds: int = 1
    chunk: int | None = None
    final_frames: bool = True
    memory: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Grid points per parameter, then seeds."""
        return (*(len(values) for values in self.over.values()), self.seeds)

    @property
    def members(self) -> int:
        """Number of simulations."""
        return math.prod(self.shape)

    def values_of(self, members: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the swept values and the seeds of members, given by their numbers."""
        *where, seed = np.unravel_index(members, self.shape)
        values = {name: np.asarray(self.over[name])[i] for name, i in zip(self.over, where, strict=True)}
        return values, self.scenario.run.seed + seed

    def checked(self) -> "Sweep":
        """Return the same, its values as tuples of numbers.

        Raises:
            UserError: if a value, or a number of seeds or members, cannot be.
        """
        if not isinstance(self.over, Mapping):
            raise UserError(f"over is of type {type(self.over).__name__}; give {{name of a parameter: list of values}}")
        over = {name: _points(self.scenario, name, points) for name, points in self.over.items()}
        _check_counts(self.scenario, self.seeds, self.chunk, self.memory)
        return dataclasses.replace(self, over=over)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the member."""
        if not new:
            return build(self.scenario)
        kept = self.members if self.final_frames else 0
        remedy = "pass final_frames=False or sweep fewer values"

        def examine(made: "Simulation") -> None:
            check_declared(made, kept, remedy)
            _check_axes(made, self.over)

        simulation = build(self.scenario, examine=examine)
        first = self.scenario.run.seed
        _check_corners(simulation, self.over, range(first, first + self.seeds))
        return simulation

    def program(self, simulation: "Simulation") -> "Program":
        """Return the program of a chunk, by which every chunk runs."""
        return program_of_chunk(simulation, self)

    def fitted(self, prepared: Prepared, output: Path | None) -> "Sweep":
        """Return the sweep in chunks that fit."""
        return dataclasses.replace(self, chunk=fitting_chunk(self, prepared, output))

    def execute(
        self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn
    ) -> "xarray.Dataset":
        """Run every chunk that is not stored yet."""
        result = run_members(self, prepared, directory, report, warn)
        return store_result(directory, result) if directory else result

    def check_finished(self, directory: RunDirectory) -> None:
        """Check the files of all chunks."""
        check_chunks(directory, self.members, plan_of(self.scenario).frames + 1)

    @classmethod
    def read(cls, directory: RunDirectory) -> "xarray.Dataset":
        """Return the result of a finished sweep."""
        if not all(check_regular(directory.path / name) for name in cls.results):
            raise UserError(f"{directory.path} is not finished; finish it with: simkit resume {directory.path}")
        return read_result(directory)

    @staticmethod
    def dataset(result: "xarray.Dataset") -> "xarray.Dataset":
        """Return the result itself."""
        return result

    @staticmethod
    def warning(result: "xarray.Dataset") -> str:
        """Return the members that failed."""
        messages = failures(result)
        if messages and bool((result["status"] == "non_finite").all()):
            raise RunFailedError(f"{messages[0]}, and so did every other member")
        return "; ".join(messages)


def _points(scenario: Scenario, name: str, points: Sequence[float]) -> tuple[float, ...]:
    """Return the values of one swept parameter, checked."""
    if name not in scenario.parameters:
        raise UserError(f"'{name}' is not a parameter of {scenario.name}{paths.hint(str(name), scenario.parameters)}")
    if isinstance(scenario.parameters[name].default, tuple):
        raise UserError(f"'{name}' is an array; only single numbers are swept")
    label, values = f"over {name}", np.asarray(points).tolist()
    if not isinstance(values, list) or not values:
        raise UserError(f"{label} has no values; give a list of numbers")
    numbers = tuple(checks.number(value, label) for value in values)
    if len(set(numbers)) < len(numbers):
        raise UserError(f"{label} lists a value twice; keep one of them")
    for number in numbers:
        checks.inside(number, label, scenario.parameters[name].bounds)
    return numbers


def _check_axes(simulation: "Simulation", over: Axes) -> None:
    """Refuse a parameter whose axis the data set could not tell from another one.

    Raises:
        UserError: that names it.
    """
    taken = {"seed", "frame", "status", *simulation.coordinates}
    taken |= {axis for axes in simulation.dimensions.values() for axis in axes}
    if clash := next((name for name in over if name in taken), None):
        raise UserError(f"over '{clash}': the result has an axis or array of that name already; rename the parameter")


def _check_counts(scenario: Scenario, seeds: int, chunk: int | None, memory: int | None = None) -> None:
    """Refuse numbers of seeds or members that cannot be.

    Raises:
        UserError: that names the number and what is allowed.
    """
    for name, count in (("seeds", seeds), ("chunk", chunk), ("memory", memory)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise UserError(f"{name} = {count!r:.40} is not an integer; give at least 1")
    if seeds < 1:
        raise UserError(f"seeds = {seeds} is not allowed; give at least 1")
    if scenario.run.seed + seeds > 2**31:
        raise UserError(f"{seeds} seeds from seed = {scenario.run.seed} go past 2147483647; begin with a smaller seed")
    if chunk is not None and chunk < 1:
        raise UserError(f"chunk = {chunk} is not allowed; give at least 1")


def _check_corners(simulation: "Simulation", over: Axes, seeds: range) -> None:
    """Refuse a sweep if a run would refuse one of its extreme members, of the least and largest value of each axis.

    Where the start depends on the seed, these are looked at with every seed, the first `CHECKED` in all. Checks
    work on the host, one member after another, so that those in between are left to their status.

    Raises:
        UserError: that names the member by its index and parameters.
    """
    import jax

    from simkit.core.simulation import draws

    if simulation.check is None and not simulation.parameters:
        return
    ends = [sorted({int(np.argmin(values)), int(np.argmax(values))}) for values in over.values()]
    drawn = seeds if draws(simulation) else seeds[:1]
    # Every corner with the first seed comes first. (A product of the seeds themselves would hold them all.)
    corners = ((seed, places) for seed in drawn for places in itertools.product(*ends))
    for seed, places in itertools.islice(corners, CHECKED):
        chosen = {name: values[place] for (name, values), place in zip(over.items(), places, strict=True)}
        try:
            simulation.check_values(simulation.with_params(chosen).params, jax.random.key(seed))
        except UserError as error:
            index = np.ravel_multi_index(places, [len(values) for values in over.values()]) if places else 0
            member = int(index) * len(seeds) + seed - seeds[0]
            raise UserError(f"{named(member, chosen | {'seed': seed})}: {one_line(error)}") from None
