"""Arguments shared by several verbs, and the work that they start."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.main import resumable
from simkit.cli.progress import Progress
from simkit.errors import UserError, one_line
from simkit.scenario import checks
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import apply_overrides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simkit.jobs.job import Job
    from simkit.jobs.reporting import Report
    from simkit.render.figure import Size
    from simkit.scenario.scenario import Scenario


FORMATS = ("gif", "mp4", "png")


def add_scenario(
    parser: argparse.ArgumentParser,
    label: str = "NAME",
    meaning: str = "a scenario's name, or the path of a .toml file",
) -> None:
    """Add the scenario, with its name and description in the help, and the options that change its values."""
    parser.add_argument("scenario", metavar=label, help=meaning)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a parameter, config or run setting; KEY=@PATH takes the text of a file",
    )
    parser.add_argument("--seed", type=int, help="seed of the random key (default: the scenario's)")
    parser.add_argument("--precision", help="float32 or float64 (default: the scenario's)")


def add_output(parser: argparse.ArgumentParser, ending: str = "") -> None:
    """Add the output folder, by default named after the scenario with the given ending."""
    parser.add_argument("-o", "--output", type=Path, help=f"folder to write (default: runs/NAME{ending})")
    parser.set_defaults(ending=ending)
    parser.add_argument("--overwrite", action="store_true", help="replace an existing run directory")


def add_wrt(parser: argparse.ArgumentParser) -> None:
    """Add the parameters and the objective of a derivative."""
    parser.add_argument("--wrt", required=True, metavar="A,B", help="parameters, separated by commas")
    parser.add_argument("--objective", help="which objective (default: the scenario's first)")


def add_mode(parser: argparse.ArgumentParser) -> None:
    """Add the mode of differentiation."""
    modes = ("shortest", "reverse", "forward")
    meaning = "mode of differentiation (default: shortest: forward for few numbers, up to 16 of a short run)"
    parser.add_argument("--mode", default="shortest", choices=modes, help=meaning)


def add_picture(parser: argparse.ArgumentParser, *, animated: bool = True) -> None:
    """Add the format of pictures, if they may be animated, and their size."""
    if animated:
        parser.add_argument("--format", choices=FORMATS, help="animation or still picture (default: gif)")
    meaning = "size in pixels (default: as many pixels as 640x360, with the aspect ratio of the picture)"
    parser.add_argument("--size", metavar="WxH", help=meaning)


def add_no_render(parser: argparse.ArgumentParser, meaning: str = "draw nothing") -> None:
    """Add the option that draws nothing."""
    parser.add_argument("--no-render", action="store_true", help=meaning)


def size_of(arguments: argparse.Namespace) -> "Size | None":
    """Return the size of pictures, ``None`` if nothing is drawn, and set the default format.

    Raises:
        UserError: if the size is not possible, or an option of pictures is given with ``--no-render``.
    """
    if arguments.no_render and (given := given_of(arguments, ("format", "size"))):
        raise UserError(f"{given} is for pictures, and --no-render draws none; leave one of them out")
    arguments.format = getattr(arguments, "format", None) or FORMATS[0]
    if arguments.no_render:
        return None
    from simkit.render.animate import parse_size

    return parse_size(arguments.size)


def given_of(arguments: argparse.Namespace, names: "Iterable[str]") -> str:
    """Return the first given option of these, as written on the command line; empty if none was given."""
    given = (name for name in names if getattr(arguments, name, None) not in (None, False))
    return next((f"--{name.replace('_', '-')}" for name in given), "")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the executor of a sweep's chunks."""
    parser.add_argument("--workers", type=int, metavar="N", help="compute chunks of a sweep in N processes")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute chunks on the Dask cluster of tcp://host:port or a scheduler file",
    )
    parser.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="give a chunk to another worker after this time without progress (default: 900)",
    )


def scenario_of(arguments: argparse.Namespace) -> "Scenario":
    """Return the requested scenario with its changes applied.

    Raises:
        UserError: if there is no such scenario or a change is not allowed.
    """
    return changed_by(arguments, find_scenario(arguments.scenario))


def changed_by(arguments: argparse.Namespace, scenario: "Scenario") -> "Scenario":
    """Return a scenario with the requested changes applied.

    Raises:
        UserError: if a change is not allowed.
    """
    settings = list(arguments.set)
    for key in ("seed", "precision"):
        if (value := getattr(arguments, key)) is not None:
            checks.run_setting(key, value, f"--{key}")
            settings.append(f"run.{key}={value}")
    return apply_overrides(scenario, settings)


def names_of(text: str) -> list[str]:
    """Return the names in a comma-separated list.

    Raises:
        UserError: if the list, or a name in it, is empty.
    """
    names = [name.strip() for name in text.split(",")]
    if not any(names):
        raise UserError("--wrt names no parameter; write --wrt a or --wrt a,b")
    if not all(names):
        raise UserError(f"--wrt {one_line(text, 80)} has a comma without a name; write --wrt a,b")
    return names


def output_of(arguments: argparse.Namespace, name: str) -> Path:
    """Return the output folder: the given one, or one named after the scenario and the verb."""
    return arguments.output or Path("runs") / f"{name}{arguments.ending}"


def check_pictures(job: "Job[Any]", arguments: argparse.Namespace) -> None:
    """Refuse options of pictures that the report of a job does not support.

    Args:
        job: the job to resume.
        arguments: arguments of the command line.

    Raises:
        UserError: naming the option.
    """
    supported = _report_of(job).PICTURES
    if given := given_of(arguments, [name for name in ("format", "size", "no_render") if name not in supported]):
        raise UserError(f"{given} is not for {job.noun}, whose charts are PNG files; leave it out")


def carry_out(
    job: "Job[Any]",
    folder: Path,
    arguments: argparse.Namespace,
    size: "Size | None",
    work: "Callable[[Report], Any]",
) -> int:
    """Run a job and report it, by ``finish`` of the report module of its kind.

    Args:
        job: the job.
        folder: its run directory.
        arguments: arguments of the command line, with ``json``.
        size: size of pictures; ``None`` draws none.
        work: function that runs the job, given a progress callback, and returns its result.

    Returns:
        The exit code.
    """
    with resumable(folder):
        with Progress(job.scenario.name, **job.progress) as progress:
            result = work(progress.update)
        return _report_of(job).finish(result, job, folder, arguments, size)


def _report_of(job: "Job[Any]") -> Any:
    """Return the module that reports jobs of a kind."""
    return importlib.import_module(f"simkit.cli.reports.{job.report}")
