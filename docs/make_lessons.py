"""Make the lessons of docs/lessons: ``python docs/make_lessons.py [-o FOLDER] [NAME ...]`` writes one page for each."""

import argparse
import dataclasses
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simkit
import simkit.export
from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError

if TYPE_CHECKING:
    from simkit.export.page.exporting import PageReport

LESSONS = Path(__file__).parent / "lessons"


def main() -> int:
    """Write the pages; return 1 if a program of one differs from JAX."""
    table = tomllib.loads((LESSONS / "lessons.toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"lessons (default: all): {', '.join(table)}")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("build/lessons"), help="folder (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(table):
        parser.error(f"{sorted(unknown)[0]} is not a lesson; choose from {', '.join(table)}")
    use_compilation_cache()
    misses = []
    for name in arguments.names or table:
        misses += make(name, table[name], arguments.output / f"{name}.html").misses
        print(f"{arguments.output / name}.html")
    print(*misses, sep="\n", end="", file=sys.stderr)
    return 1 if misses else 0


def make(name: str, lesson: dict[str, Any], file: Path) -> "PageReport":
    """Write the page of a lesson.

    Args:
        name: of its text.
        lesson: its entry in ``lessons.toml``.
        file: where to write.
    """
    source = lesson["scenario"]
    scenario = simkit.load(LESSONS / source if source.endswith(".toml") else source, lesson.get("set", {}))
    # The text of the lesson takes the place of the summary.
    scenario = dataclasses.replace(scenario, title=lesson["title"], summary="")
    derivative = {key: lesson.get(key) for key in ("objective", "wrt")}
    return simkit.export.web_page(scenario, file, lesson=LESSONS / f"{name}.html", overwrite=True, **derivative)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"make_lessons: {error}")
