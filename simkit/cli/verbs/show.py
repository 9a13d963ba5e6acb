"""Show a scenario: its parameters, configuration, objectives and the numbers it reproduces."""

import argparse
from typing import Any

from simkit.cli.arguments import add_scenario, scenario_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json, print_table, show
from simkit.scenario.scenario import Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)


def main(arguments: argparse.Namespace) -> int:
    """Show one scenario, with changes applied."""
    scenario = scenario_of(arguments)
    if arguments.json:
        print_json(_as_data(scenario))
        return FINE
    print(f"{scenario.title} ({scenario.name})\n{scenario.summary}\n")
    parameters = [
        (name, parameter.default, list(parameter.bounds), parameter.unit, parameter.doc)
        for name, parameter in scenario.parameters.items()
    ]
    print_table(("parameter", "value", "bounds", "unit", "meaning"), parameters)
    print()
    settings = scenario.config | vars(scenario.run)
    print_table(("setting", "value"), [(name, show(value)) for name, value in settings.items()])
    if scenario.objectives:
        print()
        objectives = [(name, objective.goal, objective.doc) for name, objective in scenario.objectives.items()]
        print_table(("objective", "goal", "meaning"), objectives)
    if scenario.validations:
        print()
        rows = [(check.words, check.expected, check.tolerance, check.source) for check in scenario.validations]
        print_table(("reproduces", "expected", "tolerance", "source"), rows)
    print(f"\nreferences: {', '.join(scenario.references) or 'none'}\nfile: {scenario.source}")
    return FINE


def _as_data(scenario: Scenario) -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(scenario)
    data.pop("text")
    return data | {"domain": scenario.domain}
