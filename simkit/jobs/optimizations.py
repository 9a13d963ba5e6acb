"""Optimize a scenario's objective: an optimization is a run whose steps are updates of the parameters."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from simkit.core.precision import precision
from simkit.engine.compilation_cache import use_compilation_cache
from simkit.errors import UserError
from simkit.jobs.derivatives import Mode, check_wrt, names_of, note_of, objective_name, objective_of, status_of_run
from simkit.jobs.outcome import Outcome, Report, checked, execute
from simkit.jobs.runs import whole
from simkit.scenario import checks
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.manifest import describe_frames
from simkit.storage.run_directory import RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray

    from simkit.core.simulation import Simulation

type Method = Literal["lbfgs", "adam"]


@dataclasses.dataclass(frozen=True)
class Request:
    """What to optimize.

    Attributes:
        scenario: overrides applied.
        wrt: parameters to choose, within their bounds.
        objective: name of the objective.
        method: ``"lbfgs"`` or ``"adam"``.
        iterations: at most this many updates.
        learning_rate: of Adam.
        mode: how derivatives propagate, see `simkit.core.gradient.value_and_grad`.
    """

    scenario: Scenario
    wrt: tuple[str, ...]
    objective: str
    method: Method = "lbfgs"
    iterations: int = 50
    learning_rate: float = 0.1
    mode: Mode = "shortest"

    def checked(self) -> "Request":
        """Return itself.

        Raises:
            UserError: if a name is unknown or a number out of range.
        """
        check_wrt(self.scenario, self.wrt)
        objective_name(self.scenario, self.objective)
        if self.method not in ("lbfgs", "adam"):
            raise UserError(f"method '{self.method}' is unknown; choose lbfgs or adam")
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int):
            raise UserError(f"iterations = {self.iterations!r:.40} is not an integer; choose from 1 to 1000000")
        if not 1 <= self.iterations <= 1_000_000:
            raise UserError(f"iterations = {self.iterations} is not allowed; choose from 1 to 1000000")
        if not isinstance(self.learning_rate, int | float) or not 0 < self.learning_rate <= 10:
            raise UserError(f"learning rate = {self.learning_rate!r:.40} is not allowed; choose from above 0 to 10")
        return self


def optimize(
    scenario: Source,
    wrt: str | Sequence[str],
    *,
    objective: str | None = None,
    method: Method = "lbfgs",
    iterations: int = 50,
    learning_rate: float = 0.1,
    mode: Mode = "shortest",
    output: Path | str | None = None,
    overwrite: bool = False,
    **values: Any,
) -> "xarray.Dataset":
    """Choose parameters, within their bounds, so that an objective is smallest (or largest, if that is its goal).

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        wrt: parameter name or names.
        objective: which objective; ``None`` takes the first in the file.
        method: ``"lbfgs"`` for smooth objectives, ``"adam"`` for noisy ones.
        iterations: at most this many updates.
        learning_rate: of Adam, in units of the bounded coordinate (see `simkit.core.optimize.optimize`).
        mode: how derivatives propagate, see `simkit.core.gradient.value_and_grad`.
        output: directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: other parameters, config or run settings.

    Returns:
        ``loss`` and the parameters over the iterations, and the best parameters so far as ``best_NAME``.

    Raises:
        UserError: if anything given is wrong.
        RunFailedError: if the objective turns non-finite.
    """
    from simkit.jobs.notebook import progress_of

    use_compilation_cache()
    found = load(scenario, values)
    names, count, rate = tuple(names_of(wrt)), checks.unwrapped(iterations), checks.unwrapped(learning_rate)
    request = Request(found, names, objective_name(found, objective), method, count, rate, mode)
    with progress_of(found.name, iterations, "iterations", may_end_early=True) as update:
        outcome = start_optimization(
            request,
            folder_of(output) if output else None,
            overwrite=overwrite,
            report=lambda piece, total: update(piece.index / total),
        )
    return checked(outcome).dataset()


def start_optimization(
    request: Request,
    output: Path | None,
    *,
    overwrite: bool = False,
    report: Report = lambda piece, total: None,
) -> Outcome:
    """Optimize from the beginning.

    Args:
        request: what.
        output: run directory to write, or ``None``.
        overwrite: replace an existing run directory.
        report: told after every iteration.

    Raises:
        UserError: if anything is wrong; nothing is left half-written.
    """
    from simkit.engine.memory import shapes_of

    request = request.checked()
    if output:
        check_output(output, overwrite=overwrite)
    with precision(request.scenario.run.precision):
        simulation = _simulation(request)
        if output is None:
            return _execute(request, simulation, None, report, warnings.warn)
        settings = {field: getattr(request, field) for field in _SETTINGS}
        settings["labels"] = datasets.labels_of(simulation)
        settings["arrays"] = describe_frames(shapes_of(simulation)[1])
        with RunDirectory.begun(output, "optimize", request.scenario, settings, overwrite=overwrite) as directory:
            return _execute(request, simulation, directory, report, warnings.warn)


def proceed_optimization(
    directory: RunDirectory,
    *,
    report: Report = lambda piece, total: None,
    warn: Callable[[str], None] = warnings.warn,
) -> Outcome:
    """Finish an interrupted optimization.

    Args:
        directory: of kind ``"optimize"``.
        report: told after every iteration.
        warn: told in one line what was damaged, and what the derivatives are not worth.

    Raises:
        UserError: if the directory cannot be read back.
    """
    request = request_of(directory)
    directory.warn_of_changes(warn)
    if outcome := whole(directory):
        return outcome
    with precision(request.scenario.run.precision), directory.locked():
        return _execute(request, _simulation(request), directory, report, warn)


def request_of(directory: RunDirectory) -> Request:
    """Return what an optimization was asked.

    Raises:
        UserError: if the directory cannot be read back.
    """
    settings = directory.manifest["request"]
    wrt, *others = (settings[field] for field in _SETTINGS)
    return Request(directory.scenario(), tuple(wrt), *others).checked()


def best_of(outcome: Outcome) -> dict[str, Any]:
    """Return the best parameters an optimization found, as plain data."""
    observed, _ = datasets.split(outcome.arrays)
    return {name.removeprefix("best_"): array[-1].tolist() for name, array in observed.items()}


_SETTINGS = ("wrt", "objective", "method", "iterations", "learning_rate", "mode")


def _simulation(request: Request) -> "Simulation":
    from simkit.core.optimize import optimize as optimization_of

    member = build(request.scenario)
    return optimization_of(
        objective_of(request.scenario, member, request.objective),
        member.params,
        request.wrt,
        {name: request.scenario.parameters[name].bounds for name in request.wrt},
        method=request.method,
        maximize=request.scenario.objectives[request.objective].goal == "maximize",
        learning_rate=request.learning_rate,
        mode=request.mode,
    )


def _execute(
    request: Request,
    simulation: "Simulation",
    directory: RunDirectory | None,
    report: Report,
    warn: Callable[[str], None],
) -> Outcome:
    from simkit.engine.plan import Plan

    plan = Plan(request.iterations, 1)
    outcome = execute(
        request.scenario, simulation, plan, directory, report, warn, lambda o: {"best": best_of(o)}, "optimize"
    )
    if not outcome.failed:
        status = status_of_run(request.scenario, request.objective, best_of(outcome))
        if note := note_of(request.scenario, status):
            warn(f"with the best parameters, {note}")
    return outcome
