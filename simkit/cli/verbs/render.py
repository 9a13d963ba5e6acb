"""Draw a stored run as gif, mp4 or png, or the chart of a sweep as png; nothing is simulated again."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.arguments import FORMATS, add_picture, given_of
from simkit.cli.main import FINE
from simkit.cli.output import print_json
from simkit.cli.progress import Progress
from simkit.errors import UserError, nearest
from simkit.storage.kinds import kind_of

if TYPE_CHECKING:
    from simkit.jobs.runs import Outcome
    from simkit.storage.run_directory import RunDirectory

MOST_FRAMES = 150


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    add_picture(parser)
    parser.add_argument("--quantity", metavar="NAME", help="quantity to draw (default: the scenario's)")
    parser.add_argument(
        "--limits", nargs=2, type=float, metavar=("LOW", "HIGH"), help="of its colors, or of the axis of a chart"
    )
    parser.add_argument("--frame", type=int, help="index of the frame of a png (default: -1, the last)")
    parser.add_argument("--max-frames", type=int, help=f"frames of an animation, about (default: {MOST_FRAMES})")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: inside the run directory)")


def main(arguments: argparse.Namespace) -> int:
    """Draw, and print the file."""
    from simkit.export.pictures import draw
    from simkit.jobs.stored_jobs import open_frames
    from simkit.jobs.sweeps import SweepJob
    from simkit.render.animate import parse_size
    from simkit.storage.run_directory import RunDirectory

    size, kind = parse_size(arguments.size), _kind(arguments)
    frame, most = (
        default if given is None else given
        for given, default in ((arguments.frame, -1), (arguments.max_frames, MOST_FRAMES))
    )
    if most < 1:
        raise UserError(f"--max-frames = {most} is not allowed; give at least 1")
    directory = RunDirectory.open(arguments.run)
    if issubclass(kind_of(directory.kind), SweepJob):
        return _sweep(directory, arguments)
    outcome = open_frames(arguments.run, "animation")
    output = arguments.output or Path(arguments.run) / f"{outcome.scenario.name}.{kind}"
    with Progress(outcome.scenario.name, doing="drawing") as progress:
        draw(
            outcome,
            output,
            kind,
            size,
            frame,
            most,
            lambda done: progress.update(done, "drawing"),
            _changed(arguments, outcome),
        )
    if arguments.json:
        print_json({"picture": output, "frames": len(outcome.arrays["status"])})
    else:
        print(output)
    return FINE


def _changed(arguments: argparse.Namespace, outcome: "Outcome") -> dict[str, Any]:
    """Return the settings of drawing that options replace; a diagnostic is drawn as a chart."""
    from simkit.storage.datasets import split

    changed: dict[str, Any] = {}
    if (name := arguments.quantity) is not None:
        observed, diagnosed = split(outcome.arrays)
        if name not in observed and name not in diagnosed:
            raise UserError(f"--quantity = '{name}' is not stored in this run{nearest(name, [*observed, *diagnosed])}")
        changed = {"quantity": name} | ({} if name in observed else {"view": "chart"})
    if arguments.limits is not None:
        low, high = arguments.limits
        if not -math.inf < low < high < math.inf:
            raise UserError(f"--limits = {low:g} {high:g} is not allowed; give two finite numbers, the smaller first")
        changed["limits"] = [low, high]
    return changed


def _kind(arguments: argparse.Namespace) -> str:
    """Return the format of the picture: the given one, or that of the file's name."""
    named = arguments.output.suffix.lower().removeprefix(".") if arguments.output else ""
    kind = arguments.format or (named if named in FORMATS else FORMATS[0])
    if arguments.output and named != kind:
        raise UserError(f"{arguments.output} is not the name of a {kind} file; name it {arguments.output.stem}.{kind}")
    if given := given_of(arguments, ["max_frames" if kind == "png" else "frame"]):
        needed = "an animation; leave it out" if kind == "png" else "a picture; write --format png as well"
        raise UserError(f"{given} is for {needed}")
    return kind


def _sweep(directory: "RunDirectory", arguments: argparse.Namespace) -> int:
    """Draw the chart of a sweep."""
    from simkit.export.pictures import draw_sweep
    from simkit.jobs.job import stored

    options = ["size", "quantity", "limits", "frame", "max_frames", *(["format"] if arguments.format != "png" else [])]
    if given := given_of(arguments, options):
        noun = kind_of(directory.kind).noun
        raise UserError(f"{given} is not for {noun}, whose charts are PNG files; leave it out")
    output = arguments.output or directory.path / "sweep.png"
    if output.suffix.lower() != ".png":
        raise UserError(f"{output} is not the name of a png file; name it {output.stem}.png")
    file = draw_sweep(stored(directory), directory.scenario(), output)
    print_json({"picture": file}) if arguments.json else print(file)
    return FINE
