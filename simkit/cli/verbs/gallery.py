"""Render every scenario into a gallery: an animation, a thumbnail and a card each, and an index page."""

import argparse
import sys
from pathlib import Path

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario, list_scenarios


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("scenarios", metavar="NAME", nargs="*", help="scenarios (default: all)")
    parser.add_argument("-o", "--output", type=Path, default=Path("gallery"), help="folder to write (default: gallery)")


def main(arguments: argparse.Namespace) -> int:
    """Run, draw and report; a failing scenario is named and does not stop the others."""
    from simkit.cli.gallery import Entry, render_scenario, write_index
    from simkit.storage.files import make_folder

    use_compilation_cache()
    shipped = list_scenarios()[0]
    scenarios = [find_scenario(name) for name in arguments.scenarios] or shipped
    make_folder(arguments.output)
    entries = []
    with Progress("gallery", len(scenarios), "scenarios") as progress:

        def on_part(fraction: float, words: str) -> None:
            progress.update((len(entries) + fraction) / len(scenarios), f"{scenario.name}, {words}")

        for scenario in scenarios:
            try:
                entries.append(render_scenario(scenario, arguments.output, on_part))
            except UserError as error:
                entries.append(Entry(scenario.name, str(error), failed=True))
    index = write_index(list({s.name: s for s in [*shipped, *scenarios]}.values()), arguments.output)
    failed = [entry for entry in entries if entry.failed]
    if arguments.json:
        report = [
            {
                "scenario": e.scenario,
                "failed": e.failed,
                "message": e.status,
                "animation": e.animation,
                "bytes": e.size,
            }
            for e in entries
        ]
        print_json({"scenarios": report, "index": index})
    else:
        rows = [(e.scenario, e.status, e.animation or "none", f"{e.size / 1e6:.2f} MB") for e in entries]
        print_table(("scenario", "status", "animation", "size"), rows)
        print(f"\nindex: {index}")
    for entry in failed:
        print(f"simkit: {entry.status}", file=sys.stderr)
    return FAILED if failed else FINE
