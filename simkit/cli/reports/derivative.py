"""Reports of first and second derivatives."""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table, show
from simkit.cli.progress import Progress
from simkit.core.parameter import MOST_SHOWN, count
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.gradient import GradientCheck
    from simkit.jobs.derivatives import Derivative
    from simkit.jobs.differentiation import Curvature
    from simkit.jobs.stored_derivatives import Gradient
    from simkit.render.figure import Size


# Supported options of pictures.
PICTURES = ()
COLUMNS = ("derivative", "central difference", "its error", "relative difference", "verdict")
MEAN_COLUMNS = ("derivative", "standard error")


def finish(
    found: "Derivative", job: "Gradient", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report a stored derivative.

    Args:
        found: the derivative.
        job: the job.
        folder: its run directory.
        arguments: arguments with ``json``.
        size: unused; there is no picture.
    """
    return report(found, job.scenario, job.objective, job.wrt, json=arguments.json, folder=folder)


def report(
    found: "Derivative",
    scenario: Scenario,
    objective: str,
    wrt: Sequence[str],
    *,
    json: bool,
    checked: "GradientCheck | None" = None,
    folder: Path | None = None,
) -> int:
    """Report a derivative; one that is not finite, or differs from its difference, is a failure.

    Args:
        found: the derivative.
        scenario: scenario with overrides applied.
        objective: name of the objective.
        wrt: paths of the parameters.
        json: whether to print JSON.
        checked: the derivative beside its central differences; ``None`` if they were not computed.
        folder: its run directory; ``None`` if it is not stored.

    Returns:
        The exit code.
    """
    from simkit.core.status import FAILURES, Status
    from simkit.jobs.derivatives import MeanDerivative, objective_settings
    from simkit.jobs.runs import NOT_FINITE

    mean = found if isinstance(found, MeanDerivative) else None
    columns = MEAN_COLUMNS if mean else COLUMNS if checked else COLUMNS[:1]
    exact = 1 if mean else 2
    rows = _rows(found, checked, wrt)
    failed = found.status in FAILURES
    if json:
        result = {"scenario": scenario.name, "objective": objective, "value": found.value}
        result |= {"precision": scenario.run.precision, "status": Status(found.status).name.lower(), "note": found.note}
        result |= {"memory": found.fit} if found.fit else {}
        result |= {"seeds": mean.seeds, "standard_error": mean.value_error} if mean else {}
        result |= {"directory": folder} if folder else {}
        keys = [column.replace(" ", "_") for column in columns]
        print_json(result | {"wrt": {name: dict(zip(keys, row, strict=False)) for name, row in rows.items()}})
    else:
        doc = objective_settings(scenario, objective).doc
        error = f" +- {_rough(mean.value_error)}" if mean else ""
        members = f"; mean of {mean.seeds} seeds" if mean else ""
        print(f"{objective} = {found.value:.10g}{error}   ({doc}; {scenario.run.precision}{members})\n")
        print_table(
            ("with respect to", *columns),
            [(name, *map(_digits, row[:exact]), *map(_rough, row[exact:])) for name, row in rows.items()],
        )
        if found.fit:
            print(f"\nmemory: {found.fit}")
        if folder:
            print(f"\nstored: {folder}")
        if found.note and not failed:
            print(f"\nnote: {found.note}")
    if failed:
        print(f"simkit: {found.note}; its derivative is not defined", file=sys.stderr)
    elif not found.is_finite:
        print(f"simkit: {scenario.name}: {objective} or a derivative is not finite: {NOT_FINITE}", file=sys.stderr)
    if failed or not found.is_finite:
        return FAILED
    wrong = [name for name in wrt if checked is not None and checked.verdict[name] == "differs"]
    if wrong:
        problem = "by more than the error of the difference: it is wrong, or the objective is not smooth there"
        print(
            f"simkit: {scenario.name}: d {objective} / d {wrong[0]} differs from its central difference {problem}",
            file=sys.stderr,
        )
    return FAILED if wrong else FINE


def _rows(found: "Derivative", checked: "GradientCheck | None", wrt: Sequence[str]) -> dict[str, list[Any]]:
    from simkit.jobs.derivatives import MeanDerivative

    columns: list[Mapping[str, Any]] = [found.derivative]
    if isinstance(found, MeanDerivative):
        columns.append(found.error)
    if checked is not None:
        largest_error = {name: float(error.max(initial=0)) for name, error in checked.error.items()}
        columns += [checked.difference, largest_error, checked.relative_difference, checked.verdict]
    return {name: [_plain(column[name]) for column in columns] for name in wrt}


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _digits(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value) if count(value) <= MOST_SHOWN else show(value)


def _rough(value: Any) -> str:
    return f"{value:.1g}" if isinstance(value, float) else str(value)


# Maximum number of columns of a table that fits a terminal.
MOST_COLUMNS = 6


def report_second(scenario: "Scenario", wrt: list[str], objective: str, arguments: argparse.Namespace) -> int:
    """Differentiate twice and report; a non-finite derivative, or one that differs from its difference, is a failure.

    Args:
        scenario: scenario with overrides applied.
        wrt: paths of parameters.
        objective: name of the objective.
        arguments: arguments with ``mode``, ``check``, ``precision`` and ``json``.
    """
    import numpy as np

    from simkit.core.gradient import verdict_of
    from simkit.core.status import FAILURES
    from simkit.jobs.derivatives import objective_settings
    from simkit.jobs.differentiation import curvature

    if arguments.check and arguments.precision is None:
        scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
    doing = "differentiating twice" + ", and comparing with central differences" * arguments.check
    with Progress(scenario.name, doing=doing):
        found = curvature(scenario, wrt, objective, arguments.mode, check=arguments.check)
    verdict = verdict_of(found.matrix, found.difference) if found.difference else None
    if arguments.json:
        print_json(_as_json(scenario, objective, found, verdict))
    else:
        meaning = objective_settings(scenario, objective).doc
        print(f"{objective} = {found.value:.10g}   ({meaning}; {scenario.run.precision})\n")
        rows = zip(found.entries, found.derivative, strict=True)
        print_table(("with respect to", "derivative"), [(name, f"{value:.10g}") for name, value in rows])
        print("\nsecond derivatives:\n")
        _print_matrix(found)
        if verdict:
            largest = np.abs(found.matrix - found.difference.value).max() if found.difference else 0.0
            print(f"\ncentral differences of the derivative: {verdict} (largest difference {largest:.1g})")
        if found.note and found.status not in FAILURES:
            print(f"\nnote: {found.note}")
    failed = found.status in FAILURES
    if failed:
        print(f"simkit: {found.note}; its derivatives are not defined", file=sys.stderr)
    elif not (np.isfinite(found.matrix).all() and np.isfinite(found.derivative).all()):
        problem = "the run failed or did not converge, or the objective has no second derivative there"
        print(f"simkit: {scenario.name}: a second derivative of {objective} is not finite: {problem}", file=sys.stderr)
        failed = True
    elif verdict == "differs":
        problem = "it is wrong, or the objective is not smooth there"
        print(
            f"simkit: {scenario.name}: the second derivatives of {objective} differ from central differences of the "
            f"derivative by more than their error: {problem}",
            file=sys.stderr,
        )
        failed = True
    return FAILED if failed else FINE


def _as_json(scenario: "Scenario", objective: str, found: "Curvature", verdict: str | None) -> dict[str, Any]:
    from simkit.core.status import Status

    record = {"scenario": scenario.name, "objective": objective, "value": found.value}
    record |= {"precision": scenario.run.precision, "status": Status(found.status).name.lower(), "note": found.note}
    record |= {"entries": found.entries, "derivative": found.derivative.tolist(), "hessian": found.matrix.tolist()}
    if found.difference:
        record |= {"central_difference": found.difference.value.tolist(), "verdict": verdict}
    return record


def _print_matrix(found: "Curvature") -> None:
    if len(found.entries) <= MOST_COLUMNS:
        rows = zip(found.entries, found.matrix, strict=True)
        print_table(("", *found.entries), [(name, *(f"{value:.8g}" for value in row)) for name, row in rows])
        return
    # Wider than a terminal: one line for each pair.
    pairs = [(i, j) for i in range(len(found.entries)) for j in range(i + 1)]
    print_table(
        ("row", "column", "second derivative"),
        [(found.entries[i], found.entries[j], f"{found.matrix[i, j]:.10g}") for i, j in pairs],
    )
