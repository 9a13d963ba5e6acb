"""Reports of first and second derivatives."""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table, show
from simkit.cli.progress import Progress
from simkit.core.gradient import verdict_of
from simkit.core.parameter import MOST_SHOWN, count
from simkit.core.status import FAILURES, Status
from simkit.jobs.derivatives import objective_settings
from simkit.jobs.differentiation import curvature
from simkit.jobs.runs import NOT_FINITE
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.gradient import GradientCheck
    from simkit.jobs.derivatives import Derivative
    from simkit.jobs.differentiation import Curvature
    from simkit.jobs.stored_derivatives import Gradient
    from simkit.render.page import Size


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
    mean = derivative if derivative.error else None
    columns = MEAN_COLUMNS if mean else COLUMNS if checked else COLUMNS[:1]
    exact = 1 if mean else 2
    rows = _rows(derivative, checked, wrt)
    if json:
        result = _as_data(derivative, scenario, objective)
        result |= {"memory": derivative.fit} if derivative.fit else {}
        result |= {"seeds": derivative.seeds} if derivative.seeds else {}
        result |= {"standard_error": derivative.value_error} if mean else {}
        result |= {"directory": folder} if folder else {}
        keys = [column.replace(" ", "_") for column in columns]
        print_json(
            result | {"wrt": {name: dict(zip(keys, row, strict=False)) for name, row in rows.items()}}, "derivative"
        )
    else:
        _print_value(derivative, scenario, objective, mean)
        print_table(
            ("with respect to", *columns),
            [(name, *map(_digits, row[:exact]), *map(_rough, row[exact:])) for name, row in rows.items()],
        )
        about = {"memory": derivative.fit, "stored": folder, "note": _note(derivative)}
        print("".join(f"\n{name}: {words}\n" for name, words in about.items() if words), end="")
    wrong = [name for name in wrt if checked is not None and checked.verdict[name] == "differs"]
    difference = f"d {objective} / d {wrong[0]} differs from its central difference" if wrong else ""
    return _exit_code(derivative, scenario, f"{objective} or a derivative", difference)


def _as_data(result: "Derivative | Curvature", scenario: Scenario, objective: str) -> dict[str, Any]:
    about = {"scenario": scenario.name, "objective": objective, "value": result.value}
    status = Status(result.status).name.lower()
    return about | {"precision": scenario.run.precision, "status": status, "note": result.note}


def _print_value(
    result: "Derivative | Curvature", scenario: Scenario, objective: str, mean: "Derivative | None" = None
) -> None:
    error = f" +- {_rough(mean.value_error)}" if mean else ""
    members = "" if mean is None else f"; mean of {mean.seeds} seeds" if mean.seeds else "; mean over samples"
    doc = objective_settings(scenario, objective).doc
    meaning = f"{f'{doc}; ' if doc else ''}{scenario.run.precision}{members}"
    print(f"{objective} = {result.value:.10g}{error}   ({meaning})\n")


def _note(result: "Derivative | Curvature") -> str:
    """Return the note of a derivative of a run that did not fail."""
    return "" if result.status in FAILURES else result.note


def _exit_code(result: "Derivative | Curvature", scenario: Scenario, numbers: str, difference: str) -> int:
    """Print why a derivative is a failure, if it is, and return the exit code.

    Args:
        result: the derivatives.
        scenario: scenario with overrides applied.
        numbers: what they are, in words.
        difference: what differs from its central difference, in words; empty if nothing does.
    """
    problem = f"{scenario.name}: {numbers} is not finite: {NOT_FINITE}"
    if result.status in FAILURES:
        problem = f"{result.note}; its derivative is not defined"
    elif result.is_finite:
        reason = "by more than the error of the difference: it is wrong, or the objective is not smooth there"
        problem = f"{scenario.name}: {difference} {reason}" if difference else ""
    if problem:
        print(f"simkit: {problem}", file=sys.stderr)
    return FAILED if problem else FINE


def _rows(derivative: "Derivative", checked: "GradientCheck | None", wrt: Sequence[str]) -> dict[str, list[Any]]:
    columns: list[Mapping[str, Any]] = [derivative.derivative]
    if derivative.error:
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
    if arguments.check and arguments.precision is None:
        scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
    doing = "differentiating twice" + ", and comparing with central differences" * arguments.check
    with Progress(scenario.name, doing=doing, phase="ran"):
        result = curvature(scenario, wrt, objective, arguments.mode, check=arguments.check)
    verdict = verdict_of(result.matrix, result.difference) if result.difference else None
    if arguments.json:
        record = _as_data(result, scenario, objective) | {"entries": result.entries}
        record |= {"derivative": result.derivative, "hessian": result.matrix}
        if result.difference:
            record |= {"central_difference": result.difference.value, "verdict": verdict}
        print_json(record, "second_derivative")
    else:
        _print_value(result, scenario, objective)
        rows = zip(result.entries, result.derivative, strict=True)
        print_table(("with respect to", "derivative"), [(name, f"{value:.10g}") for name, value in rows])
        print("\nsecond derivatives:\n")
        _print_matrix(result)
        if verdict:
            largest = np.abs(result.matrix - result.difference.value).max() if result.difference else 0.0
            print(f"\ncentral differences of the derivative: {verdict} (largest difference {largest:.1g})")
        if note := _note(result):
            print(f"\nnote: {note}")
    difference = f"a second derivative of {objective} differs from its central difference" * (verdict == "differs")
    return _exit_code(result, scenario, f"a second derivative of {objective}", difference)


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
