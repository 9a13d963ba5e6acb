"""Verbs for other programs and papers: cite, schema and mcp."""

import argparse
import json
from pathlib import Path

from simkit.cli.arguments import add_scenario, scenario_of
from simkit.cli.citation import bibtex
from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.cli.schemas import schema_of
from simkit.errors import package


class Cite:
    """Print BibTeX of simkit, and of the papers that a scenario, its simulation and the parts it uses name."""

    EXAMPLES = (
        "simkit cite bouncing_ball",
        "simkit cite lennard_jones_fluid > paper.bib",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        add_scenario(parser, meaning="a scenario's name, the path of a .toml file, or a run directory")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Print the entries; references that are no papers follow as comments."""
        from simkit.storage.run_directory import RunDirectory

        folder = Path(arguments.scenario)
        is_stored = (folder / "manifest.json").is_file()
        cited = bibtex(RunDirectory.open(folder).scenario() if is_stored else scenario_of(arguments))
        if arguments.json:
            print_json(cited, "citation")
        else:
            print("\n\n".join([cited["bibtex"], *(f"% {other}" for other in cited["others"])]))
        return FINE


class Schema:
    """Print the JSON Schema of what a verb prints with --json, or of what all of them do."""

    EXAMPLES = (
        "simkit schema run",
        "simkit schema > simkit.schema.json",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("verb", metavar="VERB", nargs="?", help="a verb (default: all)")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Print the schema."""
        print(json.dumps(schema_of(arguments.verb), indent=2))
        return FINE


class Mcp:
    """Offer scenarios to an agent as tools of a Model Context Protocol server, over standard input and output.

    Tools list, show, check, run, sweep, differentiate, optimize and report, each in a process of its own. They write
    into one folder, never elsewhere, and read only shipped scenarios, texts that they are given, and that folder.
    """

    EXAMPLES = (
        "simkit mcp",
        "simkit mcp --output agent --seconds 60 --steps 20000 --members 64",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument(
            "-o", "--output", type=Path, default=Path("agent_runs"), help="folder to write (default: agent_runs)"
        )
        parser.add_argument("--seconds", type=float, default=300.0, help="longest time of a call (default: 300)")
        parser.add_argument("--steps", type=int, default=100_000, help="most steps of a run (default: 100000)")
        parser.add_argument(
            "--members",
            type=int,
            default=256,
            help="most members of a sweep, seeds, starts or iterations (default: 256)",
        )

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Serve until the client closes the connection."""
        package("mcp.server.mcpserver", "the server", "simkit-physics[mcp]")
        from simkit.cli.agents import Limits, server

        limits = Limits(arguments.seconds, arguments.steps, arguments.members)
        server(arguments.output, limits).run()
        return FINE
