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
    derivative: "Derivative", job: "Gradient", folder: Path, arguments: argparse.Namespace, size: "Size | None"
) -> int:
    """Report a stored derivative."""
    return report(derivative, job.scenario, job.objective, job.wrt, json=arguments.json, folder=folder)


def report(
    derivative: "Derivative",
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
        derivative: the derivative.
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
    from simkit.jobs.derivatives import objective_settings
    from simkit.jobs.runs import NOT_FINITE

    mean = derivative if derivative.seeds else None
    columns = MEAN_COLUMNS if mean else COLUMNS if checked else COLUMNS[:1]
    exact = 1 if mean else 2
    rows = _rows(derivative, checked, wrt)
    failed = derivative.status in FAILURES
    if json:
        result = {"scenario": scenario.name, "objective": objective, "value": derivative.value}
        result |= {
            "precision": scenario.run.precision,
            "status": Status(derivative.status).name.lower(),
            "note": derivative.note,
        }
        result |= {"memory": derivative.fit} if derivative.fit else {}
        result |= {"seeds": mean.seeds, "standard_error": mean.value_error} if mean else {}
        result |= {"directory": folder} if folder else {}
        keys = [column.replace(" ", "_") for column in columns]
        print_json(result | {"wrt": {name: dict(zip(keys, row, strict=False)) for name, row in rows.items()}})
    else:
        doc = objective_settings(scenario, objective).doc
        error = f" +- {_rough(mean.value_error)}" if mean else ""
        members = f"; mean of {mean.seeds} seeds" if mean else ""
        print(f"{objective} = {derivative.value:.10g}{error}   ({doc}; {scenario.run.precision}{members})\n")
        print_table(
            ("with respect to", *columns),
            [(name, *map(_digits, row[:exact]), *map(_rough, row[exact:])) for name, row in rows.items()],
        )
        if derivative.fit:
            print(f"\nmemory: {derivative.fit}")
        if folder:
            print(f"\nstored: {folder}")
        if derivative.note and not failed:
            print(f"\nnote: {derivative.note}")
    if failed:
        print(f"simkit: {derivative.note}; its derivative is not defined", file=sys.stderr)
    elif not derivative.is_finite:
        print(f"simkit: {scenario.name}: {objective} or a derivative is not finite: {NOT_FINITE}", file=sys.stderr)
    if failed or not derivative.is_finite:
        return FAILED
    wrong = [name for name in wrt if checked is not None and checked.verdict[name] == "differs"]
    if wrong:
        problem = "by more than the error of the difference: it is wrong, or the objective is not smooth there"
        print(
            f"simkit: {scenario.name}: d {objective} / d {wrong[0]} differs from its central difference {problem}",
            file=sys.stderr,
        )
    return FAILED if wrong else FINE


def _rows(derivative: "Derivative", checked: "GradientCheck | None", wrt: Sequence[str]) -> dict[str, list[Any]]:
    columns: list[Mapping[str, Any]] = [derivative.derivative]
    if derivative.seeds:
        columns.append(derivative.error)
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
    """Differentiate twice and report; a derivative that is not finite, or differs from its difference, is a failure."""
    import numpy as np

    from simkit.core.gradient import verdict_of
    from simkit.core.status import FAILURES
    from simkit.jobs.derivatives import objective_settings
    from simkit.jobs.differentiation import curvature

    if arguments.check and arguments.precision is None:
        scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
    doing = "differentiating twice" + ", and comparing with central differences" * arguments.check
    with Progress(scenario.name, doing=doing, phase="ran"):
        result = curvature(scenario, wrt, objective, arguments.mode, check=arguments.check)
    verdict = verdict_of(result.matrix, result.difference) if result.difference else None
    if arguments.json:
        print_json(_as_json(scenario, objective, result, verdict))
    else:
        meaning = objective_settings(scenario, objective).doc
        print(f"{objective} = {result.value:.10g}   ({meaning}; {scenario.run.precision})\n")
        rows = zip(result.entries, result.derivative, strict=True)
        print_table(("with respect to", "derivative"), [(name, f"{value:.10g}") for name, value in rows])
        print("\nsecond derivatives:\n")
        _print_matrix(result)
        if verdict:
            largest = np.abs(result.matrix - result.difference.value).max() if result.difference else 0.0
            print(f"\ncentral differences of the derivative: {verdict} (largest difference {largest:.1g})")
        if result.note and result.status not in FAILURES:
            print(f"\nnote: {result.note}")
    failed = result.status in FAILURES
    if failed:
        print(f"simkit: {result.note}; its derivatives are not defined", file=sys.stderr)
    elif not (np.isfinite(result.matrix).all() and np.isfinite(result.derivative).all()):
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


def _as_json(scenario: "Scenario", objective: str, result: "Curvature", verdict: str | None) -> dict[str, Any]:
    from simkit.core.status import Status

    record = {"scenario": scenario.name, "objective": objective, "value": result.value}
    record |= {"precision": scenario.run.precision, "status": Status(result.status).name.lower(), "note": result.note}
    record |= {"entries": result.entries, "derivative": result.derivative.tolist(), "hessian": result.matrix.tolist()}
    if result.difference:
        record |= {"central_difference": result.difference.value.tolist(), "verdict": verdict}
    return record


def _print_matrix(result: "Curvature") -> None:
    if len(result.entries) <= MOST_COLUMNS:
        rows = zip(result.entries, result.matrix, strict=True)
        print_table(("", *result.entries), [(name, *(f"{value:.8g}" for value in row)) for name, row in rows])
        return
    # Wider than a terminal: one line for each pair.
    pairs = [(i, j) for i in range(len(result.entries)) for j in range(i + 1)]
    print_table(
        ("row", "column", "second derivative"),
        [(result.entries[i], result.entries[j], f"{result.matrix[i, j]:.10g}") for i, j in pairs],
    )
