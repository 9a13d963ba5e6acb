"""Report of a derivative, beside its central differences if they were computed."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table, show
from simkit.core.parameter import MOST_SHOWN, count
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.core.gradient import GradientCheck
    from simkit.jobs.derivatives import Derivative
    from simkit.jobs.gradients import Gradient
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
    from simkit.jobs.derivatives import objective_settings
    from simkit.jobs.mean_derivatives import MeanDerivative
    from simkit.jobs.outcome import NOT_FINITE

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
    from simkit.jobs.mean_derivatives import MeanDerivative

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
