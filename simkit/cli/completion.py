"""Words that may follow on a command line, for bash, zsh and fish by argcomplete; nothing imports jax."""

import argparse
import contextlib
import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from simkit.cli.main import VERBS, add_arguments, options_of, verb_of
from simkit.errors import UserError
from simkit.scenario.catalog import FILE, find_scenario, shipped_folder
from simkit.scenario.registry import SIMULATIONS
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import RUN_KEYS

type Words = Callable[..., Iterable[str]]
# Most folders that are looked at for stored runs.
MOST_FOLDERS = 200


def complete() -> None:
    """Print the words that may follow those of the shell, and exit."""
    import argcomplete

    typed = shlex.split(os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))] + " x", posix=False)
    parser = argparse.ArgumentParser(prog="simkit", add_help=False)
    verbs = parser.add_subparsers(dest="verb")
    for name, summary in VERBS.items():
        if name in typed[1:2]:
            verb = verb_of(name)
            chosen = verbs.add_parser(name, **options_of(name, verb))
            add_arguments(verb, chosen)
            for action in chosen._actions:
                if words := COMPLETERS.get(action.dest):
                    action.completer = words  # type: ignore[attr-defined]
        else:
            verbs.add_parser(name, help=summary)
    argcomplete.autocomplete(parser, always_complete_options=False)


def files(prefix: str, ending: str = "") -> list[str]:
    """Return folders, and files with an ending, that begin with a text."""
    from argcomplete.completers import FilesCompleter

    return list(FilesCompleter(allowednames=(ending.removeprefix("."),) if ending else (), directories=True)(prefix))


def scenarios(prefix: str, **unused: Any) -> list[str]:
    """Return names of scenarios, or files."""
    if os.sep in prefix or prefix.startswith((".", "~")):
        return files(prefix, ".toml")
    beside = [path.name for path in Path().glob("*.toml")]
    return [*(path.stem for path in shipped_folder().glob("*/*.toml")), *beside]


def simulations(prefix: str, **unused: Any) -> list[str]:
    """Return names of scenarios and simulations."""
    return [*scenarios(prefix), *SIMULATIONS.names()]


def runs(prefix: str, **unused: Any) -> list[str]:
    """Return folders of stored work below this one, or all folders."""
    around = [path for folder in (Path(), Path("runs"), Path(prefix).parent) for path in _folders(folder)]
    stored = sorted({str(path) for path in around if (path / "manifest.json").is_file()})
    return [each for each in stored if each.startswith(prefix)] or files(prefix)


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [Path(entry) for entry in list(os.scandir(folder))[:MOST_FOLDERS] if entry.is_dir()]
    return []


def _scenario(parsed_args: argparse.Namespace) -> Scenario | None:
    with contextlib.suppress(UserError, OSError, AttributeError):
        return find_scenario(parsed_args.scenario)
    return None


def parameters(prefix: str, parsed_args: argparse.Namespace, **unused: Any) -> list[str]:
    """Return parameters in the file of the scenario, after those that a list has already."""
    scenario = _scenario(parsed_args)
    before = prefix[: prefix.rfind(",") + 1]
    left = [name for name in scenario.parameter_settings if name not in before.split(",")] if scenario else []
    return [f"{before}{name}" for name in left]


def swept(prefix: str, parsed_args: argparse.Namespace, **unused: Any) -> list[str]:
    """Return parameters and keys of the configuration, to be given values."""
    scenario = _scenario(parsed_args)
    config = [f"config.{key}=" for key in scenario.config] if scenario else []
    return [f"{name}=" for name in parameters("", parsed_args)] + config


def settings(prefix: str, parsed_args: argparse.Namespace, **unused: Any) -> list[str]:
    """Return everything that may be set."""
    return swept(prefix, parsed_args) + [f"{key}=" for key in RUN_KEYS]


def objectives(prefix: str, parsed_args: argparse.Namespace, **unused: Any) -> list[str]:
    """Return the objectives of the scenario."""
    scenario = _scenario(parsed_args)
    return list(scenario.objectives) if scenario else []


def parts(prefix: str, parsed_args: argparse.Namespace, **unused: Any) -> list[str]:
    """Return parts of the scenario, one level below the text."""
    scenario = _scenario(parsed_args)
    if scenario is None:
        return []
    inside = [f"config.{key}" for key in scenario.config] + [f"params.{key}" for key in scenario.parameter_settings]
    return [*FILE, *inside, *(f"objectives.{name}" for name in scenario.objectives)]


COMPLETERS: dict[str, Words] = {
    "scenario": simulations,
    "scenarios": scenarios,
    "source": simulations,
    "run": runs,
    "sweeps": runs,
    "set": settings,
    "over": swept,
    "wrt": parameters,
    "objective": objectives,
    "part": parts,
}
"""Completers by the attribute that an argument sets, the same in every verb."""
