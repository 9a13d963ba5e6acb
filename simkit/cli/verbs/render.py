"""Draw a stored run as gif, mp4 or png, or the chart of a sweep as png; nothing is simulated again."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.arguments import add_picture
from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.cli.progress import Progress
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.storage.run_directory import RunDirectory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the verb takes."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    add_picture(parser)
    parser.add_argument("--frame", type=int, default=-1, help="which frame a png shows (default: -1, the last)")
    parser.add_argument(
        "--max-frames", type=int, default=150, help="thin an animation to about this many (default: 150)"
    )
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: inside the run directory)")


def main(arguments: argparse.Namespace) -> int:
    """Draw and say where."""
    from simkit.export.pictures import draw
    from simkit.jobs.reopening import open_frames
    from simkit.jobs.sweeps import Sweep
    from simkit.render.animate import parse_size
    from simkit.storage.kinds import kind_of
    from simkit.storage.run_directory import RunDirectory

    directory = RunDirectory.open(arguments.run)
    if issubclass(kind_of(directory.kind), Sweep):
        return _sweep(directory, arguments)
    size = parse_size(arguments.size)
    if arguments.max_frames < 1:
        raise UserError(f"--max-frames = {arguments.max_frames} is not allowed; give at least 1")
    outcome = open_frames(arguments.run, "animation")
    output = arguments.output or Path(arguments.run) / f"{outcome.scenario.name}.{arguments.format}"
    with Progress(outcome.scenario.name, doing="drawing") as progress:
        draw(
            outcome,
            output,
            arguments.format,
            size,
            arguments.frame,
            arguments.max_frames,
            lambda done: progress.update(done, "drawing"),
        )
    if arguments.json:
        print_json({"picture": output, "frames": len(outcome.arrays["status"])})
    else:
        print(output)
    return FINE


def _sweep(directory: "RunDirectory", arguments: argparse.Namespace) -> int:
    """Draw the chart of a sweep."""
    from simkit.export.sweep_pictures import draw_sweep
    from simkit.jobs.job import stored

    file = draw_sweep(stored(directory), directory.scenario(), arguments.output or directory.path / "sweep.png")
    print_json({"picture": file}) if arguments.json else print(file)
    return FINE
