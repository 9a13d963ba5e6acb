"""Write a scenario file to start from: a copy of a scenario, or a minimal one of a simulation, with all options."""

import argparse
import dataclasses
from pathlib import Path

from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.errors import UserError, argument
from simkit.scenario.catalog import FILE, find_scenario, parse_scenario, scenarios_of, starter_of
from simkit.scenario.registry import SIMULATIONS, needed_arguments
from simkit.scenario.scenario import RunSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help="name of the new scenario")
    source = "a scenario's name, the path of a .toml file, or a simulation such as flow.domain (default: channel_flow)"
    parser.add_argument("--from", dest="source", default="channel_flow", metavar="SCENARIO", help=source)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: NAME.toml)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def main(arguments: argparse.Namespace) -> int:
    """Write the file."""
    from simkit.scenario.contents import bare_scenario, contents_of, skeleton
    from simkit.storage.files import write_bytes

    path = arguments.output or Path(f"{FILE['name'].check(arguments.name, 'NAME')}.toml")
    if path.exists() and not arguments.overwrite:
        raise UserError(f"{path} exists; choose another name, or pass {argument('overwrite', 'True')} to replace it")
    source = arguments.source
    run = RunSettings(1000, 10, "float32", 0)
    if source in SIMULATIONS.names():
        scenario = bare_scenario(source)
        # As many steps, and the precision, that a relaxation needs to converge.
        run = next((known.run for known in scenarios_of(source)), run)
        if needed := needed_arguments(SIMULATIONS.resolve(source)):
            starter = starter_of(source)
            if starter is None:
                raise UserError(f"{source} needs {', '.join(needed)}, and no shipped scenario has them; write the file")
            scenario = starter
    else:
        scenario = find_scenario(source)
    # In float64, so that the defaults are written as they were declared.
    scenario = dataclasses.replace(scenario, run=dataclasses.replace(scenario.run, precision="float64"))
    text = skeleton(arguments.name, scenario, contents_of(scenario), run)
    parse_scenario(text, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.encode())
    if arguments.json:
        print_json({"file": str(path), "simulation": scenario.simulation})
    else:
        print(f"wrote {path}; run it with: simkit run {path}")
    return FINE
