"""Differentiate a scenario's objective with respect to its parameters."""

import argparse
import dataclasses
import math
import sys
from typing import Any

from simkit.cli.arguments import add_mode, add_scenario, add_wrt, names_of, scenario_of
from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table, show
from simkit.cli.progress import Progress
from simkit.cli.reports.second import report_second
from simkit.core.parameter import MOST_SHOWN, count
from simkit.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser)
    add_wrt(parser)
    add_mode(parser)
    parser.add_argument(
        "--memory", help="memory limit of the derivative, such as 200MB; steps are recomputed to stay within it"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare with central differences (in float64 unless --precision is given)"
    )
    parser.add_argument("--second", action="store_true", help="also compute the matrix of second derivatives")


def main(arguments: argparse.Namespace) -> int:
    """Differentiate and report; a non-finite derivative, or one that differs from its difference, is a failure."""
    from simkit.core.compilation import use_compilation_cache
    from simkit.core.status import FAILURES, Status
    from simkit.jobs.derivatives import (
        compare,
        differentiate,
        note_of_steps,
        objective_name,
        objective_settings,
        selected_parameters,
        status_note,
        zeros_in,
    )
    from simkit.jobs.outcome import NOT_FINITE

    scenario = scenario_of(arguments)
    wrt = selected_parameters(scenario, names_of(arguments.wrt))
    objective = objective_name(scenario, arguments.objective)
    use_compilation_cache()
    if arguments.second:
        if arguments.memory:
            raise UserError("--second has no memory limit; leave --memory out, or use --mode forward, which needs none")
        return report_second(scenario, wrt, objective, arguments)
    fit = ""
    if arguments.check and arguments.memory:
        raise UserError("--check has no memory limit; leave --memory or --check out")
    if arguments.check:
        if arguments.precision is None:
            scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
        with Progress(scenario.name, doing="differentiating, and comparing with central differences"):
            checked = compare(scenario, wrt, objective, arguments.mode)
        value, derivative, status = checked.value, checked.derivative, checked.status
        largest_error = {name: float(error.max(initial=0)) for name, error in checked.error.items()}
        note = status_note(scenario, status) or note_of_steps(scenario, objective, zeros_in(derivative))
        compared = [checked.difference, largest_error, checked.relative_difference, checked.verdict]
    else:
        with Progress(scenario.name, doing="differentiating"):
            found = differentiate(scenario, wrt, objective, arguments.mode, arguments.memory)
        value, derivative, status, fit = found.value, found.derivative, found.status, found.fit
        note = found.note
        checked, compared = None, []
    finite = math.isfinite(value) and all(math.isfinite(x) for array in derivative.values() for x in array.flat)
    failed = status in FAILURES
    result = {"scenario": scenario.name, "objective": objective, "value": value, "precision": scenario.run.precision}
    result |= {"status": Status(status).name.lower(), "note": note}
    result |= {"memory": fit} if fit else {}
    columns = ("derivative", "central difference", "its error", "relative difference", "verdict")[: 1 + len(compared)]
    per_name = {name: [derivative[name].tolist(), *(_plain(c[name]) for c in compared)] for name in wrt}
    if arguments.json:
        keys = [column.replace(" ", "_") for column in columns]
        print_json(result | {"wrt": {name: dict(zip(keys, row, strict=True)) for name, row in per_name.items()}})
    else:
        print(
            f"{objective} = {value:.10g}   ({objective_settings(scenario, objective).doc}; {scenario.run.precision})\n"
        )
        print_table(
            ("with respect to", *columns),
            [(name, *map(_digits, row[:2]), *map(_rough, row[2:])) for name, row in per_name.items()],
        )
        if fit:
            print(f"\nmemory: {fit}")
        if note and not failed:
            print(f"\nnote: {note}")
    if failed:
        print(f"simkit: {note}; its derivative is not defined", file=sys.stderr)
    elif not finite:
        print(f"simkit: {scenario.name}: {objective} or a derivative is not finite: {NOT_FINITE}", file=sys.stderr)
    defined = finite and not failed
    wrong = [name for name in wrt if checked is not None and checked.verdict[name] == "differs"] if defined else []
    if wrong:
        problem = "by more than the error of the difference: it is wrong, or the objective is not smooth there"
        print(
            f"simkit: {scenario.name}: d {objective} / d {wrong[0]} differs from its central difference {problem}",
            file=sys.stderr,
        )
    return FINE if defined and not wrong else FAILED


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _digits(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value) if count(value) <= MOST_SHOWN else show(value)


def _rough(value: Any) -> str:
    return f"{value:.1g}" if isinstance(value, float) else str(value)
