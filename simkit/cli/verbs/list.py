"""List the scenarios, or the simulations that a scenario file may name."""

import argparse
import sys

from simkit.cli.main import FINE
from simkit.cli.output import print_json, print_table
from simkit.errors import UserError
from simkit.scenario.catalog import list_scenarios
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tag", help="only scenarios with this tag")
    what.add_argument(
        "--simulations", action="store_true", help="list simulations, with the package that provides each"
    )


def main(arguments: argparse.Namespace) -> int:
    """List scenarios; a broken file is named on stderr and does not stop the list."""
    scenarios, problems = list_scenarios()
    if arguments.simulations:
        return _list_simulations(scenarios, arguments.json)
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
        print_table(("name", "domain", "title"), [(s.name, s.domain, s.title) for s in scenarios])
        for problem in problems:
            print(f"simkit: {problem.message}", file=sys.stderr)
    return FINE


def _list_simulations(scenarios: list[Scenario], as_json: bool) -> int:
    """List simulations with their provider and the shipped scenarios that use them."""
    users: dict[str, list[str]] = {}
    for scenario in scenarios:
        users.setdefault(scenario.simulation, []).append(scenario.name)
    listed = [
        {"simulation": name, "provider": provider, "factory": target, "scenarios": users.get(name, [])}
        for name, provider, target in SIMULATIONS.providers()
    ]
    if as_json:
        print_json({"simulations": listed})
    else:
        rows = [(s["simulation"], s["provider"], ", ".join(s["scenarios"]) or "-") for s in listed]
        print_table(("simulation", "from", "scenarios"), rows)
    return FINE
