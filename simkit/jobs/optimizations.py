"""Optimizations of a scenario's objective: runs whose steps are updates of the parameters."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from simkit.core.optimization import optimization
from simkit.core.optimizers.methods import LEARNING_RATE, METHODS, Method, check_options
from simkit.core.parameter import POSITIVE, shown_bound
from simkit.core.status import Status
from simkit.engine.plan import Plan
from simkit.jobs.callbacks import Report, Warn
from simkit.jobs.derivatives import (
    Mode,
    note_of_steps,
    objective_name,
    objective_of,
    objective_settings,
    selected_parameters,
    status_note,
    status_of_run,
)
from simkit.jobs.job import Prepared
from simkit.jobs.outcome import NOT_FINITE, DrivenJob, Outcome, describe
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets, manifest_schema
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation
    from simkit.engine.loop import Segment

# Maximum number of entries at their bounds that a message lists.
MOST_LINES = 4
# Bounds of the learning rate; 0 is excluded.
LEARNING_RATES = (POSITIVE[0], 10.0)


def bound_lines(
    scenario: Scenario, best: Mapping[str, np.ndarray], sides: Mapping[str, np.ndarray], *, has_derivative: bool
) -> list[str]:
    """Return a line for each entry of the best parameters that lies at a bound.

    Args:
        scenario: with the bounds.
        best: best parameters.
        sides: by parameter, -1 where it is at its lower and 1 where at its upper bound.
        has_derivative: whether the method has derivatives; otherwise it is not known whether the objective improves
            beyond the bound.
    """
    lines, beyond = [], ", toward which the objective still improves" * has_derivative
    for name, values in best.items():
        bounds = scenario.parameters[name].bounds
        for index in np.argwhere(sides[name]):
            value, upper = values[tuple(index)], sides[name][tuple(index)] > 0
            entry = f"{name}[{', '.join(map(str, index))}]" if index.size else name
            bound = f"its {'upper' if upper else 'lower'} bound {shown_bound(bounds, int(upper))}"
            lines.append(f"{entry} = {value:g} ends at {bound}{beyond}")
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"{len(lines) - MOST_LINES} more"]


class Optimized(Outcome):
    """Result of an optimization, whose steps are iterations; using all of them is no failure."""

    animated = False

    @property
    def failed(self) -> bool:
        """Whether the objective turned non-finite."""
        return bool((self.status == Status.NON_FINITE).any())

    @property
    def best(self) -> dict[str, Any]:
        """The best parameters, as plain data."""
        observed, _ = datasets.split(self.arrays)
        found = {name: array[-1].tolist() for name, array in observed.items() if name.startswith("best_")}
        return {name.removeprefix("best_"): value for name, value in found.items()}

    @property
    def unmoved(self) -> list[str]:
        """The parameters whose best values are those of the start."""
        observed, _ = datasets.split(self.arrays)
        return [name for name in self.best if np.array_equal(*observed[f"best_{name}"][[0, -1]])]

    @property
    def at_bounds(self) -> list[str]:
        """A line for each entry of the best parameters that lies at a bound."""
        observed, diagnosed = datasets.split(self.arrays)
        best = {name: observed[f"best_{name}"][-1] for name in self.best}
        # Runs of earlier versions have no such array.
        sides = {name: observed.get(f"bound_{name}", np.zeros(1))[-1] for name in best}
        return bound_lines(self.scenario, best, sides, has_derivative="gradient_norm" in diagnosed)

    @property
    def message(self) -> str:
        """The status in words."""
        if self.finished and self.failed:
            return (
                f"{self.scenario.name}: the objective or a derivative is not finite {self._when()}, with "
                f"{describe(self.scenario, self._last)}: {NOT_FINITE}{self._best_before}"
            )
        if not self.finished:
            return super().message
        ends = "".join(f"; {line}" for line in self.at_bounds)
        count, status = len(self.arrays["status"]) - 1, int(self.status)
        if status == Status.CONVERGED:
            return f"{self.scenario.name} converged after {_iterations(count)}{ends}"
        if status == Status.STALLED:
            precision = self.scenario.run.precision
            remedy = ', and precision = "float64" may find better ones' if precision == "float32" else ""
            stopped = (
                f"{self.scenario.name} stopped after {_iterations(count)}: {precision} resolves no further progress"
            )
            return f"{stopped}; the best values so far are kept{remedy}{ends}"
        used_up = f"{self.scenario.name} used its {_iterations(count)} without converging"
        return f"{used_up}; the best values so far are kept, and more iterations may find better ones{ends}"

    @property
    def _last(self) -> dict[str, float]:
        """Scalar parameters of the last iteration."""
        diagnosed = datasets.split(self.arrays)[1]
        return {name: float(f"{diagnosed[name][-1]:.6g}") for name in self.best if name in diagnosed}

    @property
    def _best_before(self) -> str:
        """The best value before the objective turned non-finite, in words; empty where there was none."""
        loss = float(datasets.split(self.arrays)[1]["best_loss"][-1])
        if not np.isfinite(loss):
            return ""
        found = ", ".join(f"{name} = {value:.6g}" for name, value in self.best.items() if isinstance(value, float))
        return f"; the best before was {loss:.6g}{f' at {found}' * bool(found)}"

    def summary(self) -> dict[str, Any]:
        """Return the content of the summary file."""
        return super().summary() | {"best": self.best}

    def dataset(self) -> "xarray.Dataset":
        """Return a labeled data set, whose attribute ``at_bounds`` lists the parameters at a bound."""
        dataset = super().dataset()
        return dataset.assign_attrs(at_bounds="; ".join(self.at_bounds)) if self.at_bounds else dataset

    def _step(self, frame: int) -> str:
        return f"iteration {range(len(self.arrays['status']))[frame]}"


def _iterations(count: int) -> str:
    return f"{count} iteration{'s' * (count != 1)}"


@dataclasses.dataclass(frozen=True)
class Optimization(DrivenJob[Optimized]):
    """An optimization of parameters.

    Attributes:
        scenario: scenario with overrides applied.
        wrt: parameters to optimize, within their bounds.
        objective: name of the objective.
        method: key of `simkit.core.optimizers.methods.METHODS`.
        iterations: maximum number of updates.
        learning_rate: learning rate of Adam.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.
    """

    kind = "optimize"
    noun = "an optimization"
    files = r"(loss|before_after)\.png"
    request_checks: ClassVar = {
        "wrt": manifest_schema.WORDS,
        "objective": manifest_schema.WORD,
        "method": manifest_schema.WORD,
        "iterations": manifest_schema.COUNT,
        "learning_rate": manifest_schema.NUMBER,
        "mode": manifest_schema.value_check("a mode", lambda value: value in ("shortest", "reverse", "forward")),
    }
    result = Optimized
    report = "optimization"

    wrt: tuple[str, ...]
    objective: str
    method: Method = "lbfgs"
    iterations: int = 50
    learning_rate: float = LEARNING_RATE
    mode: Mode = "shortest"

    def checked(self) -> "Optimization":
        """Return the job with its parameters as paths, and branches replaced by the parameters below them.

        Raises:
            UserError: if a name is unknown or a number out of range.
        """
        wrt = tuple(selected_parameters(self.scenario, self.wrt))
        objective_name(self.scenario, self.objective)
        checks.choice(self.method, "method", tuple(METHODS))
        check_options(self.method, maximize=self._maximize, mode=self.mode)
        checks.integer(self.iterations, "iterations", 1, 1_000_000)
        checks.inside(checks.number(self.learning_rate, "learning rate"), "learning rate", LEARNING_RATES)
        return dataclasses.replace(self, wrt=wrt)

    @property
    def _maximize(self) -> bool:
        return objective_settings(self.scenario, self.objective).goal == "maximize"

    @property
    def progress(self) -> dict[str, Any]:
        """Iterations, with an upper bound of the time left."""
        return {"steps": self.iterations, "unit": "iterations", "may_end_early": True}

    @property
    def plan(self) -> Plan:
        """A frame for each iteration."""
        return Plan(self.iterations, 1)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the simulation whose steps are updates of the parameters."""
        member, scenario = build(self.scenario), self.scenario
        objective = objective_of(scenario, member, self.objective)
        if member.sized_like is not None and not objective.converges:
            # The runs are parts of one compiled program, in which buffers cannot grow.
            objective = objective.with_room(member.params, jax.random.key(scenario.run.seed))
        return optimization(
            objective,
            member.params,
            self.wrt,
            {name: scenario.parameters[name].bounds for name in self.wrt},
            method=self.method,
            maximize=self._maximize,
            learning_rate=self.learning_rate if self.method == "adam" else None,
            mode=self.mode,
        )

    def words(self, segment: "Segment") -> str:
        """Return the loss in words."""
        return f"loss {float(segment.arrays['diagnosed.loss'][-1]):.6g}"

    def execute(self, prepared: Prepared, directory: RunDirectory | None, report: Report, warn: Warn) -> Optimized:
        """Optimize, and warn if a run with the best parameters fails or needs caution."""
        outcome = super().execute(prepared, directory, report, warn)
        if not outcome.failed:
            status = status_of_run(self.scenario, self.objective, outcome.best)
            if note := status_note(self.scenario, status):
                warn(f"with the best parameters, {note}")
            if note := note_of_steps(self.scenario, self.objective, outcome.unmoved):
                warn(note)
        return outcome
