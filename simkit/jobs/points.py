"""The points of a sweep: every combination of values, or values that walk together; and the checks of both."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.errors import UserError, one_line
from simkit.jobs.sweep_results import POINT, named
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

type Axes = Mapping[str, Sequence[float]]

# Members that are checked before a sweep, at a few milliseconds each.
CHECKED = 1000
# A manifest lists the values of all points.
MOST_NUMBERS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Points:
    """Where in the space of the swept parameters members are run.

    Attributes:
        over: values by parameter.
        zip: whether values at one place in all lists make a point; otherwise every combination does.
    """

    over: Axes
    zip: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes along which points are arranged: the parameters, or one for all of them."""
        return (POINT,) if self.zip else tuple(self.over)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points along each axis."""
        lengths = [len(values) for values in self.over.values()]
        return tuple(lengths[:1]) if self.zip else tuple(lengths)

    def values_of(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values at points, given by their numbers, which count along the last axis first."""
        where = np.unravel_index(points, self.shape) if self.shape else ()
        where = where * len(self.over) if self.zip else where
        return {name: np.asarray(self.over[name])[i] for name, i in zip(self.over, where, strict=True)}

    @property
    def coordinates(self) -> dict[str, Any]:
        """Coordinates of the axes, as a data set takes them."""
        values = {name: (POINT if self.zip else name, np.asarray(array)) for name, array in self.over.items()}
        number = {POINT: np.arange(self.shape[0], dtype=np.int32)} if self.zip else {}
        return number | values

    def checked(self, scenario: Scenario) -> "Points":
        """Return the same points, their values as tuples of numbers.

        Args:
            scenario: with the parameters.

        Raises:
            UserError: if a name is unknown, or a value is no number or out of its bounds.
        """
        if not isinstance(self.over, Mapping):
            raise UserError(f"over is of type {type(self.over).__name__}; give {{name of a parameter: list of values}}")
        over = {name: self._values(scenario, name, values) for name, values in self.over.items()}
        if self.zip and len({len(values) for values in over.values()}) != 1:
            lengths = ", ".join(f"{name} {len(values)}" for name, values in over.items())
            raise UserError(
                f"values that walk together are as many of each parameter, at least one; there are {lengths or 'none'}"
            )
        if (numbers := sum(map(len, over.values()))) > MOST_NUMBERS:
            raise UserError(f"over lists {numbers} numbers; give at most {MOST_NUMBERS}")
        return dataclasses.replace(self, over=over)

    def _values(self, scenario: Scenario, name: str, points: Sequence[float]) -> tuple[float, ...]:
        """Return the values of one swept parameter, checked."""
        check_swept(scenario, name, f"'{name}'")
        label, values = f"over {name}", np.asarray(points).tolist()
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
        """Return the numbers of the points with the least and the largest value of each parameter."""
        ends = [sorted({int(np.argmin(values)), int(np.argmax(values))}) for values in self.over.values()]
        if self.zip:
            return iter(sorted(set(itertools.chain(*ends))))
        corners = itertools.product(*ends)
        return (int(np.ravel_multi_index(places, self.shape)) if places else 0 for places in corners)


def check_swept(scenario: Scenario, name: str, where: str) -> None:
    """Refuse what is not a parameter that is a single number.

    Args:
        scenario: with the parameters.
        name: of one.
        where: the words that name it in the error.

    Raises:
        UserError: that names it.
    """
    if name not in scenario.parameters:
        raise UserError(f"{where} is not a parameter of {scenario.name}{paths.hint(str(name), scenario.parameters)}")
    if isinstance(scenario.parameters[name].default, tuple):
        raise UserError(f"{where} is an array; only single numbers are swept")


def check_axes(simulation: "Simulation", over: Axes) -> None:
    """Refuse a parameter whose axis the data set could not tell from another one.

    Args:
        simulation: the member.
        over: values by parameter.

    Raises:
        UserError: that names it.
    """
    taken = {"seed", "frame", "status", POINT, *simulation.coordinates}
    taken |= {axis for axes in simulation.dimensions.values() for axis in axes}
    if clash := next((name for name in over if name in taken), None):
        raise UserError(f"over '{clash}': the result has an axis or array of that name already; rename the parameter")


def check_counts(scenario: Scenario, seeds: int, chunk: int | None, memory: int | None = None) -> None:
    """Refuse numbers of seeds or members that cannot be.

    Args:
        scenario: with the first seed.
        seeds: of each point.
        chunk: members that run together.
        memory: bytes.

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


def check_extremes(simulation: "Simulation", points: Points, seeds: range) -> None:
    """Refuse a sweep if a run would refuse one of its extreme members, of the least and largest value of each axis.

    Where the start depends on the seed, these are looked at with every seed, the first `CHECKED` in all. Checks
    work on the host, one member after another, so that those in between are left to their status.

    Args:
        simulation: the member.
        points: where it is run.
        seeds: of each point.

    Raises:
        UserError: that names the member by its index and parameters.
    """
    import jax

    from simkit.core.simulation import draws

    if simulation.check is None and not simulation.parameters:
        return
    drawn = seeds if draws(simulation) else seeds[:1]
    # Every extreme point with the first seed comes first. (A product of the seeds themselves would hold them all.)
    extremes = ((seed, point) for seed in drawn for point in points.extremes())
    for seed, point in itertools.islice(extremes, CHECKED):
        chosen = {name: float(value) for name, value in points.values_of(np.asarray(point)).items()}
        try:
            simulation.check_values(simulation.with_params(chosen).params, jax.random.key(seed))
        except UserError as error:
            member = point * len(seeds) + seed - seeds[0]
            raise UserError(f"{named(member, chosen | {'seed': seed})}: {one_line(error)}") from None
