"""List the scenarios there are."""

import argparse
import sys

from simkit.cli.main import FINE
from simkit.cli.output import print_json, print_table
from simkit.errors import UserError
from simkit.scenario.catalog import list_scenarios


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("--tag", help="only scenarios with this tag")


def main(arguments: argparse.Namespace) -> int:
    """List scenarios; a broken file is named on stderr and does not hide the others."""
    scenarios, problems = list_scenarios()
    if arguments.tag:
        tags = sorted({tag for scenario in scenarios for tag in scenario.tags})
        scenarios = [scenario for scenario in scenarios if arguments.tag in scenario.tags]
        if not scenarios:
            raise UserError(f"no scenario has the tag '{arguments.tag}'; tags: {', '.join(tags)}")
    if arguments.json:
        fields = ("name", "domain", "title", "summary", "tags")
        listed = [{field: getattr(scenario, field) for field in fields} for scenario in scenarios]
        print_json({"scenarios": listed, "problems": [problem.message for problem in problems]})
    else:
        rows = [(scenario.name, scenario.domain, scenario.title, ", ".join(scenario.tags)) for scenario in scenarios]
        print_table(("name", "domain", "title", "tags"), rows)
        for problem in problems:
            print(f"simkit: {problem.message}", file=sys.stderr)
    return FINE
