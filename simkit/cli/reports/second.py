"""Report of second derivatives."""

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress

if TYPE_CHECKING:
    from simkit.jobs.second_derivatives import Curvature
    from simkit.scenario.scenario import Scenario

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
    from simkit.core.gradient import verdict_of
    from simkit.core.status import FAILURES
    from simkit.jobs.derivatives import objective_settings
    from simkit.jobs.second_derivatives import curvature

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
