"""Verbs about scenarios and simulations: list, show, new and check."""

import argparse
import dataclasses
import itertools
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import add_scenario, changed_by, exclude, scenario_of
from simkit.cli.main import FINE, WRONG_INPUT
from simkit.cli.output import as_line, print_json, print_table, shortened, show, styled, width, wrapped
from simkit.core.parameter import shown_bounds
from simkit.core.settings import Setting, listing, word
from simkit.errors import Mistakes, UserError, nearest, one_line
from simkit.export.replacing import check_replaceable
from simkit.scenario.catalog import (
    FILE,
    find_scenario,
    list_scenarios,
    parse_scenario,
    path_of,
    scenarios_of,
    starter_of,
)
from simkit.scenario.registry import SIMULATIONS, arguments_of, needed_arguments
from simkit.scenario.scenario import RunSettings, Scenario

if TYPE_CHECKING:
    from simkit.scenario.contents import Contents


class List:
    """List the scenarios, or the simulations that a scenario file may name."""

    EXAMPLES = (
        "simkit list",
        "simkit list --tag rigid",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--tag", help="only scenarios with this tag")
        what.add_argument(
            "--simulations", action="store_true", help="list simulations, with the package that provides each"
        )

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """List scenarios; a broken file is named on stderr and does not stop the list."""
        scenarios, problems = list_scenarios()
        if arguments.simulations:
            return _list_simulations(scenarios, arguments.json)
        if arguments.tag:
            tags = sorted({tag for scenario in scenarios for tag in scenario.tags})
            word("of a scenario", tuple(tags)).check(arguments.tag, "--tag")
            scenarios = [scenario for scenario in scenarios if arguments.tag in scenario.tags]
        if arguments.json:
            fields = ("name", "domain", "title", "summary", "tags")
            listed = [{field: getattr(scenario, field) for field in fields} for scenario in scenarios]
            print_json({"scenarios": listed, "problems": [problem.message for problem in problems]}, "list")
        else:
            _print_list(scenarios)
            for problem in problems:
                print(f"simkit: {problem.message}", file=sys.stderr)
        return FINE


# Least room for a summary beside a name; on a narrower terminal it follows on its own line.
LEAST_SUMMARY = 24


def _print_list(scenarios: list[Scenario]) -> None:
    """Print scenarios by domain, each in one line that fits the terminal; elsewhere as a table with whole summaries."""
    if (columns := width()) is None:
        print_table(("name", "domain", "summary"), [(s.name, s.domain, s.summary) for s in scenarios])
        return
    names = max(len(scenario.name) for scenario in scenarios)
    room = columns - names - 4
    for domain, members in itertools.groupby(scenarios, lambda scenario: scenario.domain):
        print(styled(domain, "bold"))
        for each in members:
            if room >= LEAST_SUMMARY:
                print(f"  {each.name:<{names}}  {shortened(each.summary, room)}")
            else:
                print(f"  {each.name}\n    {shortened(each.summary, columns - 4)}")
        print()
    print(wrapped(f"{len(scenarios)} scenarios; simkit show NAME tells all about one, simkit run NAME runs it."))


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
        print_json({"simulations": listed}, "simulations")
    else:
        rows = [(s["simulation"], s["provider"], ", ".join(s["scenarios"]) or "-") for s in listed]
        print_table(("simulation", "from", "scenarios"), rows)
    return FINE


class Show:
    """Show a scenario or simulation: parameters, configuration, objectives and published numbers."""

    EXAMPLES = (
        "simkit show bouncing_ball",
        "simkit show lennard_jones_fluid config.start",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser, meaning="a scenario's name, the path of a .toml file, or a simulation such as flow.domain")
        parser.add_argument("part", metavar="PART", nargs="?", help="a part of it alone, such as config or params.mass")
        parser.add_argument("--schema", action="store_true", help="print the JSON Schema of files for this simulation")
        parser.add_argument(
            "--quantities",
            action="store_true",
            help="also build the simulation, and list its observed arrays, diagnostics and further settings",
        )

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Show one scenario or simulation, with changes applied."""
        if is_simulation := arguments.scenario in SIMULATIONS.names():
            from simkit.scenario.contents import bare_scenario

            scenario = changed_by(arguments, bare_scenario(arguments.scenario))
            if any(name not in scenario.config for name in needed_arguments(SIMULATIONS.resolve(arguments.scenario))):
                return _show_open(arguments, scenario)
        else:
            scenario = scenario_of(arguments)
        if arguments.part is not None:
            exclude(
                arguments,
                ("schema", "quantities"),
                f"is for all of {arguments.scenario}, and {arguments.part} is a part",
            )
            return _show_part(scenario, arguments.part, arguments.json)
        contents = None
        if is_simulation or arguments.quantities or arguments.schema:
            from simkit.scenario.contents import contents_of, schema_of

            contents = contents_of(scenario)
            if arguments.schema:
                print_json(schema_of(scenario, contents))
                return FINE
        if arguments.json:
            print_json(_as_data(scenario) | ({} if contents is None else asdict(contents)), "scenario")
        else:
            _print_head(scenario, is_simulation)
            if contents:
                _print_contents(contents, "argument" if is_simulation else "not in the file, for --set")
            else:
                print(f"\nobserved arrays and diagnostics: simkit show {shlex.quote(arguments.scenario)} --quantities")
            if not is_simulation:
                references = wrapped(f"references: {', '.join(scenario.references) or 'none'}")
                print(f"\n{references}\nfile: {scenario.source}")
        return FINE


def _show_part(scenario: Scenario, path: str, as_json: bool) -> int:
    """Show one branch of a scenario: its values, and the declared keys of its configuration that are below it."""
    value: Any = {"params" if key == "parameters" else key: entry for key, entry in _as_data(scenario).items()}
    if path not in value and path in scenario.parameters:  # as --set names it
        path = f"params.{path}"
    if not path.strip():
        raise UserError("the name of a part is empty; leave it out to see all of it", key="part", allowed=list(value))
    done, left = "", path
    while left:
        keys = {
            str(key): entry for key, entry in (enumerate(value) if isinstance(value, list | tuple) else value.items())
        }
        # Names of parameters and quantities may have dots themselves.
        step = max((key for key in keys if f"{left}.".startswith(f"{key}.")), key=len, default="")
        if not step and (below := {key: each for key, each in keys.items() if key.startswith(f"{left}.")}):
            value = {key[len(left) + 1 :]: each for key, each in below.items()}
            break
        if not step:
            known, step = list(keys), left.partition(".")[0]
            where = done or scenario.name
            raise UserError(
                f"{where} has no part '{one_line(step, 40)}'", nearest(step, known), key=path, allowed=known
            )
        value, done, left = keys[step], f"{done}.{step}".removeprefix("."), left[len(step) + 1 :]
        if left and not isinstance(value, dict | list | tuple):
            raise UserError(f"{done} = {show(value)} has no parts; end the name there", key=path)
    if as_json:
        print_json({"name": scenario.name, "part": path, "value": value}, "part")
        return FINE
    if path == "params":
        _print_parameters(scenario)
    else:
        rows = [(key, show(entry)) for key, entry in _leaves(path, value) if entry not in (None, "", {})]
        print_table(("part", "value"), rows or [(path, show(value))])
    if path.startswith("config."):
        # Entries of a list are declared as ``[]``, those of a table with chosen names as ``.NAME``.
        steps = [rf"(\.{re.escape(step)}|\.NAME|\[\])" for step in path.split(".")[1:]]
        below = re.compile("".join(steps) + r"(?=[.\[]|$)")
        factory = SIMULATIONS.resolve(scenario.simulation)
        declared = listing(getattr(factory, "settings", {}))
        if keys := [(key, each) for key, each in declared if below.match(f".{key}")]:
            print()
            print_settings(keys)
    return FINE


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the dotted paths and values below a part; lists of numbers and texts are values."""
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value):
        inner = list(enumerate(value))
    if not inner:
        yield path, value
    for key, entry in inner:
        yield from _leaves(f"{path}.{key}", entry)


def print_settings(declared: list[tuple[str, Setting]]) -> None:
    """Print declared keys of a configuration."""
    rows = [
        (f"config.{key}", each.kind, "needed" if each.is_required else show(each.default or ""), each.doc)
        for key, each in declared
    ]
    print_table(("setting", "allowed values", "default", "meaning"), rows)


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
            {
                "key": key,
                "kind": setting.kind,
                "doc": setting.doc,
                "default": setting.default,
                "needed": setting.is_required,
            }
            for key, setting in declared
        ]
        needed = needed_arguments(factory)
        print_json(
            {"simulation": scenario.simulation, "needed": needed, "settings": settings, "scenarios": users},
            "simulation",
        )
        return FINE
    print(f"{scenario.simulation}\n\nneeds: {', '.join(needed_arguments(factory))}")
    print()
    if declared:
        print_settings(declared)
    else:
        print_table(
            ("argument", "default"), [(f"config.{key}", show(value)) for key, value in arguments_of(factory).items()]
        )
    print(f"\n{wrapped('Its parameters and quantities depend on its settings: simkit show SCENARIO --quantities')}")
    print(wrapped(f"scenarios: {', '.join(users) or 'none'}"))
    return FINE


def _print_head(scenario: Scenario, is_simulation: bool) -> None:
    provider = next(
        (p for name, p, _ in SIMULATIONS.providers() if name == scenario.simulation), "no installed package"
    )
    if is_simulation:
        print(f"{scenario.simulation}, from {provider}\n")
    else:
        print(f"{styled(scenario.title, 'bold')} ({scenario.name})\n{wrapped(scenario.summary)}\n")
        print(f"simulation: {scenario.simulation}, from {provider}\n")
    _print_parameters(scenario)
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


def _print_parameters(scenario: Scenario) -> None:
    rows = [(name, p.default, shown_bounds(p.bounds), p.unit, p.doc) for name, p in scenario.parameters.items()]
    print_table(("parameter", "value", "bounds", "unit", "meaning"), rows)


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
    expressions = {"expressions": data.pop("quantities")}
    return data | expressions | {"parameters": parameters, "domain": scenario.domain}


class New:
    """Write a scenario file to start from: a copy of a scenario, or a minimal one of a simulation, with all options."""

    EXAMPLES = (
        "simkit new mine --from bouncing_ball",
        "simkit new box --from flow.domain",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("name", metavar="NAME", help="name of the new scenario")
        source = (
            "a scenario's name, the path of a .toml file, or a simulation such as flow.domain (default: bouncing_ball)"
        )
        parser.add_argument("--from", dest="source", default="bouncing_ball", metavar="SCENARIO", help=source)
        parser.add_argument("-o", "--output", type=Path, help="file to write (default: NAME.toml)")
        parser.add_argument("--overwrite", action="store_true", help="replace an existing file")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Write the file."""
        from simkit.scenario.contents import bare_scenario, contents_of, skeleton
        from simkit.storage.files import write_bytes

        path = arguments.output or Path(f"{FILE['name'].check(arguments.name, 'NAME')}.toml")
        check_replaceable(path, arguments.overwrite)
        source = arguments.source
        run = RunSettings(1000, 10, "float32", 0)
        if source in SIMULATIONS.names():
            scenario = bare_scenario(source)
            # As many steps, and the precision, that a relaxation needs to converge.
            run = next((user.run for user in scenarios_of(source)), run)
            if needed_arguments(SIMULATIONS.resolve(source)):
                # Without one, the arguments that are missing are named when the simulation is made.
                scenario = starter_of(source) or scenario
        else:
            scenario = find_scenario(source)
        # In float64, so that the defaults are written as they were declared.
        scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
        text = skeleton(arguments.name, scenario, contents_of(scenario), run)
        parse_scenario(text, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, text.encode())
        if arguments.json:
            print_json({"file": str(path), "simulation": scenario.simulation}, "new")
        else:
            print(f"wrote {path}; run it with: simkit run {path}")
        return FINE


class Check:
    """List all mistakes in a scenario file, without running it."""

    EXAMPLES = (
        "simkit check mine.toml",
        "simkit check bouncing_ball --set restitution=0.9",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser, "FILE", "a scenario file, or the name of a shipped scenario")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Print one line for each mistake; exit code 2 if there is any."""
        from simkit.render.color import check_scenario
        from simkit.scenario.examination import mistakes_in, part_of

        path, _ = path_of(arguments.scenario)
        mistakes, scenario = mistakes_in(path, partial(changed_by, arguments))
        if scenario is not None:
            colors = Mistakes()
            with colors.kept("render.colormap"):
                check_scenario(scenario)
            mistakes += colors.found
        if arguments.json:
            entries = [{"part": part_of(each)} | each.as_data for each in mistakes]
            print_json({"file": str(path), "mistakes": entries}, "check")
        for mistake in mistakes:
            print(f"simkit: {as_line(str(mistake))}", file=sys.stderr)
        if not mistakes and scenario is not None and not arguments.json:
            print(f"{scenario.name}: no mistake found; run it with: simkit run {arguments.scenario}")
        return WRONG_INPUT if mistakes else FINE
