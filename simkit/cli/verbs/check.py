"""List all mistakes in a scenario file, without running it."""

import argparse
import sys

from simkit.cli.main import FINE, WRONG_INPUT
from simkit.cli.output import as_line, print_json
from simkit.errors import Mistakes
from simkit.scenario.catalog import path_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("scenario", metavar="FILE", help="a scenario file, or the name of a shipped scenario")


def main(arguments: argparse.Namespace) -> int:
    """Print one line for each mistake; exit code 2 if there is any."""
    from simkit.render.color import check_scenario
    from simkit.scenario.examination import mistakes_in, part_of

    path, _ = path_of(arguments.scenario)
    found, scenario = mistakes_in(path)
    if scenario is not None:
        colors = Mistakes()
        with colors.kept("render.colormap"):
            check_scenario(scenario)
        found += colors.found
    if arguments.json:
        print_json({"file": str(path), "mistakes": [{"part": part_of(each)} | each.as_data for each in found]})
    for each in found:
        print(f"simkit: {as_line(str(each))}", file=sys.stderr)
    if not found and scenario is not None and not arguments.json:
        print(f"{scenario.name}: no mistake found; run it with: simkit run {arguments.scenario}")
    return WRONG_INPUT if found else FINE
