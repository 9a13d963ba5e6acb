"""Show versions, devices, precision and caches, and check the installation."""

import argparse
import sys

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.core.compilation import cache_directory, use_compilation_cache
from simkit.errors import one_line
from simkit.scenario.catalog import list_scenarios, shipped_folder

OLDEST_JAX = (0, 11, 2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb: none."""


def main(arguments: argparse.Namespace) -> int:
    """Check the installation and the machine; exit code 3 if a required package is missing or broken."""
    from simkit.engine.memory import available_bytes, format_bytes
    from simkit.storage.manifest import devices, imports, versions

    with Progress("doctor", doing="importing every package"):
        imported = imports()
    broken = {name: each.failure for name, each in imported.items() if each.failure}
    works = not broken.keys() & {"jax", "jaxlib"}
    directory = use_compilation_cache() if works else None
    entries = sum(1 for path in directory.iterdir() if path.name.endswith("-cache")) if directory else 0
    found = versions()
    scenarios, problems = list_scenarios()
    troubles = [f"{name} is not installed; pip install {name}" for name, v in found.items() if v == "not installed"]
    troubles += [
        f"{name} cannot be imported: {one_line(reason)}; pip install --force-reinstall {name}"
        for name, reason in broken.items()
        if found.get(name) != "not installed"
    ]
    troubles += [problem.message for problem in problems]
    if works and tuple(int(part) for part in found["jax"].split(".")[:3] if part.isdigit()) < OLDEST_JAX:
        troubles.append(f"jax {found['jax']} computes wrong results on some machines; install jax >= 0.11.2")
    if works and directory is None and cache_directory() is not None:
        troubles.append(f"the compilation cache {cache_directory()} cannot be written; set SIMKIT_COMPILATION_CACHE")
    report = {
        "versions": found,
        "import_seconds": {name: round(each.seconds, 2) for name, each in imported.items()},
        "python": sys.executable,
        "devices": devices() if works else ["none, since JAX cannot be imported"],
        "free memory": format_bytes(available_bytes()),
        "precision": "float32 by default, float64 with --precision float64",
        "compilation cache": f"{directory} ({entries} programs)" if directory else "off",
        "scenarios": f"{len(scenarios)} in {shipped_folder()}",
        "problems": troubles,
    }
    if arguments.json:
        print_json(report)
    else:
        rows = [(name, value) for name, value in report.items() if isinstance(value, str)]
        seconds = {name: f"{each.seconds:.1f}" for name, each in imported.items()}
        rows_of_packages = [(name, version, seconds.get(name, "")) for name, version in found.items()]
        print_table(("package", "version", "seconds to import, in this order"), rows_of_packages)
        print()
        print_table(("about", "value"), [("devices", ", ".join(report["devices"])), *rows])
        print("\n" + ("\n".join(f"problem: {trouble}" for trouble in troubles) or "no problem found"))
    return FAILED if troubles else FINE
