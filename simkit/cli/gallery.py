"""Gallery of scenarios: pictures, index and texts without markup."""

import dataclasses
import html
import re
import shlex
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from simkit.errors import UserError
from simkit.export.pictures import draw
from simkit.jobs.job import begin
from simkit.jobs.runs import Outcome, Run
from simkit.render.video import size_of_gif
from simkit.scenario.catalog import shipped_folder
from simkit.scenario.scenario import Scenario
from simkit.storage.files import DamagedFileError, check_folder, make_folder, read_json, write_bytes, write_json

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


# Number of pixels of the animation and of the thumbnail; the aspect ratio is chosen by the painter.
SIZE = 640 * 360
THUMBNAIL = SIZE // 4
# Pages with many animations must load quickly.
MAX_BYTES = 3_000_000
FRAMES = (120, 90, 60, 40, 20)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One scenario in the gallery.

    Attributes:
        scenario: name of the scenario.
        status: status of its run, in words.
        failed: whether the run failed.
        animation: the GIF, if there is one.
        size: size of the GIF in bytes.
    """

    scenario: str
    status: str
    failed: bool
    animation: Path | None = None
    size: int = 0


def render_scenario(
    scenario: Scenario, folder: Path, report: Callable[[float, str], None] = lambda fraction, words: None
) -> Entry:
    """Run a scenario and write its animation, thumbnail and card.

    Args:
        scenario: scenario to run.
        folder: the gallery; ``folder/NAME`` is written.
        report: called with the fraction done, half of it for the run and half for its pictures, and the activity.
    """
    home = folder / scenario.name
    if not check_folder(home):
        make_folder(home)
    outcome = begin(Run(scenario), None, report=lambda fraction, words: report(fraction / 2, "running"))
    if outcome.failed:
        # Pictures of an earlier successful run are kept.
        return Entry(scenario.name, outcome.message, failed=True)
    animation = home / "animation.gif"
    size = _draw_small(outcome, animation, lambda fraction: report((1 + fraction) / 2, "drawing"))
    draw(outcome, home / "thumbnail.png", "png", THUMBNAIL)
    card = {
        "name": scenario.name,
        "command": _command(scenario),
        "title": scenario.title,
        "summary": scenario.summary,
        "domain": scenario.domain,
        "parameters": {name: parameter.default for name, parameter in scenario.parameters.items()},
        "diagnostics": outcome.diagnostics,
        "references": list(scenario.references),
    }
    write_json(home / "card.json", card)
    return Entry(scenario.name, outcome.message, outcome.failed, animation, size)


def _draw_small(outcome: Outcome, animation: Path, report: Callable[[float], None]) -> int:
    """Draw an animation with as many frames as the size limit allows, and return its size in bytes."""
    size = 0
    for frames in FRAMES:
        draw(outcome, animation, "gif", SIZE, maximum_frames=frames, report=report)
        if (size := animation.stat().st_size) <= MAX_BYTES:
            return size
    return size


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the index shows of a scenario.

    Attributes:
        name: of the scenario, and of its folder in the gallery.
        title: a few words.
        summary: one sentence.
        domain: its domain.
        command: the command that runs it.
    """

    name: str
    title: str
    summary: str
    domain: str
    command: str


def write_index(scenarios: Sequence[Scenario], folder: Path) -> Path:
    """Write the page that shows every scenario of the gallery, domain by domain.

    Others that were drawn before are shown as their cards say.

    Args:
        scenarios: scenarios to show as they are now; those without an animation are omitted.
        folder: the gallery.
    """
    now = [Shown(scene.name, scene.title, scene.summary, scene.domain, _command(scene)) for scene in scenarios]
    before = _cards_of(folder, {scene.name for scene in now})
    shown = [scene for scene in [*now, *before] if (folder / scene.name / "animation.gif").exists()]
    domains = sorted({scene.domain for scene in shown})
    lines = ["# Gallery", "", "Each animation is one command: `simkit run NAME`."]
    cards = []
    for domain in domains:
        lines += ["", f"## {escaped(domain.capitalize())}"]
        for scene in (s for s in shown if s.domain == domain):
            picture = f"{scene.name}/animation.gif"
            title, summary = escaped(scene.title), escaped(scene.summary)
            lines += ["", f"### {title}", "", f"![{title}]({picture})", "", summary]
            # A path with a backtick would end the code.
            lines += ["", escaped(scene.command) if "`" in scene.command else f"`{scene.command}`"]
            cards.append(_card(scene, picture, size_of_gif(folder / picture)))
    write_bytes(folder / "README.md", ("\n".join(lines) + "\n").encode())
    page = folder / "index.html"
    write_bytes(page, _PAGE.replace("CARDS", "\n".join(cards)).encode())
    return page


def _command(scenario: Scenario) -> str:
    """Return the command that runs a scenario: a shipped one by its name, another by its file."""
    shipped = scenario.source.is_relative_to(shipped_folder())
    return shlex.join(["simkit", "run", scenario.name if shipped else str(scenario.source)])


def _cards_of(folder: Path, names: Container[str]) -> list[Shown]:
    """Return what the cards of a gallery say, by name, but for scenarios that are known and for damaged cards."""
    cards = []
    for path in sorted(folder.glob("*/card.json")):
        try:
            card = read_json(path)
        except (DamagedFileError, UserError):
            continue
        values = {field.name: str(card.get(field.name, "")) for field in dataclasses.fields(Shown)}
        if values["name"] == path.parent.name and values["name"] not in names and all(values.values()):
            cards.append(Shown(**values))
    return cards


def _card(scene: Shown, picture: str, size: tuple[int, int]) -> str:
    title, summary, command = (html.escape(text) for text in (scene.title, scene.summary, scene.command))
    return (
        f'<figure><img src="{picture}" alt="{title}" width="{size[0]}" height="{size[1]}" loading="lazy">'
        f"<figcaption><h2>{title}</h2><p>{summary}</p><code>{command}</code></figcaption></figure>"
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>simkit gallery</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; background: #f6f7f9; margin: 0 auto; max-width: 1400px;
  padding: 2rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 1.5rem; }
figure { margin: 0; background: #fff; border-radius: 8px; overflow: hidden; box-shadow: 0 1px 4px #0002; }
img { display: block; width: 100%; height: auto; aspect-ratio: 4 / 3; object-fit: contain; }
figcaption { padding: 0 1rem 1rem; }
h2 { font-size: 1.1rem; margin: .8rem 0 .2rem; }
p { margin: .2rem 0 .6rem; color: #4a5663; }
code { background: #eef1f4; padding: .15rem .4rem; border-radius: 4px; }
</style>
</head>
<body>
<h1>simkit gallery</h1>
<p>Each animation is one command.</p>
<main>
CARDS
</main>
</body>
</html>
"""
