"""Move the files of docs/changes into CHANGELOG.md; with a version, make a release of its part "Unreleased".

``python docs/make_changelog.py``, or ``python docs/make_changelog.py 0.2.0``.
"""

import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = "## Unreleased\n"


def sections(text: str) -> dict[str, str]:
    """Return the text below each heading of third level, by heading."""
    parts = re.split(r"^### (.+)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"'{parts[0].strip().splitlines()[0]}' stands above the first heading '### ...'")
    return {heading.strip(): body.strip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def assembled(changelog: str, changes: list[str], release: str = "") -> str:
    """Return a changelog with changes in its part "Unreleased".

    Args:
        changelog: its whole text.
        changes: texts of single changes, each with headings ``### ...`` and lines below them.
        release: a version and date, under which that part then stands; empty: it stays unreleased.
    """
    before, _, rest = changelog.partition(FIRST)
    end = re.search(r"^## ", rest, re.MULTILINE)
    part, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    for change in changes:
        for heading, body in sections(change).items():
            place = re.search(rf"^### {re.escape(heading)}\n\n((?:(?!^### ).*\n)*)", part, re.MULTILINE)
            if place:
                part = f"{part[: place.start(1)]}{place[1].rstrip()}\n{body}\n\n{part[place.end() :]}"
            else:
                part = f"{part.rstrip()}\n\n### {heading}\n\n{body}\n\n"
    part = part.rstrip() + "\n" + ("\n" if after else "")
    return f"{before}{FIRST}" + (f"\n## {release}\n" if release else "") + part + after


def waiting() -> list[Path]:
    """Return the files of docs/changes."""
    return sorted(file for file in (ROOT / "docs/changes").glob("*.md") if file.name != "README.md")


def main(arguments: list[str]) -> None:
    """Assemble the changelog of this repository."""
    files = waiting()
    release = f"{arguments[0]} ({datetime.date.today():%d %B %Y})" if arguments else ""
    changelog = ROOT / "CHANGELOG.md"
    changes = [file.read_text(encoding="utf-8") for file in files]
    changelog.write_text(assembled(changelog.read_text(encoding="utf-8"), changes, release), encoding="utf-8")
    for file in files:
        file.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
