"""Optimizations of the parameters of a scenario, from one start or several, and `simkit.optimize`."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from simkit.core.devices import computing_on
from simkit.core.optimization import optimization
from simkit.core.optimizers.methods import LEARNING_RATE, check_options, chosen, learning_rate_of
from simkit.core.parameter import shown_bound
from simkit.core.parts import table_of
from simkit.core.pytrees import size_in_bytes
from simkit.core.settings import Settings, unwrapped, word
from simkit.core.simulation import Simulation
from simkit.core.status import Status
from simkit.engine.driver import Plan, Segment
from simkit.engine.memory import shapes_of
from simkit.errors import UserError
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
from simkit.jobs.job import Prepared, begin, enter, run_to_dataset
from simkit.jobs.points import check_axes, sampled
from simkit.jobs.reporting import Report, Warn
from simkit.jobs.runs import NOT_FINITE, DrivenJob, Outcome, RunFailedError, describe
from simkit.jobs.sweep_results import columns_of, failures
from simkit.jobs.sweeps import Sweep
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.made_in_python import Source, load
from simkit.scenario.scenario import ObjectiveSettings, Scenario
from simkit.storage import datasets, manifest
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray


# Maximum number of entries at their bounds that a message lists.
MOST_LINES = 4


def bound_lines(
    scenario: Scenario, best: Mapping[str, np.ndarray], sides: Mapping[str, np.ndarray], *, has_derivative: bool
) -> list[str]:
    """Return a line for each entry of the best parameters that lies at a bound.

    ``sides`` are -1 where it is the lower and 1 where it is the upper one; without derivatives it is not known whether
    the objective improves beyond the bound.
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

    @property
    def failed(self) -> bool:
        """Whether the objective turned non-finite."""
        return bool((self.status == Status.NON_FINITE).any())

    @property
    def best(self) -> dict[str, Any]:
        """The best parameters, as plain data."""
        observed, _ = datasets.split(self.arrays)
        values = {name: array[-1].tolist() for name, array in observed.items() if name.startswith("best_")}
        return {name.removeprefix("best_"): value for name, value in values.items()}

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
        parameters = ", ".join(f"{name} = {value:.6g}" for name, value in self.best.items() if isinstance(value, float))
        return f"; the best before was {loss:.6g}{f' at {parameters}' * bool(parameters)}"

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
        wrt: parameters to optimize, within their bounds.
        objective: name of the objective.
        method: name of a method, and its options, see `simkit.core.optimizers.methods.chosen`.
        iterations: maximum number of updates.
        learning_rate: learning rate of Adam.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.
    """

    kind = "optimize"
    noun = "an optimization"
    files = r"(loss|before_after)\.png"
    request_checks: ClassVar = {
        "wrt": manifest.WORDS,
        "objective": manifest.WORD,
        "method": manifest.WORD,
        "iterations": manifest.COUNT,
        "learning_rate": manifest.NUMBER,
        "mode": manifest.value_check("a mode", lambda value: value in ("shortest", "reverse", "forward")),
    }
    result = Optimized
    report = "optimization"

    wrt: tuple[str, ...]
    objective: str
    method: str = "lbfgs"
    iterations: int = 50
    learning_rate: float = LEARNING_RATE
    mode: Mode = "shortest"

    def checked(self) -> "Optimization":
        """Return the job with its parameters as paths, and branches replaced by the parameters below them."""
        wrt = tuple(selected_parameters(self.scenario, self.wrt))
        objective_name(self.scenario, self.objective)
        check_options(self._method["method"], maximize=self._maximize, mode=self.mode)
        checks.integer(self.iterations, "iterations", 1, 1_000_000)
        return dataclasses.replace(self, wrt=wrt)

    @property
    def _method(self) -> Settings:
        # A request has a learning rate, whatever its method.
        takes = "learning_rate" in chosen(self.method) and "learning_rate" not in table_of(self.method, "method")
        return chosen(self.method, learning_rate=self.learning_rate if takes else None)

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
            learning_rate=self._method.get("learning_rate"),
            mode=self.mode,
        )

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the state of the optimized run."""
        return size_in_bytes(shapes_of(build(self.scenario))[0])

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


MOST_STARTS = 100_000


@dataclasses.dataclass(frozen=True)
class Starts(Sweep):
    """An optimization from several starts, in lanes: a start that has converged is replaced by the next.

    Its further attributes are those of `Optimization`.
    """

    kind = "optimize_starts"
    noun = "an optimization from several starts"
    request_checks: ClassVar = {**Sweep.request_checks, **Optimization.request_checks}
    report = "starts"
    # As of a single optimization: one that used all its iterations, or got no further, has kept its best values.
    failures = ("non_finite",)

    wrt: tuple[str, ...] = ()
    objective: str = ""
    method: str = "lbfgs"
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
        """Return the job with its parameters as paths."""
        wrt = self.optimization.checked().wrt
        for name in self.over:
            word("of a parameter to optimize", tuple(wrt)).check(name, "starts")
        checked = super().checked()
        assert isinstance(checked, Starts)  # a copy of this job
        return dataclasses.replace(checked, wrt=wrt)

    def bytes_at_once(self, prepared: Prepared) -> float:
        """Return the bytes of the states of the runs optimized together."""
        return min(self.members, self.chunk or self.members) * self.optimization.bytes_at_once(prepared)

    def simulation(self, *, new: bool) -> "Simulation":
        """Return the optimization from one start as a simulation."""
        made = self.optimization.simulation(new=new)
        if new:
            check_axes(made, self.over)
        return made

    @staticmethod
    def warning(result: "xarray.Dataset") -> str:
        """Return the starts whose objective turned non-finite."""
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
    count = checks.integer(unwrapped(starts, "starts"), "starts", 1, MOST_STARTS)
    ranges = {name: scenario.parameters[name].bounds for name in selected_parameters(scenario, wrt)}
    if unbounded := next((name for name, ends in ranges.items() if not all(map(math.isfinite, ends))), None):
        raise UserError(
            f"'{unbounded}' has no lower and upper bound between which to sample starts; give values, "
            f"starts={{'{unbounded}': [...]}}"
        )
    over, origin = sampled(scenario, ranges, "latin_hypercube", count)
    return Starts(scenario, over, zip=True, origin=origin, wrt=tuple(wrt), objective=objective, **fields)


def best_first(result: "xarray.Dataset", *, maximize: bool) -> np.ndarray:
    """Return the indices of the starts of a result of `Starts`, sorted by their best value, int (n,)."""
    values = np.asarray(result["best_loss"].isel(frame=-1).values, float).ravel()
    return np.argsort(np.where(np.isfinite(values), -values if maximize else values, np.inf), kind="stable")


def best_of(result: "xarray.Dataset", *, maximize: bool) -> tuple[int, ...]:
    """Return the index, along each axis, of the start with the best value."""
    best = int(best_first(result, maximize=maximize)[0])
    return tuple(int(index) for index in np.unravel_index(best, result["status"].shape))


def bounds_of(scenario: Scenario, result: "xarray.Dataset", wrt: Sequence[str], index: tuple[int, ...]) -> list[str]:
    """Return a line for each entry of the best parameters of a start, given by its index, that lies at a bound."""
    best, sides = ({name: result[f"{word}_{name}"].values[index] for name in wrt} for word in ("best", "bound"))
    return bound_lines(scenario, best, sides, has_derivative="gradient_norm" in result)


def rows_of(result: "xarray.Dataset", wrt: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return header and rows of a table of the starts: initial values, best value, best parameters and status."""
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


def planned(
    scenario: Scenario,
    wrt: str | Sequence[str],
    objective: str | None,
    *,
    method: str,
    iterations: int,
    learning_rate: float | None,
    mode: Mode,
    starts: int | Mapping[str, Any] | None,
) -> Optimization | Starts:
    """Return the job of an optimization, from one start or several; arguments as for `optimize`."""
    names, name = tuple(selected_parameters(scenario, wrt)), objective_name(scenario, objective)
    rate = learning_rate_of(method, unwrapped(learning_rate, "learning_rate"))
    count = unwrapped(iterations, "iterations")
    options: Any = {"method": method, "iterations": count, "learning_rate": rate, "mode": mode}
    if starts is None:
        return Optimization(scenario, names, name, **options)
    return starts_of(scenario, names, name, starts, **options)


def optimize(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: str | None = None,
    method: str = "lbfgs",
    iterations: int = 50,
    learning_rate: float | None = None,
    mode: Mode = "shortest",
    starts: int | Mapping[str, Any] | None = None,
    output: Path | str | None = None,
    overwrite: bool = False,
    device: str = "auto",
    **values: Any,
) -> "xarray.Dataset":
    """Minimize an objective (or maximize it, if that is its goal) over parameters within their bounds.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names; of nested ones the path, ``"closure.0.weight"``, or a branch for all below it.
        objective: name of the objective; ``None`` takes the first in the file.
        method: ``"lbfgs"`` for smooth objectives, ``"adam"`` for noisy derivatives, ``"levenberg_marquardt"`` for sums
            of squares, ``"cma_es"`` for objectives without useful derivatives (needs ``simkit-physics[evolution]``), or
            that of another package; options follow a colon, ``"adam:learning_rate=0.05"``.
        iterations: maximum number of updates.
        learning_rate: learning rate of Adam, in units of the bounded coordinate (see
            `simkit.core.optimization.optimization`); ``None`` is 0.1.
        mode: mode of differentiation, see `simkit.core.gradient.with_derivative`.
        starts: optimize from several starts at once: a number of starts between the bounds, or ``{parameter: values}``
            of which every combination is a start; the result then has the axes of `simkit.sweep`.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        device: as for `simkit.run`.
        **values: other parameters, config or run settings.

    Returns:
        ``loss`` and the parameters over the iterations, and the best parameters so far as ``best_NAME``; ``bound_NAME``
        is -1 or 1 where the best value is at its lower or upper bound, and the attribute ``at_bounds`` lists these.

    Raises:
        UserError: if an argument is wrong.
        RunFailedError: if the objective turns non-finite.

    Example:
        >>> best = simkit.optimize("bouncing_ball", "launch_speed", objective="miss")
        >>> miss = float(best["loss"].min()) ** 0.5
        >>> print(f"{float(best['best_launch_speed'][-1]):.3f} m/s, {miss:.4f} m from the target")
        5.135 m/s, 0.0000 m from the target
    """
    enter("optimize", scenario, values, overwrite=overwrite)
    options: dict[str, Any] = {"method": method, "iterations": iterations, "learning_rate": learning_rate, "mode": mode}
    with computing_on(device):
        job: Any = planned(load(scenario, values), wrt, objective, starts=starts, **options)
        return run_to_dataset(job, partial(begin, job, output, overwrite))
