"""Gallery of scenarios: its pictures, cards, pages and notes."""

import dataclasses
import re
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from simkit.cli.gallery_pages import PAGE, SHARED, Shown, command, index_page, scenario_page
from simkit.errors import UserError, one_line
from simkit.export.markup import shared
from simkit.export.pictures import draw
from simkit.jobs.job import begin
from simkit.jobs.runs import Outcome, Run
from simkit.scenario.drawing import CLOCKS
from simkit.scenario.scenario import Scenario
from simkit.storage.files import DamagedFileError, check_folder, make_folder, read_json, write_bytes, write_json
from simkit.storage.manifest import devices

# Characters that can begin markup within a line of GitHub's Markdown.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~$@^=])")
# Beginnings of a line that make a list, a heading or a rule.
_BEGINNING = re.compile(r"^(?:([-+=])|(\d+)([.)]))")
# Addresses that become links without markup.
_ADDRESS = re.compile(r"(?i)(:(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):)")


def escaped(text: str) -> str:
    """Return a text as one line of Markdown that shows it literally.

    Args:
        text: any text, such as the title of a scenario file.

    Source: GitHub Flavored Markdown, https://github.github.com/gfm/, sections 2.4 and 6.9.
    """
    line = _MARKS.sub(r"\\\1", " ".join(text.split()).replace("&", "&amp;"))
    line = _BEGINNING.sub(lambda mark: f"\\{mark[1]}" if mark[1] else f"{mark[2]}\\{mark[3]}", line)
    return _ADDRESS.sub(r"\\\1", line)


# Film and poster, of one size; many frames, since a video stores little more than what changes. A film of more bytes
# than the limit, such as that of hundreds of moving particles, is drawn again with fewer pixels: in proportion, since
# half of the frames of jamming, each stored almost whole, took as many bytes as all of them.
FILM, POSTER = "film.mp4", "poster.webp"
SIZE = 640 * 360
FRAMES = 100
LARGEST_FILM = 300_000
# Entries of a card that the index shows.
TEXTS = ("name", "title", "summary", "domain", "command")
# Charts of a card, and points of each.
CHARTS, POINTS = 6, 80


@dataclasses.dataclass(frozen=True)
class Entry:
    """One scenario in the gallery.

    Attributes:
        scenario: name of the scenario.
        status: status of its run, in words.
        failed: whether the run failed.
        film: the film, if there is one.
        size: size of the film in bytes.
    """

    scenario: str
    status: str
    failed: bool
    film: Path | None = None
    size: int = 0


def render_scenario(
    scenario: Scenario, folder: Path, report: Callable[[float, str], None] = lambda fraction, words: None
) -> Entry:
    """Run a scenario and write its film, the poster of the film and its card.

    Args:
        scenario: scenario to run.
        folder: the gallery; ``folder/NAME`` is written.
        report: called with the fraction done, half of it for the run and half for its pictures, and the activity.
    """
    home = folder / scenario.name
    if not check_folder(home):
        make_folder(home)
    outcome, seconds = timed_run(scenario, lambda fraction: report(fraction / 2, "running"))
    if outcome.failed:
        # Pictures of an earlier successful run are kept.
        return Entry(scenario.name, outcome.message, failed=True)
    film = home / FILM
    draw(outcome, film, "mp4", SIZE, maximum_frames=FRAMES, report=lambda part: report((1 + part) / 2, "drawing"))
    if (size := film.stat().st_size) > LARGEST_FILM:
        draw(outcome, film, "mp4", max(SIZE * LARGEST_FILM // size, SIZE // 4), maximum_frames=FRAMES // 2)
    # An animation of one frame is the last picture of the film.
    draw(outcome, home / POSTER, "webp", SIZE, maximum_frames=1)
    missing = {key: value for key, value in _card_of(home).items() if key == "missing_page"}
    _write_card(home, card_of(outcome, seconds) | missing)
    return Entry(scenario.name, outcome.message, outcome.failed, film, film.stat().st_size)


def timed_run(
    scenario: Scenario, report: Callable[[float], None] = lambda fraction: None
) -> tuple[Outcome, tuple[float, float]]:
    """Return the outcome of a run, and the CPU seconds to build and compile it and to run it.

    Args:
        scenario: run twice, since the second run compiles nothing.
        report: called with the fraction done.
    """
    began = time.process_time()
    begin(Run(scenario), None, report=lambda fraction, words: report(fraction / 2))
    compiled = time.process_time()
    outcome = begin(Run(scenario), None, report=lambda fraction, words: report((1 + fraction) / 2))
    second = time.process_time() - compiled
    return outcome, (max(compiled - began - second, 0.0), second)


def card_of(outcome: Outcome, seconds: tuple[float, float]) -> dict[str, Any]:
    """Return the content of a card.

    Args:
        outcome: of the run.
        seconds: of CPU time to build and compile, and to run.
    """
    scenario = outcome.scenario
    return {
        "name": scenario.name,
        "command": command(scenario, "run"),
        "title": scenario.title,
        "summary": scenario.summary,
        "domain": scenario.domain,
        "parameters": {name: parameter.default for name, parameter in scenario.parameters.items()},
        "diagnostics": outcome.diagnostics,
        "charts": charts_of(outcome),
        "seconds": {"compile": round(seconds[0], 1), "run": float(f"{seconds[1]:.2g}"), "device": devices()[0]},
        "tags": list(scenario.tags),
        "references": list(scenario.references),
    }


def charts_of(outcome: Outcome) -> list[dict[str, Any]]:
    """Return diagnostics that change, over the clock of the run; those of objectives and checked numbers come first.

    Args:
        outcome: of a run of one member.
    """
    dataset = outcome.dataset()
    clock = next((name for name in CLOCKS if dataset.sizes.get(name, 0) > 2), None)
    if clock is None:
        return []
    times = dataset[clock].values
    scenario = outcome.scenario
    central = [name for objective in scenario.objectives.values() for name in objective.made_of]
    central += [claim.quantity for claim in scenario.validations]
    arrays = {
        str(name): array
        for name, array in dataset.data_vars.items()
        if array.dims == (clock,) and array.dtype.kind == "f" and np.ptp(array.values[np.isfinite(array.values)]) > 0
    }
    names = [*dict.fromkeys(name for name in [*central, *arrays] if name in arrays)][:CHARTS]
    chosen = np.unique(np.linspace(0, len(times) - 1, min(len(times), POINTS)).round().astype(int))
    return [
        {
            "name": name,
            "unit": str(arrays[name].attrs.get("units", "")),
            "clock": clock,
            "clock_unit": str(dataset[clock].attrs.get("units", "")),
            "points": [
                [float(f"{x:.4g}"), float(f"{y:.5g}")]
                for x, y in zip(times[chosen], arrays[name].values[chosen], strict=True)
                if np.isfinite(y)
            ],
        }
        for name in names
    ]


# Folder of the runtime that the computing pages share, and bytes that one of them may take.
RUNTIME, LARGEST = "runtime", 900_000


def write_page(scenario: Scenario, folder: Path) -> Entry:
    """Write the page that computes a scenario.

    Args:
        scenario: of the gallery.
        folder: the gallery; all its pages share a runtime.
    """
    from jax.errors import JaxRuntimeError

    from simkit.export import web_page

    home = folder / scenario.name
    if not check_folder(home):
        make_folder(home)
    try:
        report = web_page(scenario, home / PAGE, shared=folder / RUNTIME, overwrite=True)
        missing = (
            f"it would take {report.size / 1e6:.1f} MB; simkit export {scenario.name} --to page makes it"
            if report.size > LARGEST
            else ""
        )
        message = missing or "; ".join(report.misses) or "computes as JAX does"
    except (UserError, JaxRuntimeError) as error:
        # A program that the compiler refuses is told as well.
        report, missing, message = None, one_line(error), one_line(error)
    differs = "" if report is None else "; ".join(report.misses)
    _write_card(home, _card_of(home) | {"missing_page": missing or differs})
    if report is None or missing:
        (home / PAGE).unlink(missing_ok=True)
        return Entry(scenario.name, message, failed=True)
    return Entry(scenario.name, message, not report.passed, report.file, report.size)


def write_index(scenarios: Sequence[Scenario], folder: Path, renewed: Container[str] | None = None) -> Path:
    """Write the page that shows every scenario of the gallery, domain by domain.

    Others that were drawn before are shown as their cards say.

    Args:
        scenarios: scenarios to show as they are now; those without a film are omitted.
        folder: the gallery.
        renewed: names of scenarios whose own pages are written, beside missing ones; ``None`` for all. A page needs
            the parameters of its scenario, so its simulation is built.
    """
    now = [_with_page(Shown.of(scene), folder / scene.name) for scene in scenarios]
    before = _cards_of(folder, {scene.name for scene in now})
    shown = [scene for scene in [*now, *before] if (folder / scene.name / FILM).exists()]
    sizes = {scene.name: _size_of(folder / scene.name / POSTER) for scene in shown}
    lines = ["# Gallery", "", "Each film is one command: `simkit run NAME`. A picture leads to its film."]
    for domain in sorted({scene.domain for scene in shown}):
        lines += ["", f"## {escaped(domain.capitalize())}"]
        for scene in (s for s in shown if s.domain == domain):
            title, summary = escaped(scene.title), escaped(scene.summary)
            lines += ["", f"### {title}", "", f"[![{title}]({scene.name}/{POSTER})]({scene.name}/{FILM})", "", summary]
            # A path with a backtick would end the code.
            lines += ["", escaped(scene.command) if "`" in scene.command else f"`{scene.command}`"]
    write_bytes(folder / "README.md", ("\n".join(lines) + "\n").encode())
    for name in SHARED:
        file, content = folder / name, shared(name).encode()
        # The gallery of a source tree has links to them.
        if not (file.exists() and file.read_bytes() == content):
            write_bytes(file, content)
    for scene in shown:
        home = folder / scene.name
        if scene.scenario and (renewed is None or scene.name in renewed or not (home / "index.html").exists()):
            page = scenario_page(scene, _card_of(home), sizes[scene.name])
            write_bytes(home / "index.html", page.encode())
    index = folder / "index.html"
    write_bytes(index, index_page(shown, sizes).encode())
    return index


def _with_page(scene: Shown, home: Path) -> Shown:
    """Return what the index shows, with whether a page computes it."""
    missing = str(_card_of(home).get("missing_page", ""))
    return dataclasses.replace(scene, computes=(home / PAGE).exists(), missing=missing)


def _size_of(poster: Path) -> tuple[int, int]:
    """Return the width and height of a poster in pixels, of a missing or damaged one those of a usual page."""
    try:
        with Image.open(poster) as picture:
            return picture.size
    except OSError:
        return 640, 360


def _card_of(home: Path) -> dict[str, Any]:
    """Return a card; an empty one if it is missing or damaged."""
    try:
        return dict(read_json(home / "card.json"))
    except (DamagedFileError, UserError, TypeError, ValueError):
        return {}


def _write_card(home: Path, card: dict[str, Any]) -> None:
    # Indented, the points of charts took three times the bytes.
    write_json(home / "card.json", card, indent=None)


def _cards_of(folder: Path, names: Container[str]) -> list[Shown]:
    """Return what the cards of a gallery say, by name, but for scenarios that are known and for damaged cards."""
    cards = []
    for path in sorted(folder.glob("*/card.json")):
        try:
            card = read_json(path)
        except (DamagedFileError, UserError):
            continue
        name, title, summary, domain, words = (str(card.get(key, "")) for key in TEXTS)
        if name == path.parent.name and name not in names and title and summary and domain and words:
            cards.append(Shown(name, title, summary, domain, words))
    return cards
