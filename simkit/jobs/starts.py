"""Multi-start optimizations: sweeps whose members are optimizations."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from simkit.core.optimizers.methods import LEARNING_RATE, Method
from simkit.errors import UserError
from simkit.jobs.derivatives import Mode, selected_parameters
from simkit.jobs.optimizations import Optimization, bound_lines
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
    """An optimization from several starts, in lanes: a start that has converged is replaced by the next.

    Attributes:
        wrt: parameters to optimize, within their bounds.
        objective: name of the objective.
        method: see `Optimization`.
        iterations: maximum number of updates from each start.
        learning_rate: learning rate of Adam.
        mode: mode of differentiation.
    """

    kind = "optimize_starts"
    noun = "an optimization from several starts"
    request_checks: ClassVar = {**Sweep.request_checks, **Optimization.request_checks}
    report = "starts"
    # As of a single optimization: one that used all its iterations, or got no further, has kept its best values.
    failures = ("non_finite",)

    wrt: tuple[str, ...] = ()
    objective: str = ""
    method: Method = "lbfgs"
    iterations: int = 50
    learning_rate: float = LEARNING_RATE
    mode: Mode = "shortest"

    @property
    def optimization(self) -> Optimization:
        """The optimization from one start."""
        return Optimization(self.scenario, **{name: getattr(self, name) for name in Optimization.request_checks})

    @property
    def plan(self) -> "Plan":
        """A frame for each iteration."""
        return self.optimization.plan

    @property
    def objectives(self) -> "Mapping[str, ObjectiveSettings]":
        """None: the objective is already the diagnostic ``loss``."""
        return {}

    def checked(self) -> "Starts":
        """Return the job with its parameters as paths.

        Raises:
            UserError: if a name is unknown, a number is out of range, or a start sets a parameter not in ``wrt``.
        """
        wrt = self.optimization.checked().wrt
        if other := next((name for name in self.over if name not in wrt), None):
            raise UserError(f"starts: '{other}' is not one of the parameters to optimize ({', '.join(wrt)})")
        checked = super().checked()
        assert isinstance(checked, Starts)  # a copy of this job
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
    scenario: Scenario, wrt: Sequence[str], objective: str, starts: int | Mapping[str, Any], **fields: Any
) -> Starts:
    """Return the optimization from several starts.

    Args:
        scenario: scenario with overrides applied.
        wrt: parameters to optimize.
        objective: name of the objective.
        starts: number of starts, from a Latin hypercube between the bounds of all parameters; or values by parameter,
            of which every combination is a start. Other parameters start at their values.
        **fields: further fields of `Starts`.

    Raises:
        UserError: if there are no starts, or a parameter without bounds is to be sampled.
    """
    if isinstance(starts, Mapping):
        return Starts(scenario, starts, wrt=tuple(wrt), objective=objective, **fields)
    count = checks.integer(checks.unwrapped(starts), "starts", 1, MOST_STARTS)
    ranges = {name: scenario.parameters[name].bounds for name in selected_parameters(scenario, wrt)}
    if unbounded := next((name for name, ends in ranges.items() if not all(map(math.isfinite, ends))), None):
        raise UserError(
            f"'{unbounded}' has no lower and upper bound between which to sample starts; give values, "
            f"starts={{'{unbounded}': [...]}}"
        )
    over, origin = sampled(scenario, ranges, "latin_hypercube", count)
    return Starts(scenario, over, zip=True, origin=origin, wrt=tuple(wrt), objective=objective, **fields)


def best_first(result: "xarray.Dataset", *, maximize: bool) -> np.ndarray:
    """Return the indices of the starts, sorted by their best value, int (n,).

    Args:
        result: result of `Starts`.
        maximize: whether the largest value is the best.
    """
    values = np.asarray(result["best_loss"].isel(frame=-1).values, float).ravel()
    return np.argsort(np.where(np.isfinite(values), -values if maximize else values, np.inf), kind="stable")


def best_of(result: "xarray.Dataset", *, maximize: bool) -> tuple[int, ...]:
    """Return the index, along each axis, of the start with the best value.

    Args:
        result: result of `Starts`.
        maximize: whether the largest value is the best.
    """
    best = int(best_first(result, maximize=maximize)[0])
    return tuple(int(index) for index in np.unravel_index(best, result["status"].shape))


def bounds_of(scenario: Scenario, result: "xarray.Dataset", wrt: Sequence[str], index: tuple[int, ...]) -> list[str]:
    """Return a line for each entry of the best parameters of a start that lies at a bound.

    Args:
        scenario: with the bounds.
        result: result of `Starts`.
        wrt: parameters that were optimized.
        index: of the start along each axis.
    """
    best, sides = ({name: result[f"{word}_{name}"].values[index] for name in wrt} for word in ("best", "bound"))
    return bound_lines(scenario, best, sides, has_derivative="gradient_norm" in result)


def rows_of(result: "xarray.Dataset", wrt: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return header and rows of a table of the starts: initial values, best value, best parameters and status.

    Args:
        result: result of `Starts`.
        wrt: parameters that were optimized.
    """
    columns, status = columns_of(result), result["status"]
    scalars = [name for name in wrt if result[f"best_{name}"].ndim == status.ndim]
    header = (*(f"from {name}" for name in columns), "best value", *scalars, "ended")
    last = result["best_loss"].isel(frame=-1)
    rows = []
    for where in np.ndindex(status.shape):
        initial = (array[where[:-1]].item() for array in columns.values())
        best = (result[f"best_{name}"].values[where].item() for name in scalars)
        rows.append((*initial, last.values[where].item(), *best, str(status.values[where]).replace("_", " ")))
    return header, rows
