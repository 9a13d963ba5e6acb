"""Optimizations from several starts at once: a sweep whose members are optimizations."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simkit.errors import UserError
from simkit.jobs.derivatives import Mode, chosen_by
from simkit.jobs.optimizations import Method, Optimization
from simkit.jobs.outcome import RunFailedError
from simkit.jobs.points import check_axes
from simkit.jobs.samples import sampled
from simkit.jobs.sweep_results import columns_of, failures
from simkit.jobs.sweeps import Sweep
from simkit.scenario import checks
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.plan import Plan
    from simkit.scenario.sections import ObjectiveSettings

MOST_STARTS = 100_000


@dataclasses.dataclass(frozen=True)
class Starts(Sweep):
    """What to optimize, and from where; those that have converged make room for others.

    Attributes:
        wrt: parameters to choose, within their bounds.
        objective: name of the objective.
        method: see `Optimization`, as are the others.
        iterations: at most this many updates from each start.
        learning_rate: of Adam.
        mode: how derivatives propagate.
    """

    kind = "optimize_starts"
    noun = "an optimization from several starts"
    asked: ClassVar = {**Sweep.asked, **Optimization.asked}
    report = "simkit.cli.reports.starts"

    wrt: tuple[str, ...] = ()
    objective: str = ""
    method: Method = "lbfgs"
    iterations: int = 50
    learning_rate: float = 0.1
    mode: Mode = "shortest"

    @property
    def optimization(self) -> Optimization:
        """The optimization from one start."""
        return Optimization(self.scenario, **{name: getattr(self, name) for name in Optimization.asked})

    @property
    def cut(self) -> "Plan":
        """A frame for each iteration."""
        return self.optimization.plan

    @property
    def objectives(self) -> "Mapping[str, ObjectiveSettings]":
        """None: the objective is what each of them chooses parameters for."""
        return {}

    def checked(self) -> "Starts":
        """Return the same, its parameters by their paths.

        Raises:
            UserError: if a name is unknown, a number out of range, or a start is of what is not chosen.
        """
        wrt = self.optimization.checked().wrt
        if other := next((name for name in self.over if name not in wrt), None):
            raise UserError(f"starts: '{other}' is not one of the parameters to choose ({', '.join(wrt)})")
        checked = super().checked()
        assert isinstance(checked, Starts)  # it is a copy of this one
        return dataclasses.replace(checked, wrt=wrt)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the optimization from one start as a simulation."""
        made = self.optimization.simulation(new=new)
        if new:
            check_axes(made, self.over)
        return made

    @staticmethod
    def warning(result: "xarray.Dataset") -> str:
        """Return the starts whose objective turned non-finite.

        Raises:
            RunFailedError: if it did from every start.
        """
        bad = result["status"].values == "non_finite"
        if bad.all():
            raise RunFailedError(f"{failures(result)[0]}, and so did every other start")
        return f"the objective turned non-finite from {bad.sum()} of {bad.size} starts" if bad.any() else ""


def starts_of(
    scenario: Scenario, wrt: Sequence[str], objective: str, starts: int | Mapping[str, Any], **asked: Any
) -> Starts:
    """Return the optimization from several starts.

    Args:
        scenario: overrides applied.
        wrt: parameters to choose.
        objective: name of the objective.
        starts: how many, in a Latin hypercube between the bounds of all parameters; or values by parameter, of which
            every combination is a start. Parameters that are not named start at their values.
        **asked: further fields of `Starts`.

    Raises:
        UserError: if there are no starts, or a parameter has no bounds to draw them from.
    """
    if isinstance(starts, Mapping):
        return Starts(scenario, starts, wrt=tuple(wrt), objective=objective, **asked)
    count = checks.integer(checks.unwrapped(starts), "starts", 1, MOST_STARTS)
    ranges = {name: scenario.parameters[name].bounds for name in chosen_by(scenario, wrt)}
    if endless := next((name for name, ends in ranges.items() if not all(map(math.isfinite, ends))), None):
        raise UserError(
            f"'{endless}' has no lower and upper bound to draw starts from; give values, starts={{'{endless}': [...]}}"
        )
    over, origin = sampled(scenario, ranges, "latin_hypercube", count)
    return Starts(scenario, over, zip=True, origin=origin, wrt=tuple(wrt), objective=objective, **asked)


def best_first(result: "xarray.Dataset", *, maximize: bool) -> np.ndarray:
    """Return the numbers of the starts in the order of the best value that each led to, (n,).

    Args:
        result: of `Starts`.
        maximize: whether the largest is best.
    """
    values = np.asarray(result["best_loss"].isel(frame=-1).values, float).ravel()
    return np.argsort(np.where(np.isfinite(values), -values if maximize else values, np.inf), kind="stable")


def best_of(result: "xarray.Dataset", *, maximize: bool) -> tuple[int, ...]:
    """Return the place of the start that led to the best value, along each axis.

    Args:
        result: of `Starts`.
        maximize: whether the largest is best.
    """
    best = int(best_first(result, maximize=maximize)[0])
    return tuple(int(place) for place in np.unravel_index(best, result["status"].shape))


def rows_of(result: "xarray.Dataset", wrt: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return a table of the starts: where each began, its best value, where that is, and how it ended.

    Args:
        result: of `Starts`.
        wrt: parameters that were chosen.
    """
    columns, status = columns_of(result), result["status"]
    scalars = [name for name in wrt if result[f"best_{name}"].ndim == status.ndim]
    header = (*(f"from {name}" for name in columns), "best value", *scalars, "ended")
    last = result["best_loss"].isel(frame=-1)
    rows = []
    for where in np.ndindex(status.shape):
        begun = (array[where[:-1]].item() for array in columns.values())
        found = (result[f"best_{name}"].values[where].item() for name in scalars)
        rows.append((*begun, last.values[where].item(), *found, str(status.values[where]).replace("_", " ")))
    return header, rows
