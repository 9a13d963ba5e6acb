"""Show a scenario: its simulation, parameters, configuration, objectives and the numbers it reproduces."""

import argparse
import dataclasses
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import add_scenario, scenario_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json, print_table, show
from simkit.scenario.registry import providers
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.scenario.contents import Contents


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)
    parser.add_argument(
        "--quantities",
        action="store_true",
        help="also build the simulation, and list all that it observes and diagnoses, and what else may be set",
    )


def main(arguments: argparse.Namespace) -> int:
    """Show one scenario, with changes applied."""
    scenario = scenario_of(arguments)
    contents = None
    if arguments.quantities:
        from simkit.scenario.contents import contents_of

        contents = contents_of(scenario)
    if arguments.json:
        print_json(_as_data(scenario) | ({} if contents is None else asdict(contents)))
        return FINE
    provider = next((p for name, p, _ in providers() if name == scenario.simulation), "no installed package")
    print(f"{scenario.title} ({scenario.name})\n{scenario.summary}\n")
    print(f"simulation: {scenario.simulation}, from {provider}\n")
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
    if contents:
        _print_contents(contents)
    else:
        print(f"\nwhat it observes and diagnoses: simkit show {scenario.name} --quantities")
    print(f"\nreferences: {', '.join(scenario.references) or 'none'}\nfile: {scenario.source}")
    return FINE


def _print_contents(contents: "Contents") -> None:
    if contents.arguments:
        print()
        rows = [(f"config.{name}", show(value)) for name, value in contents.arguments.items()]
        print_table(("not in the file, for --set", "value"), rows)
    for kind in ("diagnosed", "observed"):
        chosen = [quantity for quantity in contents.quantities if quantity.kind == kind]
        axes = [", ".join(f"{name} {length}" for name, length in q.dimensions.items()) for q in chosen]
        print()
        if kind == "diagnosed":
            print_table((kind, "unit", "meaning"), [(q.name, q.unit, q.doc) for q in chosen])
        else:
            rows = [(q.name, a, q.unit, q.doc) for q, a in zip(chosen, axes, strict=True)]
            print_table((kind, "axes", "unit", "meaning"), rows)


def _as_data(scenario: Scenario) -> dict[str, Any]:
    data = asdict(dataclasses.replace(scenario, made=None))
    for key in ("text", "made", "given", "differences"):
        del data[key]
    parameters = {name: asdict(parameter) for name, parameter in scenario.parameters.items()}
    return data | {"parameters": parameters, "domain": scenario.domain}
