"""Arguments shared by several verbs, and the work that they start."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.cli.main import resumable
from simkit.cli.output import WRITTEN
from simkit.cli.progress import Progress
from simkit.core.devices import KINDS, computing_on
from simkit.errors import UserError
from simkit.scenario.catalog import find_scenario
from simkit.scenario.overrides import apply_overrides
from simkit.scenario.sections import RUN_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from simkit.jobs.job import Job
    from simkit.jobs.reporting import Report
    from simkit.render.page import Size
    from simkit.scenario.scenario import Scenario


FORMATS = ("gif", "webp", "mp4", "png")
PICTURES = ("format", "size", "no_render")


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


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the kind of device that computes."""
    parser.add_argument("--device", metavar="|".join(KINDS), help="what computes (default: auto, docs/accelerators.md)")


def on_device(arguments: argparse.Namespace) -> "AbstractContextManager[None]":
    """Return the context manager in which the chosen kind of device computes, of a verb with `add_device`."""
    return computing_on(getattr(arguments, "device", None) or KINDS[0])


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


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes the page of a report after the work."""
    parser.add_argument("--report", action="store_true", help="also write a page about it, as simkit report does")


def pictures_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of pictures that were given, by name."""
    return {name: value for name in PICTURES if (value := getattr(arguments, name, None))}


def size_of(arguments: argparse.Namespace) -> "Size | None":
    """Return the size of pictures, ``None`` if nothing is drawn, and set the default format."""
    if arguments.no_render:
        exclude(arguments, ("format", "size"), "is for pictures, and --no-render draws none")
    arguments.format = getattr(arguments, "format", None) or FORMATS[0]
    if arguments.no_render:
        return None
    from simkit.render.animate import parse_size

    return parse_size(arguments.size)


def exclude(arguments: argparse.Namespace, names: "Iterable[str]", reason: str, remedy: str = "leave it out") -> None:
    """Refuse options that do not fit the others.

    Args:
        arguments: arguments of the command line.
        names: of the options, as attributes.
        reason: what the options are for, in words.
        remedy: what to do.

    Raises:
        UserError: naming the first of them that was given.
    """
    for name in names:
        value = getattr(arguments, name, None)
        if not (value is None or value is False or value == []):  # 0 is a value, and equals False
            raise UserError(f"--{name.replace('_', '-')} {reason}; {remedy}")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the executor of a sweep's chunks."""
    parser.add_argument("--workers", type=int, metavar="N", help="compute chunks of a sweep in N processes")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compute chunks on the Dask cluster of tcp://host:port or a scheduler file",
    )
    parser.add_argument(
        "--executor", metavar="NAME[:KEY=VALUE,...]", help="compute chunks by an executor of another package"
    )
    parser.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="give a chunk to another worker after this time without progress (default: 900)",
    )


def scenario_of(arguments: argparse.Namespace) -> "Scenario":
    """Return the requested scenario with its changes applied."""
    return changed_by(arguments, find_scenario(arguments.scenario))


def changed_by(arguments: argparse.Namespace, scenario: "Scenario") -> "Scenario":
    """Return a scenario with the requested changes applied."""
    settings = list(arguments.set)
    for key in ("seed", "precision"):
        if (value := getattr(arguments, key)) is not None:
            RUN_KEYS[key].check(value, f"--{key}")
            settings.append(f"run.{key}={value}")
    return apply_overrides(scenario, settings) if settings else scenario


def names_of(text: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in text.split(",")]


def output_of(arguments: argparse.Namespace, name: str) -> Path:
    """Return the output folder: the given one, or one named after the scenario and the verb."""
    return arguments.output or Path("runs") / f"{name}{arguments.ending}"


def check_pictures(job: "Job[Any]", arguments: argparse.Namespace) -> None:
    """Refuse options of pictures that the report of a job does not support."""
    others = [name for name in PICTURES if name not in _report_of(job).PICTURES]
    exclude(arguments, others, f"is not for {job.noun}, whose charts are PNG files")


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
    with resumable(folder), on_device(arguments):
        with Progress(job.scenario.name, **job.progress, phase="ran") as progress:
            result = work(progress.update)
        if getattr(arguments, "report", False):
            from simkit.export.report import report

            with Progress(job.scenario.name, doing="writing the report", phase="drew"):
                WRITTEN["report"] = report(folder)
        code = _report_of(job).finish(result, job, folder, arguments, size)
        if WRITTEN and not arguments.json:
            print(f"report:    {WRITTEN['report']}")
        return code


def _report_of(job: "Job[Any]") -> Any:
    """Return the module that reports jobs of a kind."""
    return importlib.import_module(f"simkit.cli.reports.{job.report}")
