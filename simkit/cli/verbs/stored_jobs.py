"""Verbs about stored work: resume, launch, merge, status, render and report."""

import argparse
import contextlib
import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from simkit.cli.arguments import (
    FORMATS,
    PICTURES,
    add_no_render,
    add_picture,
    add_workers,
    carry_out,
    check_pictures,
    exclude,
    output_of,
    pictures_of,
    size_of,
)
from simkit.cli.main import DIFFERS, FAILED, FINE, INTERRUPTED, TERMINATED, WRONG_INPUT, Terminated
from simkit.cli.output import print_json, print_totals
from simkit.cli.processes import (
    PARENT,
    add_processes,
    follow,
    group_of,
    resuming,
    together,
    use_every_core,
)
from simkit.cli.progress import Progress, clock
from simkit.cli.verbs import new_jobs
from simkit.core.compilation import use_compilation_cache
from simkit.core.devices import computing_as
from simkit.core.settings import word
from simkit.errors import UserError
from simkit.jobs.child_processes import ending, last_line
from simkit.scenario import checks
from simkit.scenario.catalog import find_scenario
from simkit.storage.kinds import kind_of

if TYPE_CHECKING:
    import xarray

    from simkit.jobs import reporting
    from simkit.jobs.runs import Outcome
    from simkit.storage.run_directory import RunDirectory


class Resume:
    """Finish an interrupted run, sweep, optimization or derivative, without repeating stored work."""

    EXAMPLES = (
        "simkit resume runs/bouncing_ball",
        "simkit resume runs/bouncing_ball --steps 720 --no-render",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("run", metavar="RUN", help="the run directory")
        add_picture(parser)
        add_workers(parser)
        add_processes(parser)
        add_no_render(parser)
        parser.add_argument("--steps", type=int, metavar="N", help="continue a finished run to N steps")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Resume, and report like the verb that began the job."""
        group = group_of(arguments)
        from simkit.jobs.job import proceed
        from simkit.jobs.runs import Run
        from simkit.jobs.stored_jobs import extended, with_executor
        from simkit.render.video import remove_abandoned
        from simkit.storage.run_directory import RunDirectory

        directory = RunDirectory.open(arguments.run)
        if directory.kind in ("sweep", "config_sweep"):
            use_every_core(arguments)
        job = with_executor(directory, arguments.workers, arguments.scheduler, arguments.deadline, arguments.executor)
        check_pictures(job, arguments)
        if not pictures_of(arguments):
            vars(arguments).update({name: job.pictures.get(name) for name in PICTURES})
        size = size_of(arguments)
        if group:
            exclude(arguments, ["steps"], "continues a run in one process", "leave it out, or --processes")
            directory.check_kind(isinstance(job, Run), ", and --processes divides the fields of a run; leave it out")
            job = dataclasses.replace(job, group=group)
        job = extended(job, directory, arguments.steps)
        use_compilation_cache()
        if group and not group.is_first:
            assert isinstance(job, Run)  # as checked above
            return follow(job.follow, group)
        remove_abandoned(directory.path)

        if size and not os.access(directory.path, os.W_OK):
            elsewhere = "; draw elsewhere with render --output" if job.has_frames else ""
            warnings.warn(f"{directory.path} cannot be written, so nothing is drawn{elsewhere}", stacklevel=1)
            size = None
        work = partial(proceed, job, directory, warnings.warn)
        work = together(group, resuming(directory.path), work) if group else work
        with computing_as(directory.device):
            return carry_out(job, directory.path, arguments, size, work)


LAUNCHED = ("run", "resume", "grad")
MOST = 256
# Seconds for the first process to detect and report that another one has ended.
GRACE = 30.0


class Launch:
    """Run, resume or differentiate in several processes, over which fields or random seeds are divided.

    Experimental: two processes connected through the loopback device of a machine of two cores do 2 to 7 % of the steps
    of one (docs/runs.md), so it is for fields that no machine can hold.
    """

    EXAMPLES = (
        "simkit launch -n 2 grad bouncing_ball --wrt launch_speed --seeds 4",
        "simkit launch -n 2 run channel_flow --set steps=40 --set every=20 --no-render",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("-n", "--number", type=int, required=True, metavar="N", help="number of processes")
        parser.add_argument("verb", metavar="VERB", choices=LAUNCHED, help="run, resume or grad, with its arguments")
        parser.add_argument("words", metavar="...", nargs=argparse.REMAINDER, help="arguments of the verb")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Start the processes, wait for the first one, and return its exit code."""
        count, words = arguments.number, [arguments.verb, *arguments.words]
        checks.integer(count, "-n", 2, MOST)
        if arguments.json:
            words.append("--json")
        address = f"127.0.0.1:{_free_port()}"
        with contextlib.ExitStack() as closing:
            folder = Path(tempfile.mkdtemp(prefix="simkit_"))
            removing = closing.enter_context(contextlib.ExitStack())
            removing.callback(shutil.rmtree, folder)
            logs = [closing.enter_context(open(folder / f"process_{index}.log", "w+b")) for index in range(count)]
            processes = [_started(words, count, index, address, logs[index]) for index in range(count)]
            closing.callback(_end, processes)
            code = _wait(processes)
            if code not in (FINE, DIFFERS, WRONG_INPUT, FAILED, INTERRUPTED, TERMINATED):
                removing.pop_all()  # the message names the logs
                reasons = f"{_reasons(processes, logs)} (logs in {folder})"
                print(f"simkit: process 0 {ending(code)}, as told above; {reasons}; {_remedy(words)}", file=sys.stderr)
                return FAILED
            return code


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _started(words: list[str], count: int, index: int, address: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    options = ["--processes", str(count), "--process-id", str(index), "--coordinator", address]
    return subprocess.Popen(
        # As for workers of sweeps: modules are those of this process, and Ctrl-C reaches only this process.
        [sys.executable, "-P", "-m", "simkit.cli.main", *words, *options],
        env=os.environ | {PARENT: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if index else None,
        stderr=log if index else None,
        start_new_session=True,
    )


def _remedy(words: list[str]) -> str:
    """Return what to do if a process is lost: resume the run of the command, or run it again."""
    verb, *rest = words
    if verb == "grad":
        return "run the command again"
    parser = argparse.ArgumentParser(add_help=False)
    (Resume if verb == "resume" else new_jobs.Run).add_arguments(parser)
    chosen, _ = parser.parse_known_args(rest)
    return resuming(chosen.run if verb == "resume" else output_of(chosen, find_scenario(chosen.scenario).name))


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    """Return the exit code of the first process; stop signals are passed on to it, and failures of others detected."""
    first, *others = processes
    signaled = False
    while True:
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return first.wait(0.5)
            if any(process.poll() not in (None, FINE) for process in others):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return first.wait(GRACE)
                first.kill()
                return first.wait()
        except KeyboardInterrupt as interrupt:
            if signaled:
                first.kill()
            signaled = True
            first.send_signal(signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait a moment for the processes to exit, and kill those that do not."""
    for process in processes:
        try:
            process.wait(GRACE / len(processes))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


def _reasons(processes: Sequence[subprocess.Popen[bytes]], logs: Sequence[IO[bytes]]) -> str:
    """Return the failures of the other processes, in words."""
    reasons = []
    for index, process in enumerate(processes[1:], 1):
        if (code := process.poll()) not in (None, FINE):
            line = last_line(logs[index])
            reasons.append(f"process {index} {ending(code)}{': ' * bool(line)}{line}")
    return "; ".join(reasons) or "the others are running"


class Merge:
    """Merge finished sweeps of one scenario and settings, with different points or seeds, into one sweep."""

    EXAMPLES = (
        "simkit merge runs/bouncing_ball_sweep runs/fast -o runs/both",
        "simkit merge runs/fast runs/bouncing_ball_sweep -o runs/both --overwrite",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="run directories of sweeps, at least two")
        parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write")
        parser.add_argument("--overwrite", action="store_true", help="replace an existing run directory")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Merge, and report like a sweep."""
        from simkit.jobs.sweep_functions import finished_sweeps, merged
        from simkit.jobs.sweeps import Sweep

        opened = finished_sweeps(arguments.sweeps)

        def work(report: "reporting.Report") -> "xarray.Dataset":
            return merged(opened, arguments.output, overwrite=arguments.overwrite, warn=warnings.warn, report=report)

        return carry_out(Sweep.of(opened[0]), arguments.output, arguments, None, work)


MOST_LINES = 20
# States of a job that a command resumes.
RESUMABLE = ("interrupted", "damaged")


class Status:
    """Show the progress and failures of a stored job, while it runs in another shell or after an interruption."""

    EXAMPLES = (
        "simkit status runs/bouncing_ball",
        "simkit status runs/bouncing_ball_sweep --json",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("run", metavar="RUN", help="the run directory")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Read the run directory and report, without writing."""
        from simkit.jobs.stored_jobs import progress_of

        progress = progress_of(arguments.run)
        if arguments.json:
            resuming = progress.resuming if progress.state in RESUMABLE else None
            print_json(dataclasses.asdict(progress) | {"folder": str(progress.folder), "resuming": resuming}, "status")
            return FINE
        print(f"{progress.kind} of {progress.scenario} in {progress.folder}")
        print(f"state:      {progress.state}")
        print(f"done:       {100 * progress.fraction:.0f} % ({progress.words})")
        print(f"failed:     {progress.failures or 'none'}")
        for line in progress.failed[:MOST_LINES]:
            print(f"            {line}")
        if progress.failures > MOST_LINES:
            print(f"            ... and {progress.failures - MOST_LINES} more")
        print_totals(progress.totals)
        if progress.seconds_left is not None:
            print(f"time left:  about {clock(progress.seconds_left)}")
        if progress.state in RESUMABLE:
            print(f"resume with: {progress.resuming}")
        return FINE


MOST_FRAMES, PLAYER = 150, "player"


class Render:
    """Draw a stored run as gif, webp, mp4 or png, or the chart of a sweep as png; nothing is simulated again.

    A player is one HTML file that shows the run in space: turn it around, play it, step through it. It contains
    three.js, installed by npm, and loads nothing.
    """

    EXAMPLES = (
        "simkit render runs/bouncing_ball --format png",
        "simkit render runs/bouncing_ball --quantity height -o height.png",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("run", metavar="RUN", help="the run directory")
        add_picture(parser, animated=False)
        meaning = "animation, still picture, or player, an HTML file to turn the run around (default: gif)"
        parser.add_argument("--format", "--to", choices=(*FORMATS, PLAYER), help=meaning)
        parser.add_argument("--quantity", metavar="NAME", help="quantity to draw (default: the scenario's)")
        parser.add_argument(
            "--limits", nargs=2, type=float, metavar=("LOW", "HIGH"), help="of its colors, or of the axis of a chart"
        )
        parser.add_argument("--frame", type=int, help="index of the frame of a png (default: -1, the last)")
        parser.add_argument("--max-frames", type=int, help=f"frames of an animation, about (default: {MOST_FRAMES})")
        parser.add_argument("-o", "--output", type=Path, help="file to write (default: inside the run directory)")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Draw, and print the file."""
        from simkit.export.pictures import draw
        from simkit.jobs.stored_jobs import open_frames
        from simkit.jobs.sweeps import SweepJob
        from simkit.render.animate import parse_size
        from simkit.storage.run_directory import RunDirectory

        size, kind = parse_size(arguments.size), _kind(arguments)
        frame, most = (
            default if option is None else option
            for option, default in ((arguments.frame, -1), (arguments.max_frames, MOST_FRAMES))
        )
        checks.integer(most, "--max-frames", 1)
        directory = RunDirectory.open(arguments.run)
        if issubclass(kind_of(directory.kind), SweepJob):
            return _sweep(directory, arguments)
        outcome = open_frames(arguments.run, "animation")
        if kind == PLAYER:
            return _player(outcome, arguments)
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
            print_json({"picture": output, "frames": len(outcome.arrays["status"])}, "picture")
        else:
            print(output)
        return FINE


class Report:
    """Write a page about stored work: film, charts, parameters, and how to compute it again; it needs no network."""

    EXAMPLES = (
        "simkit report runs/bouncing_ball",
        "simkit report runs/bouncing_ball_sweep -o sweep.html",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("run", metavar="RUN", help="the run directory")
        parser.add_argument("-o", "--output", type=Path, help="file to write (default: RUN/report.html)")
        parser.add_argument("--player", action="store_true", help="a player in place of the film of a run")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Write the page, and print its file."""
        from simkit.export.report import report

        file = report(arguments.run, arguments.output, player=arguments.player)
        print_json({"report": file}, "page_of_report") if arguments.json else print(file)
        return FINE


def _changed(arguments: argparse.Namespace, outcome: "Outcome") -> dict[str, Any]:
    """Return the settings of drawing that options replace; a diagnostic is drawn as a chart."""
    from simkit.storage.datasets import split

    changed: dict[str, Any] = {}
    if (name := arguments.quantity) is not None:
        observed, diagnosed = split(outcome.arrays)
        word("stored in the run", (*observed, *diagnosed)).check(name, "--quantity")
        changed = {"quantity": name} | ({} if name in observed else {"view": "chart"})
    if arguments.limits is not None:
        changed["limits"] = [*checks.interval(arguments.limits, "--limits")]
    return changed


def _kind(arguments: argparse.Namespace) -> str:
    """Return the format of the picture: the given one, or that of the file's name."""
    named = arguments.output.suffix.lower().removeprefix(".") if arguments.output else ""
    kind = arguments.format or (PLAYER if named == "html" else named if named in FORMATS else FORMATS[0])
    if arguments.output:
        _check_name(arguments.output, "html" if kind == PLAYER else kind)
    if kind == "png":
        exclude(arguments, ["max_frames"], "is for an animation")
    else:
        exclude(arguments, ["frame"], "is for a picture", "write --format png as well")
    return kind


def _player(outcome: "Outcome", arguments: argparse.Namespace) -> int:
    """Write the player of a run, and print its file."""
    from simkit.export.pictures import play
    from simkit.storage.files import make_folder

    exclude(arguments, ["frame"], "is for a picture", "write --format png")
    exclude(arguments, ["size"], "is for pictures, and a player fills its window")
    output = arguments.output or Path(arguments.run) / f"{outcome.scenario.name}.html"
    with Progress(outcome.scenario.name, doing="encoding frames"):
        page, frames = play(outcome, arguments.max_frames, **_changed(arguments, outcome))
        make_folder(output.parent)
        page.save(output)
    stored = len(outcome.arrays["status"])
    if arguments.json:
        print_json({"player": output, "frames": frames, "of": stored, "bytes": len(page.data)}, "player")
    else:
        print(f"{output}: {frames} of {stored} frames, {len(page.data) / 1e6:.1f} MB")
    return FINE


def _check_name(path: Path, kind: str) -> None:
    if path.suffix.lower() != f".{kind}":
        raise UserError(f"{path} is not the name of a {kind} file; name it {path.stem}.{kind}")


def _sweep(directory: "RunDirectory", arguments: argparse.Namespace) -> int:
    """Draw the chart of a sweep."""
    from simkit.export.pictures import draw_sweep
    from simkit.jobs.job import stored

    options = ["size", "quantity", "limits", "frame", "max_frames", *(["format"] if arguments.format != "png" else [])]
    exclude(arguments, options, f"is not for {kind_of(directory.kind).noun}, whose charts are PNG files")
    output = arguments.output or directory.path / "sweep.png"
    _check_name(output, "png")
    file = draw_sweep(stored(directory), directory.scenario(), output)
    print_json({"picture": file}, "picture") if arguments.json else print(file)
    return FINE
