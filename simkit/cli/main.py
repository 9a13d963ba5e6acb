"""The ``simkit`` command: dispatch to verbs, signals, errors as one line, and exit codes."""

import argparse
import contextlib
import errno
import gc
import importlib
import io
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simkit import __version__
from simkit.cli.output import WRITTEN, as_line, option, print_json, styled
from simkit.cli.progress import DEVICES, SPENT, Progress, spent_in_words
from simkit.core.devices import refuse_no_platform
from simkit.errors import UserError, check_characters, spelled
from simkit.plugins import Registry

# Shells and cluster managers send a signal to the process and to its group; within this time it is one stop, in s.
SAME_STOP = 5.0


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def word_of(interrupt: KeyboardInterrupt) -> str:
    """Return ``"terminated"`` or ``"interrupted"``."""
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into one line with the command that resumes from the stored segments."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        on_disk, word = (output / "manifest.json").exists(), word_of(interrupt)
        raise type(interrupt)(
            f"{word}; resume with: simkit resume {shlex.quote(str(output))}" if on_disk else word
        ) from None


# Batch systems send the last two before the time of a job is over.
TERMINATING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU)


class Stops:
    """Context manager in which SIGTERM and its like raise `Terminated`, as Ctrl-C KeyboardInterrupt, each once.

    Args:
        last: whether the process ends after it; signals after the first are then ignored until its end.
    """

    def __init__(self, *, last: bool) -> None:
        self._last, self._first, self._over = last, -SAME_STOP, False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "Stops":
        # Only the main thread handles signals; signals ignored by the parent process stay ignored.
        if threading.current_thread() is threading.main_thread():
            usual = {signal.SIGINT: signal.default_int_handler} | dict.fromkeys(TERMINATING, signal.SIG_DFL)
            for number, handler in usual.items():
                if signal.getsignal(number) == handler:
                    self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *unused: object) -> None:
        # Python gives its own handlers up while it ends, and a signal would then end it with another code.
        ends = self._last and self._over
        for number, handler in self._former.items():
            signal.signal(number, signal.SIG_IGN if ends else handler)

    def finish(self) -> None:
        """Ignore later signals, since the work is already stopping."""
        self._over = True

    def _receive(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._over or now - self._first < SAME_STOP:
            return
        self._first = now
        raise Terminated if number in TERMINATING else KeyboardInterrupt


VERBS = {
    "list": "names and summaries of the scenarios, or the simulations (--simulations)",
    "show": "a scenario's simulation, parameters, objectives and published numbers",
    "new": "write a scenario file to start from",
    "check": "list all mistakes in a scenario file, without running it",
    "run": "run a scenario and render its animation",
    "sweep": "run a scenario over parameter values and seeds, as one vmapped program",
    "grad": "differentiate a scenario's objective",
    "optimize": "minimize or maximize an objective over parameters",
    "launch": "run or resume one simulation in several processes (experimental)",
    "resume": "finish an interrupted run, sweep, optimization or derivative",
    "merge": "combine finished sweeps of one scenario and settings into one",
    "status": "progress of stored work, from another shell",
    "render": "draw a stored run as gif, webp, mp4 or png, or the chart of a sweep",
    "report": "write a page about stored work: film, charts, parameters, how to compute it again",
    "validate": "check scenarios against their published and analytic numbers",
    "export": "write a simulation for other runtimes or as a page, or a run as NetCDF, Zarr, CSV, VTK, ...",
    "gallery": "render every scenario into a gallery",
    "doctor": "versions, devices, precision and caches, with a check of the installation",
    "cite": "BibTeX of simkit, and of the papers of a scenario and its methods",
    "schema": "JSON Schema of what --json prints",
    "mcp": "offer scenarios to an agent as tools of a Model Context Protocol server",
}
CHAPTERS = {
    "scenarios": ("list", "show", "new", "check"),
    "new_jobs": ("run", "sweep", "grad", "optimize"),
    "stored_jobs": ("launch", "resume", "merge", "status", "render", "report"),
    "shipped": ("validate", "gallery", "doctor"),
    "export": ("export",),
    "programs": ("cite", "schema", "mcp"),
}
# A package adds a verb by an entry point that names a module, or a class in one, with the two functions.
REGISTERED = Registry(
    "verb",
    {verb: f"simkit.cli.verbs.{chapter}:{verb.capitalize()}" for chapter, verbs in CHAPTERS.items() for verb in verbs},
    ("add_arguments", "main"),
)
FINE, DIFFERS, WRONG_INPUT, FAILED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143


class Once(argparse.Action):
    """Action that stores the value of an option, which may be given once."""

    is_given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Store the value.

        Raises:
            UserError: if the option is given twice.
        """
        if option_string and self.is_given:
            raise UserError(f"{option_string} is given twice; keep one of them")
        self.is_given = True
        setattr(namespace, self.dest, values)


EXAMPLES = "examples:\n"


class Help(argparse.HelpFormatter):
    """Formatter of help that keeps the lines of examples, and prints headings in bold on a terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(EXAMPLES) else super()._fill_text(text, width, indent)

    def start_section(self, heading: str | None) -> None:
        """Begin a section."""
        super().start_section(heading and styled(heading, "bold"))


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and which accepts each option once."""

    def __init__(self, **options: Any) -> None:
        """Create the parser with the arguments of `argparse.ArgumentParser`."""
        super().__init__(formatter_class=Help, **options)
        for name in (None, "store"):
            self.register("action", name, Once)

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raise instead of printing the usage.

        Raises:
            UserError: always.
        """
        raise UserError(f"{message}; see {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 fine, 1 an exported program differs from JAX or the output cannot be written, 2 the input is wrong, 3 a run
        failed, 130 interrupted or 143 terminated (and resumable).
    """
    if "_ARGCOMPLETE" in os.environ:  # set by the shell, which wants the words that may follow
        importlib.import_module("simkit.cli.completion").complete()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        # Imports and traces create millions of objects, most of which stay: searched for garbage as often as by
        # default, 460 times, they take 0.3 s of a start of 5.
        gc.set_threshold(50_000, 20, 100)
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal's encoding lacks must not raise an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    with Stops(last=arguments is None) as stops, warnings_as_lines(), spelled(option):
        return _guarded(words, stops)


def _open_closed_streams() -> None:
    """Connect closed standard streams to nowhere; otherwise the next file to be opened would take their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Context manager that prints each warning in one line, without the place in the source."""
    with warnings.catch_warnings():
        # Warnings of libraries about their own arithmetic and future versions are not for the user of a command.
        for category in (RuntimeWarning, FutureWarning, DeprecationWarning):
            warnings.simplefilter("ignore", category)
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        yield


def _guarded(words: list[str], stops: Stops) -> int:
    """Run a command and return its exit code, also for errors and signals."""
    json_wanted = "--json" in words
    SPENT.clear()
    DEVICES.clear()
    WRITTEN.clear()
    Progress.is_quiet = False
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        if SPENT and code == FINE and not json_wanted and not Progress.is_quiet:
            print(spent_in_words(), file=sys.stderr)
        return code
    except UserError as error:
        more = _further(error, words)
        return _complain(error, WRONG_INPUT if error.is_mistake else FAILED, json_wanted, more=more)
    except KeyboardInterrupt as interrupt:
        stops.finish()
        code = TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
        return _complain(str(interrupt) or word_of(interrupt), code, json_wanted, word_of(interrupt))
    except BrokenPipeError:
        # The reader of the output has exited (``simkit list | head``); the rest of the output is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except ImportError as error:
        if (error.name or "simkit").partition(".")[0] == "simkit":
            raise
        return _complain(
            f"a package cannot be imported: {error}; install it; `simkit doctor` checks all packages",
            WRONG_INPUT,
            json_wanted,
            "missing_package",
        )
    except OSError as error:
        scarce = error.errno in (errno.EMFILE, errno.ENFILE)
        if not error.filename and not scarce:  # the error is on standard output, such as a full disk
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _complain(f"cannot write the output: {error.strerror or error}", DIFFERS, json_wanted=False)
        remedy = "raise the limit with ulimit -n" if scarce else "choose another path, or change its permissions"
        reason = f"cannot read or write {error.filename or 'the output'}: {error.strerror or error}; {remedy}"
        return _complain(reason, WRONG_INPUT, json_wanted, "file_access")
    except Exception as error:
        if not (isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)):
            if reason := _no_platform():
                return _complain(reason, WRONG_INPUT, json_wanted)
            raise
        reason = str(error).removeprefix("RESOURCE_EXHAUSTED: ").rstrip(".") or "out of memory"
        is_begun = words[:1] == ["resume"]
        remedy = "resume it where more memory is free" if is_begun else "make the simulation smaller with --set"
        return _complain(f"{reason}; {remedy}", WRONG_INPUT, json_wanted, "out_of_memory")


def _no_platform() -> UserError | None:
    """Return what is wrong where JAX, if it was imported, finds no device: then anything fails, in any way."""
    if "jax" not in sys.modules:
        return None
    try:
        refuse_no_platform()
    except UserError as error:
        return error
    return None


def _further(error: UserError, words: list[str]) -> str:
    """Return the end of a message about the further mistakes: where a file has them, the command that lists them."""
    if not error.others:
        return ""
    if (file := next((word for word in words if word.endswith(".toml")), None)) is None:
        return f"; {'; '.join(error.others)}"
    return f" (and {len(error.others)} more; simkit check {shlex.quote(file)} lists all)"


def _dispatch(words: list[str]) -> int:
    for word in words:
        check_characters(word)
    if not words or words[0] in ("-h", "--help", "help"):
        foreign = {name: f"from {owner}" for name, owner, _ in REGISTERED.providers() if name not in VERBS}
        verbs = VERBS | foreign
        width = max(map(len, verbs))
        print("Differentiable physics: run a named scenario, sweep its parameters, differentiate through it.\n")
        print("usage: simkit VERB ...\n")
        print("\n".join(f"  {verb:<{width}}  {summary}" for verb, summary in verbs.items()))
        print("\nsee simkit VERB --help; start with: simkit run bouncing_ball")
        return FINE
    if words[0] in ("-V", "--version"):
        print(f"simkit {__version__}")
        return FINE
    # Built-in verbs are found without searching the installed packages, and cannot be replaced.
    verb = verb_of(words[0]) if words[0] in VERBS else REGISTERED.resolve(words[0])
    parser = Parser(prog=f"simkit {words[0]}", **options_of(words[0], verb))
    add_arguments(verb, parser)
    arguments = parser.parse_args(words[1:])
    Progress.is_quiet = getattr(arguments, "quiet", False) is True
    return verb.main(arguments) or FINE


def options_of(name: str, verb: Any) -> dict[str, Any]:
    """Return the options of the parser of a verb.

    Args:
        name: of the verb.
        verb: with ``add_arguments``, and perhaps ``EXAMPLES``.
    """
    examples = "\n".join(f"  {line}" for line in getattr(verb, "EXAMPLES", ()))
    conflict = "error" if name in VERBS else "resolve"  # a package's verb may define its own --json
    epilog = f"{EXAMPLES}{examples}" if examples else None
    return {"description": verb.__doc__, "epilog": epilog, "allow_abbrev": False, "conflict_handler": conflict}


def add_arguments(verb: Any, parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every verb, and those of one.

    Args:
        verb: with ``add_arguments``.
        parser: its parser.
    """
    parser.add_argument("--json", action="store_true", help="print the result as JSON (see simkit schema)")
    parser.add_argument("--quiet", action="store_true", help="show neither progress nor times")
    verb.add_arguments(parser)


def verb_of(name: str) -> Any:
    """Return a verb of simkit, by its name, with ``add_arguments`` and ``main``."""
    module, _, attribute = REGISTERED.own[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _warn(message: Warning | str, *unused: Any) -> None:
    """Print a warning in one line, in place of `warnings.showwarning`."""
    print(f"simkit: {styled('warning:', 'yellow', sys.stderr)} {as_line(str(message))}", file=sys.stderr)


def _complain(error: UserError | str, exit_code: int, json_wanted: bool, code: str = "", more: str = "") -> int:
    """Print an error as one line, and as JSON with its `simkit.errors.CODES` if wanted; return the exit code."""
    print(f"{styled('simkit:', 'red', sys.stderr)} {as_line(f'{error}{more}')}", file=sys.stderr)
    if json_wanted:
        data = (error if isinstance(error, UserError) else UserError(error)).as_data | ({"code": code} if code else {})
        print_json({"error": data | {"message": as_line(str(error))}, "exit_code": exit_code}, "error")
    return exit_code


if __name__ == "__main__":
    # Not this copy of the module: verbs compare interrupts with the classes of the one that they import.
    sys.exit(importlib.import_module("simkit.cli.main").main())
