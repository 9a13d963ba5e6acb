"""Run a scenario from the beginning, finish it, read it back."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core.precision import precision
from simkit.engine.compilation_cache import use_compilation_cache
from simkit.engine.plan import plan_of
from simkit.errors import UserError
from simkit.jobs.fitting import check_declared, check_frames, fewer
from simkit.jobs.outcome import Outcome, Report, checked, execute
from simkit.scenario.build import build
from simkit.scenario.loading import Source, load
from simkit.scenario.scenario import Scenario
from simkit.storage import datasets
from simkit.storage.files import DamagedFileError, read_sealed_json
from simkit.storage.manifest import describe_frames
from simkit.storage.regular_files import check_regular
from simkit.storage.run_directory import SUMMARY, RunDirectory, check_output, folder_of

if TYPE_CHECKING:
    import xarray


def run(
    scenario: Source, *, output: Path | str | None = None, overwrite: bool = False, **values: Any
) -> "xarray.Dataset":
    """Run a scenario and return its frames and diagnostics as one labeled data set.

    Args:
        scenario: shipped name, path of a TOML file, a scenario, or a `Simulation` (then with ``steps=``).
        output: run directory to write, resumable after a crash; ``None`` keeps the result in memory only.
        overwrite: replace an existing run directory.
        **values: parameters (``reynolds=800``), config or run settings (``steps=2000``, ``seed=1``).

    Raises:
        UserError: if anything given is wrong.
        RunFailedError: if the run turns non-finite. A run that does not converge returns, with a warning.
    """
    from simkit.jobs.notebook import progress_of

    use_compilation_cache()
    found = load(scenario, values)
    with progress_of(found.name, found.run.steps) as update:
        outcome = start(
            found,
            folder_of(output) if output else None,
            overwrite=overwrite,
            report=lambda piece, total: update(piece.index / total),
        )
    return checked(outcome).dataset()


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
    from simkit.engine.memory import shapes_of

    if output:
        check_output(output, overwrite=overwrite)
    plan = plan_of(scenario)
    with precision(scenario.run.precision):
        simulation = build(scenario, examine=lambda made: check_declared(made, plan.frames + 1, fewer(plan)))
        state, frame = shapes_of(simulation)
        check_frames(state, frame, plan, output)
        if output is None:
            return execute(scenario, simulation, plan, None, report)
        request = {"labels": datasets.labels_of(simulation), "arrays": describe_frames(frame)}
        with RunDirectory.begun(output, "run", scenario, request, overwrite=overwrite) as directory:
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
    if outcome := whole(directory):
        return outcome
    with precision(scenario.run.precision), directory.locked():
        return execute(scenario, build(scenario), plan_of(scenario), directory, report, warn)


def whole(directory: RunDirectory) -> Outcome | None:
    """Return a finished run whose every file is whole, which needs no lock and no permission to write.

    Args:
        directory: of kind ``"run"`` or ``"optimize"``.

    Raises:
        UserError: if something else than a file is in the place of one.
    """
    if not check_regular(directory.path / SUMMARY):
        return None
    try:
        directory.store.check()
        return _read(directory)
    except DamagedFileError:
        return None


def stored(directory: RunDirectory) -> Outcome:
    """Read a run back.

    Args:
        directory: of kind ``"run"`` or ``"optimize"``.

    Raises:
        UserError: if nothing is stored yet or a segment is damaged.
    """
    try:
        return _read(directory)
    except DamagedFileError as error:
        raise UserError(f"{error}; repair the run with: simkit resume {directory.path}") from None


def _read(directory: RunDirectory) -> Outcome:
    """Read a run back.

    Raises:
        DamagedFileError: if a file is damaged or missing.
        UserError: if nothing is stored yet, or something else than a file is in the place of one.
    """
    from simkit.core.status import Status

    pieces, summary = directory.store.read(), directory.path / SUMMARY
    if not pieces:
        raise UserError(f"{directory.path} holds no frames yet; finish it with: simkit resume {directory.path}")
    kind = "optimize" if directory.kind == "optimize" else "run"
    arrays, labels = datasets.join(pieces), directory.manifest["request"]["labels"]
    status = pieces[-1]["status"][-1]
    if check_regular(summary):
        finished = read_sealed_json(summary, directory.identity)
        if finished.get("segments") != len(pieces) - 1:
            raise DamagedFileError(f"{directory.path}: segment {len(pieces):06d}.npz is missing")
        status = np.asarray(finished.get("status_code"))
    if not np.isin(status, list(Status)).all():
        raise DamagedFileError(f"{directory.path}: it holds a status that does not exist")
    datasets.check_labels(arrays, labels, directory.path)
    return Outcome(
        arrays=arrays,
        labels=labels,
        status=status,
        segments=len(pieces) - 1,
        directory=directory.path,
        scenario=directory.scenario(),
        kind=kind,
        finished=summary.exists(),
        version=directory.manifest["versions"].get("simkit", ""),
    )
