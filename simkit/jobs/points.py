"""Points of a sweep: every combination of values, or zipped lists of values; and their checks."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from simkit.core import paths
from simkit.core.simulation import draws
from simkit.errors import UserError, one_line
from simkit.jobs.sweep_results import POINT, named
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

type Axes = Mapping[str, Sequence[float]]

# Maximum number of members checked before a sweep, at a few milliseconds each.
CHECKED = 1000
# Maximum number of values of all points, which a manifest lists.
MOST_NUMBERS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Points:
    """Points in the space of the swept parameters.

    Attributes:
        over: values by parameter.
        zip: whether values at the same index of all lists make a point; otherwise every combination does.
    """

    over: Axes
    zip: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes: the parameters, or ``point`` for zipped values."""
        return (POINT,) if self.zip else tuple(self.over)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        lengths = [len(values) for values in self.over.values()]
        return tuple(lengths[:1]) if self.zip else tuple(lengths)

    def values_of(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values at points, given by flat index, int (n,), the last axis varying first."""
        where = np.unravel_index(points, self.shape) if self.shape else ()
        where = where * len(self.over) if self.zip else where
        return {name: np.asarray(self.over[name])[i] for name, i in zip(self.over, where, strict=True)}

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates of the axes, for a data set."""
        values = {name: (POINT if self.zip else name, np.asarray(array)) for name, array in self.over.items()}
        number = {POINT: np.arange(self.shape[0], dtype=np.int32)} if self.zip else {}
        return number | values

    def checked(self, scenario: Scenario) -> "Points":
        """Return the points with their values as tuples of numbers.

        Args:
            scenario: scenario with the parameters.

        Raises:
            UserError: if a name is unknown, or a value is not a number or is out of its bounds.
        """
        if not isinstance(self.over, Mapping):
            raise UserError(f"over is of type {type(self.over).__name__}; give {{name of a parameter: list of values}}")
        over = {name: self._values(scenario, name, values) for name, values in self.over.items()}
        if self.zip and len({len(values) for values in over.values()}) != 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in over.items())
            raise UserError(
                f"zipped parameters need equal numbers of values, at least one; there are {lengths or 'none'}"
            )
        if (numbers := sum(map(len, over.values()))) > MOST_NUMBERS:
            raise UserError(f"over lists {numbers} numbers; give at most {MOST_NUMBERS}")
        return dataclasses.replace(self, over=over)

    def _values(self, scenario: Scenario, name: str, points: Sequence[float]) -> tuple[float, ...]:
        """Return the checked values of one swept parameter."""
        check_swept(scenario, name, f"'{name}'")
        label = f"over {name}"
        try:
            values = np.asarray(checks.unwrapped(points)).tolist()
        except ValueError:  # rows of different lengths
            values = None
        if not isinstance(values, list) or not values:
            raise UserError(f"{label} has no values; give a list of numbers")
        bounds, numbers = scenario.parameters[name].bounds, []
        for index, value in enumerate(values):
            where = f"{label}, point {index}" if self.zip else label
            numbers.append(checks.number(value, where))
            checks.inside(numbers[-1], where, bounds)
        if len(set(numbers)) < len(numbers) and not self.zip:
            raise UserError(f"{label} lists a value twice; keep one of them")
        return tuple(numbers)

    def extremes(self) -> Iterator[int]:
        """Return the flat indices of the points with the least and the largest value of each parameter."""
        ends = [sorted({int(np.argmin(values)), int(np.argmax(values))}) for values in self.over.values()]
        if self.zip:
            return iter(sorted(set(itertools.chain(*ends))))
        corners = itertools.product(*ends)
        return (int(np.ravel_multi_index(index, self.shape)) if index else 0 for index in corners)


def check_swept(scenario: Scenario, name: str, where: str) -> None:
    """Check that a name is that of a scalar parameter.

    Args:
        scenario: scenario with the parameters.
        name: name to check.
        where: description of the name in the error.

    Raises:
        UserError: naming it.
    """
    if name not in scenario.parameters:
        raise UserError(f"{where} is not a parameter of {scenario.name}{paths.hint(str(name), scenario.parameters)}")
    if isinstance(scenario.parameters[name].default, tuple):
        raise UserError(f"{where} is an array; only single numbers are swept")


def check_axes(simulation: "Simulation", over: Axes) -> None:
    """Refuse a parameter whose name is that of another axis of the result.

    Args:
        simulation: simulation of one member.
        over: values by parameter.

    Raises:
        UserError: naming the parameter.
    """
    taken = {"seed", "frame", "status", POINT, *simulation.coordinates}
    taken |= {axis for axes in simulation.dimensions.values() for axis in axes}
    if clash := next((name for name in over if name in taken), None):
        raise UserError(f"over '{clash}': the result has an axis or array of that name already; rename the parameter")


def check_counts(scenario: Scenario, seeds: int, chunk: int | None, memory: int | None = None) -> None:
    """Check the numbers of seeds, members per chunk and bytes.

    Args:
        scenario: scenario with the first seed.
        seeds: number of seeds per point.
        chunk: members that run together.
        memory: memory limit in bytes.

    Raises:
        UserError: naming the number and the allowed values.
    """
    for name, count in (("seeds", seeds), ("chunk", chunk)):
        if count is not None or name == "seeds":
            checks.integer(count, name, 1, 2**31)
    if memory is not None:
        checks.integer(memory, "memory", 1, 2**60)
    if scenario.run.seed + seeds - 1 > checks.MAX_SEED:
        raise UserError(
            f"{seeds} seeds from seed = {scenario.run.seed} go past {checks.MAX_SEED}; begin with a smaller seed"
        )


def check_extremes(simulation: "Simulation", points: Points, seeds: range) -> None:
    """Run the simulation's check on the extreme members, those with the least or largest value of each parameter.

    If the initial state depends on the seed, they are checked with every seed, `CHECKED` members at most. Checks run on
    the host, one member after another; a failure of other members is reported by their status.

    Args:
        simulation: simulation of one member.
        points: points of the sweep.
        seeds: seeds of each point.

    Raises:
        UserError: naming the member by its index and parameters.
    """
    if simulation.check is None and not simulation.parameters:
        return
    drawn = seeds if draws(simulation) else seeds[:1]
    # All extreme points with the first seed, then with the next. (`itertools.product` would store all seeds.)
    extremes = ((seed, point) for seed in drawn for point in points.extremes())
    for seed, point in itertools.islice(extremes, CHECKED):
        chosen = {name: float(value) for name, value in points.values_of(np.asarray(point)).items()}
        try:
            simulation.check_values(simulation.with_params(chosen).params, jax.random.key(seed))
        except UserError as error:
            member = point * len(seeds) + seed - seeds[0]
            raise UserError(f"{named(member, chosen | {'seed': seed})}: {one_line(error)}") from None
