"""Write a scenario as a portable StableHLO program: any batch size, CPU, CUDA and TPU, with its derivative."""

import argparse
from pathlib import Path

from simkit.cli.arguments import add_scenario, scenario_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser)
    parser.add_argument("--to", default="stablehlo", choices=("stablehlo",), help="format (default: stablehlo)")
    parser.add_argument("-o", "--output", type=Path, default=Path("export"), help="folder to write (default: export)")


def main(arguments: argparse.Namespace) -> int:
    """Export, verify and report."""
    from dataclasses import asdict

    scenario = scenario_of(arguments)

    from simkit.export.stablehlo import export_scenario
    from simkit.runtime.environment import use_compilation_cache

    use_compilation_cache()
    exported = export_scenario(scenario, arguments.output)
    if arguments.json:
        print_json(asdict(exported))
    else:
        print(f"program: {exported.program}\ncard:    {exported.card}")
        print(f"reloaded and compared with JAX: values agree to {exported.value_error:.2g}, ", end="")
        print(f"derivatives to {exported.gradient_error:.2g} (relative)")
    return FINE
