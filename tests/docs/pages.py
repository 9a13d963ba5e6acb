"""Documentation pages as code: their blocks, the execution of each, and the comparison of its output with the page."""

import contextlib
import importlib
import io
import math
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import pytest

from simkit.cli.main import main

REPOSITORY = Path(__file__).parents[2]
# The site alone has these: they hold the text of README.md, CHANGELOG.md and CONTRIBUTING.md.
SITE = ("index", "changelog", "contributing")
PAGES = [page for page in sorted(REPOSITORY.glob("*.md")) if page.stem != "CHANGELOG"]
PAGES += [
    page
    for page in sorted((REPOSITORY / "docs").rglob("*.md"))
    if page.stem not in SITE and "changes" not in page.parts
]

# Pages whose code runs in a few seconds; tests/thorough/docs runs that of the others.
QUICK = ("accelerators", "api", "checked_numbers", "programs", "results", "simulations", "speed")

# A page shows numbers to a few digits. Rounding differs between machines by about 1e-7 in single precision, which
# cancellation may magnify; numbers smaller than TINY on both sides are residuals of rounding.
TOLERANCE = 0.01
TINY = 1e-5

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\S+\.(?:py|toml))\n")
_MARK = re.compile(r"<!-- numbers agree within (\d+) % -->\s*\Z")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    ``python`` runs, and ``text`` right behind it is what it prints. ``console`` holds lines ``$ simkit ...``, each
    followed by what it prints. ``python`` and ``toml`` whose first line is a comment with a file's name are written to
    that file instead; other ``toml`` blocks are excerpts. ``sh`` and everything else is not run.
    """

    language: str
    text: str
    line: int
    tolerance: float
    follows: str

    @property
    def file(self) -> str | None:
        """The name of the file whose complete text the block is."""
        match = _FILE.match(self.text)
        return match[1] if match else None


def blocks(page: Path) -> list[Block]:
    """Return a page's fenced blocks in order."""
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in _FENCE.finditer(text):
        between = text[end : match.start()]
        mark = _MARK.search(between)
        follows = found[-1].language if found and not between.strip() else ""
        tolerance = int(mark[1]) / 100 if mark else TOLERANCE
        found.append(Block(match[1], match[2], text.count("\n", 0, match.start()) + 1, tolerance, follows))
        end = match.end()
    return found


def run_page(page: Path, folder: Path) -> None:
    """Run a page's blocks in a folder, which must be the working directory and the first place to import from.

    Raises:
        AssertionError: if a block fails, or its output differs from that of the page.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language in ("python", "toml") and block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
            importlib.invalidate_caches()
            if block.file == "pyproject.toml":
                _register(folder, block.text)
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, where, "exec"), namespace)
            printed = out.getvalue()
        elif block.language == "text" and block.follows == "python":
            assert_shown(block.text, printed, block.tolerance, where)
        elif block.language == "console":
            _run_console(block, where)


def run_alone(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page's blocks in an empty folder, and leave the modules and the precision of this process as they were."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    modules, wide = set(sys.modules), jax.config.jax_enable_x64
    try:
        run_page(page, folder)
    finally:
        jax.config.update("jax_enable_x64", wide)
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


def commands(block: Block) -> Iterator[tuple[list[str], str]]:
    """Yield the words of every command of a console block, and the output shown below it."""
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = piece.partition("\n")
        yield shlex.split(command, comments=True), shown


def _run_console(block: Block, where: str) -> None:
    steps = list(commands(block))
    for index, (words, shown) in enumerate(steps):
        if words == ["echo", "$?"]:
            continue
        assert words[0] == "simkit", f"{where}: {words[0]} is not run here; put it in a block of language sh"
        expected = 0
        if index + 1 < len(steps) and steps[index + 1][0] == ["echo", "$?"]:
            expected = int(steps[index + 1][1])
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = main(words[1:])
        assert code == expected, f"{where}: {shlex.join(words)} ended with {code}\n{errors.getvalue()}"
        # Progress goes to stderr too, so errors are compared only where a command fails.
        printed = out.getvalue() + (errors.getvalue() if code else "")
        assert_shown(shown, printed, block.tolerance, f"{where}: {shlex.join(words)}")


def _register(folder: Path, text: str) -> None:
    """Write the entry points of a project as ``pip install`` would."""
    project = tomllib.loads(text)["project"]
    home = folder / f"{project['name']}-{project['version']}.dist-info"
    home.mkdir()
    (home / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (home / "entry_points.txt").write_text("\n".join(lines) + "\n")


def assert_shown(shown: str, printed: str, tolerance: float, where: str) -> None:
    """Check that the output of a block is that shown by the page.

    Words must be equal and numbers close; blanks and the length of rules are ignored. A line ``...`` stands for any
    number of lines; an empty block is not compared.
    """
    wanted, real = _lines(shown), _lines(printed)
    if not wanted:
        return
    chunks: list[list[str]] = [[]]
    for line in wanted:
        if line == "...":
            chunks.append([])
        else:
            chunks[-1].append(line)
    place = 0
    for number, chunk in enumerate(chunks):
        low, high = place, len(real) - len(chunk)
        # Lines before the first ``...`` are the first of the output, and lines after the last one its last.
        if number == 0:
            high = min(high, 0)
        if number == len(chunks) - 1:
            low = max(low, len(real) - len(chunk))
        starts = (start for start in range(low, high + 1) if _same_lines(chunk, real[start:], tolerance))
        found = next(starts, None)
        assert found is not None, f"{where}\nshown:\n{shown}\nprinted:\n{printed}"
        place = found + len(chunk)


def _same_lines(shown: list[str], printed: list[str], tolerance: float) -> bool:
    return all(_same(a, b, tolerance) for a, b in zip(shown, printed, strict=False))


def _lines(text: str) -> list[str]:
    lines = (re.sub(r"-{2,}", "--", " ".join(line.split())) for line in text.splitlines())
    return [line for line in lines if line]


def _same(shown: str, printed: str, tolerance: float) -> bool:
    if _NUMBER.sub("#", shown) != _NUMBER.sub("#", printed):
        return False
    pairs = zip(_numbers(shown), _numbers(printed), strict=True)
    return all(math.isclose(a, b, rel_tol=tolerance) or max(abs(a), abs(b)) < TINY for a, b in pairs)


def _numbers(line: str) -> list[float]:
    return [float(text) for text in _NUMBER.findall(line)]
