"""Show a scenario or simulation: parameters, configuration, objectives and published numbers."""

import argparse
import dataclasses
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import add_scenario, changed_by, scenario_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json, print_table, show
from simkit.core.parameter import shown_bounds
from simkit.core.settings import listing
from simkit.scenario.catalog import scenarios_of
from simkit.scenario.registry import SIMULATIONS, arguments_of, needed_arguments
from simkit.scenario.scenario import Scenario

if TYPE_CHECKING:
    from simkit.scenario.contents import Contents


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    add_scenario(parser, meaning="a scenario's name, the path of a .toml file, or a simulation such as flow.domain")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of files for this simulation")
    parser.add_argument(
        "--quantities",
        action="store_true",
        help="also build the simulation, and list its observed arrays, diagnostics and further settings",
    )


def main(arguments: argparse.Namespace) -> int:
    """Show one scenario or simulation, with changes applied."""
    if is_simulation := arguments.scenario in SIMULATIONS.names():
        from simkit.scenario.contents import bare_scenario

        scenario = changed_by(arguments, bare_scenario(arguments.scenario))
        if any(name not in scenario.config for name in needed_arguments(SIMULATIONS.resolve(arguments.scenario))):
            return _show_open(arguments, scenario)
    else:
        scenario = scenario_of(arguments)
    contents = None
    if is_simulation or arguments.quantities or arguments.schema:
        from simkit.scenario.contents import contents_of

        contents = contents_of(scenario)
    if arguments.schema and contents:
        from simkit.scenario.contents import schema_of

        print_json(schema_of(scenario, contents))
    elif arguments.json:
        print_json(_as_data(scenario) | ({} if contents is None else asdict(contents)))
    else:
        _print_head(scenario, is_simulation)
        if contents:
            _print_contents(contents, "argument" if is_simulation else "not in the file, for --set")
        else:
            print(f"\nobserved arrays and diagnostics: simkit show {shlex.quote(arguments.scenario)} --quantities")
        if not is_simulation:
            print(f"\nreferences: {', '.join(scenario.references) or 'none'}\nfile: {scenario.source}")
    return FINE


def _show_open(arguments: argparse.Namespace, scenario: Scenario) -> int:
    """Show a simulation with required arguments: its settings, and the scenarios that use it."""
    from simkit.scenario.contents import schema_of

    if arguments.schema:
        print_json(schema_of(scenario, None))
        return FINE
    factory = SIMULATIONS.resolve(scenario.simulation)
    declared = listing(getattr(factory, "settings", {}))
    users = [each.name for each in scenarios_of(scenario.simulation)]
    if arguments.json:
        settings = [
            {"key": key, "kind": one.kind, "doc": one.doc, "default": one.default, "needed": one.is_required}
            for key, one in declared
        ]
        needed = needed_arguments(factory)
        print_json({"simulation": scenario.simulation, "needed": needed, "settings": settings, "scenarios": users})
        return FINE
    print(f"{scenario.simulation}\n\nneeds: {', '.join(needed_arguments(factory))}")
    print()
    if declared:
        rows = [
            (f"config.{key}", one.kind, "needed" if one.is_required else show(one.default or ""), one.doc)
            for key, one in declared
        ]
        print_table(("setting", "allowed values", "default", "meaning"), rows)
    else:
        print_table(
            ("argument", "default"), [(f"config.{key}", show(value)) for key, value in arguments_of(factory).items()]
        )
    print("\nIts parameters and quantities depend on its settings: simkit show SCENARIO --quantities")
    print(f"scenarios: {', '.join(users) or 'none'}")
    return FINE


def _print_head(scenario: Scenario, is_simulation: bool) -> None:
    provider = next(
        (p for name, p, _ in SIMULATIONS.providers() if name == scenario.simulation), "no installed package"
    )
    if is_simulation:
        print(f"{scenario.simulation}, from {provider}\n")
    else:
        print(f"{scenario.title} ({scenario.name})\n{scenario.summary}\n")
        print(f"simulation: {scenario.simulation}, from {provider}\n")
    rows = [(name, p.default, shown_bounds(p.bounds), p.unit, p.doc) for name, p in scenario.parameters.items()]
    print_table(("parameter", "value", "bounds", "unit", "meaning"), rows)
    settings = scenario.config | (
        {} if is_simulation else {key: value for key, value in vars(scenario.run).items() if value != ""}
    )
    if settings:
        print()
        print_table(("setting", "value"), [(name, show(value)) for name, value in settings.items()])
    if scenario.objectives:
        print()
        objectives = [(name, objective.goal, objective.doc) for name, objective in scenario.objectives.items()]
        print_table(("objective", "goal", "meaning"), objectives)
    if scenario.validations:
        print()
        checks = [(check.words, check.expected, check.tolerance, check.source) for check in scenario.validations]
        print_table(("reproduces", "expected", "tolerance", "source"), checks)


def _print_contents(contents: "Contents", arguments: str) -> None:
    if contents.arguments:
        print()
        rows = [(f"config.{name}", show(value)) for name, value in contents.arguments.items()]
        print_table((arguments, "value"), rows)
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
    data = asdict(dataclasses.replace(scenario, made=None, original=None))
    for key in ("text", "made", "known_parameters", "original", "parameter_settings"):
        del data[key]
    parameters = {name: asdict(parameter) for name, parameter in scenario.parameters.items()}
    return data | {"parameters": parameters, "domain": scenario.domain}
