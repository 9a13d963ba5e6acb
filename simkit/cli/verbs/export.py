"""Write a scenario as a portable StableHLO program, or a run's particles as extended XYZ.

A program takes any batch size, runs on CPU, CUDA and TPU, and has its derivative with it. Extended XYZ holds every
frame of a stored run, for OVITO, VMD, ASE and other tools; nothing is simulated again.
"""

import argparse
from pathlib import Path

from simkit.cli.arguments import add_scenario, scenario_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.cli.progress import Progress
from simkit.errors import UserError

FORMATS = ("stablehlo", "extended_xyz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    add_scenario(parser, "NAME|RUN", "stablehlo: a scenario's name or .toml file; extended_xyz: a run directory")
    parser.add_argument("--to", default="stablehlo", choices=FORMATS, help="format (default: stablehlo)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help="stablehlo: folder to write (default: export); extended_xyz: file to write (default: RUN/NAME.xyz)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Export and report."""
    return _program(arguments) if arguments.to == "stablehlo" else _frames(arguments)


def _program(arguments: argparse.Namespace) -> int:
    """Export a scenario, verified against JAX."""
    from dataclasses import asdict

    scenario = scenario_of(arguments)

    from simkit.core.compilation import use_compilation_cache
    from simkit.export.stablehlo import export_scenario

    use_compilation_cache()
    with Progress(scenario.name, doing="exporting, and comparing with JAX"):
        exported = export_scenario(scenario, arguments.output or Path("export"))
    if arguments.json:
        print_json(asdict(exported))
    else:
        print(f"program: {exported.program}\ncard:    {exported.card}")
        print(f"reloaded and compared with JAX: values agree to {exported.value_error:.2g}, ", end="")
        print(f"derivatives to {exported.gradient_error:.2g} (relative)")
    return FINE


def _frames(arguments: argparse.Namespace) -> int:
    """Export the frames of a stored run."""
    from dataclasses import asdict

    from simkit.export.extended_xyz import export_frames
    from simkit.jobs.reopening import open_frames

    if arguments.set or arguments.seed is not None or arguments.precision is not None:
        raise UserError("--set, --seed and --precision do not change a run that is stored; leave them out")
    outcome = open_frames(arguments.scenario, "frames of its own")
    exported = export_frames(outcome, arguments.output or Path(arguments.scenario) / f"{outcome.scenario.name}.xyz")
    if arguments.json:
        print_json(asdict(exported))
    else:
        print(f"{exported.file}: {exported.frames} frames of {exported.particles} particles")
    return FINE
