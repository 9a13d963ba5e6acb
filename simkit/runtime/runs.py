"""Run a scenario, resume it, read it back."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError
from simkit.runtime import datasets
from simkit.runtime.environment import precision, use_compilation_cache
from simkit.runtime.files import DamagedFileError, read_json
from simkit.runtime.outcome import Outcome, Report, checked, execute
from simkit.runtime.run_directory import SUMMARY, RunDirectory, check_output
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    import xarray

    from simkit.runtime.driver import Plan


def load(scenario: "str | Path | Scenario", values: Mapping[str, Any] | None = None) -> Scenario:
    """Return a scenario by name, path or as it is, with values replaced.

    Args:
        scenario: shipped name, path of a TOML file, or a scenario.
        values: parameter, config or run settings by key.

    Raises:
        UserError: if there is no such scenario or a value is not allowed.
    """
    found = scenario if isinstance(scenario, Scenario) else find_scenario(scenario)
    return with_values(found, values) if values else found


def run(
    scenario: "str | Path | Scenario", *, output: Path | str | None = None, overwrite: bool = False, **values: Any
) -> "xarray.Dataset":
    """Run a scenario and return its frames and diagnostics as one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, or a `Scenario`.
        output: run directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: parameters (``reynolds=800``), config or run settings (``steps=2000``, ``seed=1``).

    Raises:
        UserError: if anything given is wrong.
        RunFailedError: if the run turns non-finite. A run that does not converge returns, with a warning.
    """
    use_compilation_cache()
    outcome = start(load(scenario, values), Path(output) if output else None, overwrite=overwrite)
    return checked(outcome).dataset()


def resume(directory: Path | str) -> "xarray.Dataset":
    """Finish an interrupted run, sweep or optimization (nothing is computed twice) and return what it returns.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or cannot be read back.
        RunFailedError: if the run turns non-finite.
    """
    use_compilation_cache()
    opened = RunDirectory.open(directory)
    if opened.kind == "sweep":
        from simkit.runtime import sweeps

        return sweeps.checked(sweeps.proceed_sweep(opened))
    if opened.kind == "optimize":
        from simkit.runtime.optimizations import proceed_optimization

        return checked(proceed_optimization(opened)).dataset()
    return checked(proceed(opened)).dataset()


def open_run(directory: Path | str) -> "xarray.Dataset":
    """Return what a run, sweep or optimization has stored so far as a labeled data set, without computing anything.

    Args:
        directory: the run directory.

    Raises:
        UserError: if it is not a run directory or its files are damaged.
    """
    opened = RunDirectory.open(directory)
    if opened.kind == "sweep":
        from simkit.runtime.sweeps import read_sweep

        return read_sweep(opened)
    return stored(opened).dataset()


def start(
    scenario: Scenario,
    output: Path | None,
    *,
    overwrite: bool = False,
    report: Report = lambda piece, total: None,
) -> Outcome:
    """Run a scenario from the beginning.

    Args:
        scenario: overrides applied.
        output: run directory to write, or ``None``.
        overwrite: replace an existing run directory.
        report: told after every segment.

    Raises:
        UserError: if the scenario cannot be built or the output cannot be written; nothing is left half-written.
    """
    from simkit.runtime.fitting import check_frames

    if output:
        check_output(output, overwrite=overwrite)
    plan = plan_of(scenario)
    with precision(scenario.run.precision):
        simulation = build(scenario)
        check_frames(simulation, plan)
        if output is None:
            return execute(scenario, simulation, plan, None, report)
        request = {"labels": datasets.labels_of(simulation)}
        directory = RunDirectory.create(output, "run", scenario, request, overwrite=overwrite)
        with directory.begun():
            return execute(scenario, simulation, plan, directory, report)


def proceed(
    directory: RunDirectory,
    *,
    report: Report = lambda piece, total: None,
    warn: Callable[[str], None] = warnings.warn,
) -> Outcome:
    """Finish an interrupted run.

    Args:
        directory: of kind ``"run"``.
        report: told after every segment.
        warn: told in one line what was damaged, or which software has changed since the run began.

    Raises:
        UserError: if the directory cannot be read back.
    """
    scenario = directory.scenario()
    directory.warn_of_changes(warn)
    with precision(scenario.run.precision), directory.locked():
        return execute(scenario, build(scenario), plan_of(scenario), directory, report, warn)


def stored(directory: RunDirectory) -> Outcome:
    """Read a run back.

    Args:
        directory: of kind ``"run"`` or ``"optimize"``.

    Raises:
        UserError: if nothing is stored yet or a segment is damaged.
    """
    try:
        pieces = directory.store.read()
    except DamagedFileError as error:
        raise UserError(f"{error}; repair the run with: simkit resume {directory.path}") from None
    if not pieces:
        raise UserError(f"{directory.path} holds no frames yet; finish it with: simkit resume {directory.path}")
    status, summary = pieces[-1]["status"][-1], directory.path / SUMMARY
    if summary.exists():
        try:
            finished = read_json(summary)
            if finished["segments"] != len(pieces) - 1:
                raise DamagedFileError(f"{directory.path}: segment {len(pieces):06d}.npz is missing")
            status = np.asarray(finished["status_code"])
        except (DamagedFileError, KeyError) as error:
            raise UserError(f"{error}; repair the run with: simkit resume {directory.path}") from None
    return Outcome(
        arrays=datasets.join(pieces),
        labels=directory.manifest["request"]["labels"],
        status=status,
        segments=len(pieces) - 1,
        directory=directory.path,
        scenario=directory.scenario(),
    )


def plan_of(scenario: Scenario) -> "Plan":
    """Return how a scenario's run is cut into segments."""
    from simkit.runtime.driver import Plan

    return Plan(scenario.run.steps, scenario.run.every)
