"""Verbs about what is installed: validate, gallery and doctor."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from simkit.cli.main import FAILED, FINE
from simkit.cli.output import print_json, print_table
from simkit.cli.progress import Progress
from simkit.core.compilation import cache_directory, use_compilation_cache
from simkit.core.devices import plugins, refuse_no_platform
from simkit.errors import Mistakes, UserError, one_line
from simkit.scenario.catalog import find_scenario, list_scenarios, shipped_folder

if TYPE_CHECKING:
    from simkit.jobs.validation import Check


class Validate:
    """Check scenarios against the published and analytic numbers in their files."""

    EXAMPLES = (
        "simkit validate bouncing_ball",
        "simkit validate projectile bouncing_ball",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("scenarios", metavar="NAME", nargs="*", help="scenarios (default: all)")

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Validate and report; exit code 3 if a number is missed."""
        from simkit.jobs.validation import validate

        scenarios = [find_scenario(name) for name in arguments.scenarios] or list_scenarios()[0]
        empty = [scenario.name for scenario in scenarios if not scenario.validations]
        if empty and arguments.scenarios:
            raise UserError(f"{empty[0]} has no published number; add a [[validation]] table to its file")
        checks = []
        total = sum(len(scenario.validations) for scenario in scenarios)
        with Progress("validate", total, "numbers") as progress:

            def on_progress(fraction: float, words: str) -> None:
                progress.update((len(checks) + fraction) / total, scenario.name)

            for scenario in scenarios:
                for check in validate(scenario, on_progress):
                    checks.append(check)
                    progress.update(len(checks) / total, f"{check.scenario}: {check.what}")
        if arguments.json:
            print_json({"checks": [asdict(check) | {"passed": check.passed} for check in checks]}, "validation")
        else:
            header = ("scenario", "quantity", "expected", "found", "error", "tolerance", "result", "source")
            rows = [
                (c.scenario, c.what, c.expected, c.found, c.error, c.tolerance, _result(c), c.source) for c in checks
            ]
            print_table(header, rows)
        for failure in dict.fromkeys(check.failure for check in checks if check.failure):
            print(f"simkit: {failure}", file=sys.stderr)
        return FINE if all(check.passed for check in checks) else FAILED


def _result(check: "Check") -> str:
    return "FAIL" if check.failure else "pass" if check.passed else "MISS"


class Gallery:
    """Render every scenario into a gallery: a film, its poster and a card each, and an index page."""

    EXAMPLES = (
        "simkit gallery bouncing_ball",
        "simkit gallery bouncing_ball projectile -o pictures",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb."""
        parser.add_argument("scenarios", metavar="NAME", nargs="*", help="scenarios (default: all)")
        parser.add_argument(
            "-o", "--output", type=Path, default=Path("gallery"), help="folder to write (default: gallery)"
        )
        meaning = "write pages that compute the scenarios, which share a runtime, instead of pictures"
        parser.add_argument("--pages", action="store_true", help=meaning)

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Run, draw and report; a failing scenario is named and does not stop the others."""
        from simkit.cli.gallery import Entry, render_scenario, write_index, write_page
        from simkit.storage.files import make_folder

        if arguments.pages:  # cards tell the time of compilation
            use_compilation_cache()
        shipped = list_scenarios()[0]
        scenarios = [find_scenario(name) for name in arguments.scenarios] or shipped
        make_folder(arguments.output)
        entries = []
        with Progress("gallery", len(scenarios), "scenarios") as progress:

            def on_part(fraction: float, words: str) -> None:
                progress.update((len(entries) + fraction) / len(scenarios), f"{scenario.name}, {words}")

            for scenario in scenarios:
                try:
                    if arguments.pages:
                        on_part(0.0, "exporting")
                        entries.append(write_page(scenario, arguments.output))
                    else:
                        entries.append(render_scenario(scenario, arguments.output, on_part))
                except UserError as error:
                    entries.append(Entry(scenario.name, str(error), failed=True))
        every = {s.name: s for s in [*shipped, *scenarios]}
        index = write_index(list(every.values()), arguments.output, {s.name for s in scenarios})
        failed = [entry for entry in entries if entry.failed]
        output = "page" if arguments.pages else "animation"
        if arguments.json:
            report = [
                {
                    "scenario": e.scenario,
                    "failed": e.failed,
                    "message": e.status,
                    output: e.film,
                    "bytes": e.size,
                }
                for e in entries
            ]
            print_json({"scenarios": report, "index": index}, "gallery")
        else:
            rows = [(e.scenario, e.status, e.film or "none", f"{e.size / 1e6:.2f} MB") for e in entries]
            print_table(("scenario", "status", output, "size"), rows)
            print(f"\nindex: {index}")
        for entry in failed:
            print(f"simkit: {entry.status}", file=sys.stderr)
        return FAILED if failed else FINE


OLDEST_JAX = (0, 11, 2)


class Doctor:
    """Show versions, devices, precision and caches, and check the installation."""

    EXAMPLES = (
        "simkit doctor",
        "simkit doctor --json",
    )

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the verb: none."""

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Check the installation and the machine; exit code 3 if a required package is missing or broken."""
        from simkit.engine.memory import available_bytes, format_bytes
        from simkit.storage.manifest import devices, imports, versions

        with Progress("doctor", doing="importing every package"):
            imported = imports()
        broken = {name: each.failure for name, each in imported.items() if each.failure}
        works, reason = not broken.keys() & {"jax", "jaxlib"}, "JAX cannot be imported"
        platform = Mistakes()
        if works:
            with platform.kept():
                refuse_no_platform()
        if platform.found:  # packages that compute when they are imported fail, and are not broken
            works, reason, broken = False, "JAX finds none", {}
        directory = use_compilation_cache() if works else None
        entries = sum(1 for path in directory.iterdir() if path.name.endswith("-cache")) if directory else 0
        installed = versions()
        scenarios, problems = list_scenarios()
        absent = [name for name, version in installed.items() if version == "not installed"]
        troubles = [f"{name} is not installed; pip install {name}" for name in absent]
        troubles += [
            f"{name} cannot be imported: {one_line(reason)}; pip install --force-reinstall {name}"
            for name, reason in broken.items()
            if name not in absent and not imported[name].is_late
        ]
        if late := [name for name in broken if imported[name].is_late]:
            # The packages are imported one after the other, so the first one may be slow, and the others had no turn.
            rest = f", nor {len(late) - 1} packages after it" if late[1:] else ""
            troubles.append(f"{late[0]} was {broken[late[0]]}{rest}; run simkit doctor again when the machine is idle")
        troubles += [str(mistake) for mistake in platform.found] + [problem.message for problem in problems]
        if works and tuple(int(part) for part in installed["jax"].split(".")[:3] if part.isdigit()) < OLDEST_JAX:
            troubles.append(f"jax {installed['jax']} computes wrong results on some machines; install jax >= 0.11.2")
        if works and directory is None and cache_directory() is not None:
            troubles.append(
                f"the compilation cache {cache_directory()} cannot be written; set SIMKIT_COMPILATION_CACHE"
            )
        report = {
            "versions": installed,
            "import_seconds": {name: round(each.seconds, 2) for name, each in imported.items()},
            "python": sys.executable,
            "devices": devices() if works else [f"none, since {reason}"],
            "accelerator plugins": ", ".join(plugins()) or "none; pip install 'simkit-physics[cuda]' for NVIDIA GPUs",
            "free memory": format_bytes(available_bytes()) if works else "unknown",
            "precision": "float32 by default, float64 with --precision float64",
            "compilation cache": f"{directory} ({entries} programs)" if directory else "off",
            "scenarios": f"{len(scenarios)} in {shipped_folder()}",
            "problems": troubles,
        }
        if arguments.json:
            print_json({name.replace(" ", "_"): value for name, value in report.items()}, "installation")
        else:
            rows = [(name, value) for name, value in report.items() if isinstance(value, str)]
            seconds = {name: f"{each.seconds:.1f}" for name, each in imported.items()}
            packages = [(name, version, seconds.get(name, "")) for name, version in installed.items()]
            print_table(("package", "version", "seconds to import, in this order"), packages)
            print()
            print_table(("about", "value"), [("devices", ", ".join(report["devices"])), *rows])
            print("\n" + ("\n".join(f"problem: {trouble}" for trouble in troubles) or "no problem found"))
        return FAILED if troubles else FINE
