"""Verb that exports programs, pages, frames and data."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from simkit import export
from simkit.cli.arguments import add_scenario, exclude, names_of, scenario_of
from simkit.cli.main import DIFFERS, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.core.compilation import use_compilation_cache

if TYPE_CHECKING:
    from simkit.export.page.exporting import PageReport
    from simkit.export.programs.verification import Difference, Report

DATA = ("netcdf", "zarr", "csv", "parquet", "vtk")
PROGRAMS = ("stablehlo", "onnx", "all")
FORMATS = (*PROGRAMS, "page", "extended_xyz", *DATA)
FORMS = ("step", "segment", "trajectory", "gradient", "final", "start", "advance", "show")
# Digits of a number that is too large for a batch; Python refuses to read one of thousands.
LONG = 20
# Options of programs, by attribute name.
_OF_PROGRAMS = ("what", "batch", "tolerance", "ops")
_OF_PAGES = ("wrt", "lesson", "runtime", "shared")


class Export:
    """Export a simulation as a program for other runtimes or as a page, or stored results as files for other tools.

    A program is a folder: the function (model.onnx, model.jaxexport and model.mlir), its inputs and outputs (io.json),
    a reference result, and short programs that run it without simkit. It is run from its files and compared with JAX;
    --verify repeats that comparison. A page is one HTML file that computes the simulation, with sliders for its
    parameters; it contains onnxruntime-web, installed by npm, and loads nothing. With --wrt it also shows the gradient
    of an objective, and improves it. Extended XYZ contains every frame of a stored run, or the last frame of each
    member of a sweep, for OVITO, VMD, ASE and other tools, without simulating again. netcdf and zarr contain all stored
    results of a run, sweep or optimization, csv and parquet its numbers as a table, vtk the frames of a run for
    ParaView.
    """

    EXAMPLES = (
        "simkit export bouncing_ball --to onnx",
        "simkit export runs/bouncing_ball --to csv",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        meaning = "a scenario's name or .toml file; extended_xyz and data (netcdf, zarr, csv, parquet, vtk): a run's "
        meaning += "directory; --verify: a folder that was exported"
        add_scenario(parser, "NAME|RUN|FOLDER", meaning)
        parser.add_argument("--to", choices=FORMATS, help="format (default: stablehlo)")
        what = "function: one step, the segment between frames, a whole run, an objective's gradient, a run's end, or "
        what += "those of an interactive program: the initial state, a bare step, the arrays of a frame"
        parser.add_argument("--what", choices=FORMS, help=f"{what} (default: step)")
        parser.add_argument("--batch", metavar="N|symbolic", help="leading axis of every array: a size, or any size")
        parser.add_argument("--objective", help="objective of the gradient (default: the scenario's first)")
        parser.add_argument("--wrt", metavar="A,B", help="page: parameters of the gradient that it shows and follows")
        parser.add_argument("--lesson", type=Path, metavar="FILE", help="page: HTML that is shown above the picture")
        meaning = "largest relative difference from JAX (default: by precision)"
        parser.add_argument("--tolerance", type=float, help=meaning)
        parser.add_argument("--ops", metavar="FILE", help="onnx: file of the target's operators; others are reported")
        parser.add_argument(
            "--runtime", type=Path, metavar="FOLDER", help="page: folder of onnxruntime-web (default: npm's)"
        )
        meaning = "page: folder of a runtime that several pages share (default: the page holds it)"
        parser.add_argument("--shared", type=Path, metavar="FOLDER", help=meaning)
        parser.add_argument(
            "--verify", action="store_true", help="compare the programs of a folder with their reference again"
        )
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            help="folder to write (default: export/NAME-WHAT); page: file to write (default: export/NAME.html); "
            "extended_xyz: file to write (default: RUN/NAME.xyz); data: beside RUN",
        )
        parser.add_argument("--overwrite", action="store_true", help="replace an earlier export")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Export or verify, and report; a program that differs from JAX is exit code 1."""
        if arguments.verify:
            return _verified(arguments)
        if arguments.to != "page":
            exclude(arguments, _OF_PAGES, "is for pages (--to page)")
        if arguments.to in (None, *PROGRAMS):
            return _program(arguments)
        noun = "a page" if arguments.to == "page" else arguments.to
        names = _OF_PROGRAMS if arguments.to == "page" else (*_OF_PROGRAMS, "objective")
        exclude(arguments, names, f"is for programs, not for {noun}")
        if arguments.to == "page":
            return _page(arguments)
        return _frames(arguments) if arguments.to == "extended_xyz" else _data(arguments)


def _program(arguments: argparse.Namespace) -> int:
    """Export a scenario, compared with JAX."""
    scenario = scenario_of(arguments)

    use_compilation_cache()
    what = arguments.what or "step"
    folder = arguments.output or Path("export") / f"{scenario.name}-{what}"
    batch = arguments.batch
    options = {
        "to": arguments.to or "stablehlo",
        "what": what,
        "batch": int(batch) if batch and batch.isdecimal() and len(batch) < LONG else batch,
        "objective": arguments.objective,
        "tolerance": arguments.tolerance,
        "ops": arguments.ops,
        "overwrite": arguments.overwrite,
    }
    with Progress(scenario.name, doing="exporting, and comparing with JAX"):
        report = export.program(scenario, folder, **options)
    return _report(report, arguments)


def _page(arguments: argparse.Namespace) -> int:
    """Export a page, its programs compared with JAX."""
    scenario = scenario_of(arguments)

    use_compilation_cache()
    file = arguments.output or Path("export") / f"{scenario.name}.html"
    with Progress(scenario.name, doing="running it once, exporting, and comparing with JAX"):
        report = export.web_page(
            scenario,
            file,
            objective=arguments.objective,
            wrt=None if arguments.wrt is None else names_of(arguments.wrt),
            **{name: getattr(arguments, name) for name in ("lesson", "runtime", "shared", "overwrite")},
        )
    _print_page(report, arguments.json)
    for miss in report.misses:
        print(f"simkit: {miss}", file=sys.stderr)
    return FINE if report.passed else DIFFERS


def _print_page(report: "PageReport", as_json: bool) -> None:
    from simkit.export.programs.verification import worst_of

    if as_json:
        print_json({**asdict(report), "file": str(report.file), "passed": report.passed}, "page")
        return
    worst = {form: worst_of(differences) for form, differences in report.differences.items()}
    rows = [(form, report.nodes[form], *_shown(difference)) for form, difference in worst.items()]
    print(f"{report.file}: a page of {report.size / 1e6:.1f} MB; its programs, compared with JAX\n")
    print_table(("program", "nodes", "largest error", "of", "allowed"), rows)


def _verified(arguments: argparse.Namespace) -> int:
    """Run the programs of a folder again."""
    names = ("to", *_OF_PROGRAMS, "objective", *_OF_PAGES, "output", "overwrite")
    exclude(arguments, names, "is for exporting, and --verify only runs programs")
    _refuse_changes(arguments, "an exported program")
    use_compilation_cache()
    folder = Path(arguments.scenario)
    with Progress(folder.name, doing="comparing with the reference"):
        report = export.verify(folder)
    return _report(report, arguments)


def _report(report: "Report", arguments: argparse.Namespace) -> int:
    """Print a report, and return the exit code."""
    from simkit.export.programs.verification import as_plain

    if arguments.json:
        print_json(as_plain(report), "program")
    else:
        header = ("file", "runtime", "kB", "nodes", "largest error", "of", "allowed", "load s", "run s", "result")
        rows = [
            (
                runtime.file,
                runtime.runtime,
                round(runtime.size / 1000),
                runtime.nodes,
                *_shown(runtime.worst),
                round(runtime.seconds_to_load, 2),
                round(runtime.seconds_to_run, 4),
                "pass" if runtime.passed else "REFUSED" if runtime.refused else "MISS",
            )
            for runtime in report.runtimes
        ]
        steps = report.compared_steps
        over = "" if steps is None else f" over {steps} steps, since rounding decides the results of all steps"
        print(f"{report.folder}: {report.form}, compared with JAX{over}\n")
        print_table(header, rows)
    for miss in report.misses:
        print(f"simkit: {miss}", file=sys.stderr)
    return FINE if report.passed else DIFFERS


def _shown(worst: "Difference | None") -> tuple[str, str, str]:
    """Return error, name and allowed error of the worst output, if any was computed."""
    return ("", "", "") if worst is None else (f"{worst.error:.1e}", worst.output, f"{worst.allowed:.1e}")


def _data(arguments: argparse.Namespace) -> int:
    """Export the stored results of a run, sweep or optimization."""
    from simkit.export.data_files import ENDINGS
    from simkit.jobs.stored_jobs import open_run

    _refuse_changes(arguments, "a stored run")
    folder = Path(arguments.scenario)
    result = open_run(folder)
    path = arguments.output or folder.with_name(f"{folder.resolve().name}{ENDINGS[arguments.to]}")
    file = export.data_file(result, arguments.to, path, overwrite=arguments.overwrite)
    if arguments.json:
        print_json({"file": str(file), "to": arguments.to}, "data")
    else:
        print(f"{file}: {arguments.to} of {folder}")
    return FINE


def _refuse_changes(arguments: argparse.Namespace, noun: str) -> None:
    exclude(arguments, ("set", "seed", "precision"), f"cannot change {noun}")


def _frames(arguments: argparse.Namespace) -> int:
    """Export the frames of a stored run, or the last ones of the members of a sweep."""
    from simkit.export.data_files import export_frames
    from simkit.jobs.stored_jobs import open_ends

    _refuse_changes(arguments, "a stored run")
    outcome = open_ends(arguments.scenario)
    file = arguments.output or Path(arguments.scenario) / f"{outcome.scenario.name}.xyz"
    exported = export_frames(outcome, file, arguments.overwrite)
    if arguments.json:
        print_json(asdict(exported), "frames")
    else:
        print(f"{exported.file}: {exported.frames} frames of {exported.particles} particles")
    return FINE
