"""Check scenarios against the published and analytic numbers in their files."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario, list_scenarios

if TYPE_CHECKING:
    from simkit.jobs.validation import Check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("scenarios", metavar="NAME", nargs="*", help="scenarios (default: all)")


def main(arguments: argparse.Namespace) -> int:
    """Validate and report; exit code 3 if a number is missed."""
    from simkit.jobs.validation import validate

    scenarios = [find_scenario(name) for name in arguments.scenarios] or list_scenarios()[0]
    empty = [scenario.name for scenario in scenarios if not scenario.validations]
    if empty and arguments.scenarios:
        raise UserError(f"{empty[0]} has no published number; add a [[validation]] table to its file")
    checks = []
    total = sum(len(scenario.validations) for scenario in scenarios)
    with Progress("validate", total, "numbers") as progress:

        def on_progress(fraction: float, words: str) -> None:
            progress.update((len(checks) + fraction) / total, scenario.name)

        for scenario in scenarios:
            for check in validate(scenario, on_progress):
                checks.append(check)
                progress.update(len(checks) / total, f"{check.scenario}: {check.what}")
    if arguments.json:
        print_json({"checks": [asdict(check) | {"passed": check.passed} for check in checks]})
    else:
        header = ("scenario", "quantity", "expected", "found", "error", "tolerance", "result", "source")
        rows = [(c.scenario, c.what, c.expected, c.found, c.error, c.tolerance, _result(c), c.source) for c in checks]
        print_table(header, rows)
    for failure in dict.fromkeys(check.failure for check in checks if check.failure):
        print(f"simkit: {failure}", file=sys.stderr)
    return FINE if all(check.passed for check in checks) else FAILED


def _result(check: "Check") -> str:
    return "FAIL" if check.failure else "pass" if check.passed else "MISS"
