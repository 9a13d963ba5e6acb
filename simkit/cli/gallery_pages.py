"""Pages of the gallery: the index, which is filtered by words and tags, and a page for every scenario."""

import collections
import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from simkit.export.markup import code, line, literal, page, table
from simkit.render.style import shown_unit
from simkit.scenario.catalog import shipped_folder
from simkit.scenario.scenario import PARAMETER_HEAD, Scenario

# Files beside the pages that all of them load.
SHARED = ("pages.css", "gallery.js")
# Page of a scenario that computes it.
PAGE = "compute.html"
# Ratio of width and height above which a film takes two columns of the index.
WIDE = 1.9
# A tag of fewer scenarios is found by words.
LEAST_TAGGED = 3


@dataclasses.dataclass(frozen=True)
class Shown:
    """What the index shows of a scenario.

    Attributes:
        name: of the scenario, and of its folder in the gallery.
        title: a few words.
        summary: one sentence.
        domain: its domain.
        command: the command that runs it.
        tags: words for searches.
        scenario: the scenario, of which there is a page; ``None`` for one that is known by its card alone.
        computes: whether there is a page that computes it.
        missing: why there is none, if that was tried, or where it differs from JAX.
    """

    name: str
    title: str
    summary: str
    domain: str
    command: str
    tags: tuple[str, ...] = ()
    scenario: Scenario | None = None
    computes: bool = False
    missing: str = ""

    @classmethod
    def of(cls, scenario: Scenario) -> "Shown":
        """Return what the index shows of a scenario."""
        texts = (scenario.name, scenario.title, scenario.summary, scenario.domain, command(scenario, "run"))
        return cls(*texts, scenario.tags, scenario)


def command(scenario: Scenario, verb: str, *words: str) -> str:
    """Return a command on a scenario: a shipped one is given by its name, another by its file."""
    is_shipped = scenario.source.is_relative_to(shipped_folder())
    return shlex.join(["simkit", verb, scenario.name if is_shipped else str(scenario.source), *words])


def index_page(shown: Sequence[Shown], sizes: Mapping[str, tuple[int, int]]) -> str:
    """Return the HTML of the index: cards by domain, and a form that filters them.

    Args:
        shown: scenarios in their order.
        sizes: width and height of the picture of each in pixels, by name.
    """
    counts = collections.Counter(tag for scene in shown for tag in scene.tags)
    domains = sorted({scene.domain for scene in shown})
    buttons = [
        f'<button type="button" value="{literal(tag)}" aria-pressed="false">{literal(tag)}</button>'
        for tag, count in sorted(counts.items())
        if LEAST_TAGGED <= count < len(shown) and tag not in domains
    ]
    sections = []
    for domain in domains:
        cards = [_card(scene, sizes[scene.name]) for scene in shown if scene.domain == domain]
        heading = f"<h2>{_heading(domain)}</h2>"
        section = f'<section id="{literal(domain)}">{heading}<div class="cards">{"".join(cards)}</div></section>'
        sections.append(section)
    links = " · ".join(f'<a href="#{literal(domain)}">{_heading(domain)}</a>' for domain in domains)
    return page(
        "simkit gallery",
        _loading(""),
        "<main><h1>simkit gallery</h1><p>Each film is one command; its scenario can be swept, differentiated and "
        f'optimized.</p><nav aria-label="domains">{links}</nav>'
        '<form role="search"><input type="search" aria-label="filter by words" '
        f'placeholder="filter by words"><output aria-live="polite"></output>{"".join(buttons)}</form>'
        f"{''.join(sections)}</main>",
    )


def _heading(domain: str) -> str:
    return literal(domain.replace("_", " ").capitalize())


def _card(scene: Shown, size: tuple[int, int]) -> str:
    title, folder = literal(scene.title), literal(scene.name)
    link = f'<a href="{folder}/index.html">{title}</a>' if scene.scenario else title
    wide = ' class="wide"' if size[0] > WIDE * size[1] else ""
    return (
        f'<article data-tags="{literal("|".join(scene.tags))}"{wide}>{_film(scene.title, f"{folder}/", size)}'
        f'<div class="words"><h3>{link}</h3><p>{literal(scene.summary)}</p><code>{literal(scene.command)}</code>'
        f"{_computing(scene, f'{folder}/')}</div></article>"
    )


def _film(title: str, folder: str, size: tuple[int, int], more: str = 'preload="none"') -> str:
    """Return the film of a scenario, at first its poster; the script of the gallery plays it."""
    return (
        f'<video src="{folder}film.mp4" poster="{folder}poster.webp" aria-label="film: {literal(title)}" '
        f'width="{size[0]}" height="{size[1]}" muted loop playsinline {more}></video>'
    )


def scenario_page(shown: Shown, card: Mapping[str, Any], size: tuple[int, int]) -> str:
    """Return the HTML of the page of a scenario: film, commands, charts, parameters, checked numbers and file.

    Args:
        shown: with its scenario.
        card: what its run stored, see `simkit.cli.gallery.card_of`; entries may be missing or damaged.
        size: width and height of the film in pixels.
    """
    scenario = shown.scenario
    assert scenario is not None
    title = literal(scenario.title)
    diagnostics, seconds = (
        each if isinstance(each := card.get(key), dict) else {} for key in ("diagnostics", "seconds")
    )
    parts = [
        '<p><a href="../index.html">all scenarios</a></p>',
        f"<h1>{title}</h1><p>{literal(scenario.summary)}</p>",
        f"<figure>{_film(scenario.title, '', size, 'controls')}</figure>",
        _computing(shown, ""),
        "<h2>Use</h2>",
        code("\n".join(_commands(scenario))),
        _times(seconds),
        "<h2>Parameters</h2>",
        table(PARAMETER_HEAD, scenario.parameter_rows),
    ]
    if scenario.objectives:
        rows = ((name, each.goal, each.doc, each.as_expression) for name, each in scenario.objectives.items())
        parts += ["<h2>Objectives</h2>", table(("objective", "goal", "meaning", "formula"), rows)]
    if scenario.validations:
        parts += [
            "<h2>Numbers that it reproduces</h2>",
            code(command(scenario, "validate")),
            table(
                ("quantity", "expected", "tolerance", "in this run", "source"),
                (
                    (each.words, f"{each.expected:g}", f"{each.tolerance:g}", _value_in(each, diagnostics), each.source)
                    for each in scenario.validations
                ),
            ),
        ]
    charts = [figure for each in card.get("charts") or () if (figure := _chart(each))]
    if charts:
        parts += ["<h2>Over this run</h2>", f'<div class="charts">{"".join(charts)}</div>']
    numbers = {name: value for name, value in diagnostics.items() if isinstance(value, int | float)}
    if numbers:
        rows = ((name, f"{value:.6g}") for name, value in numbers.items())
        parts += ["<h2>At the end of this run</h2>", table(("diagnostic", "value"), rows)]
    if scenario.references:
        items = "".join(f"<li>{_reference(each)}</li>" for each in scenario.references)
        parts += ["<h2>References</h2>", f"<ul>{items}</ul>"]
    parts += [f"<h2>{literal(scenario.source.name)}</h2>", code(scenario.text)]
    return page(scenario.title, _loading("../"), f'<main class="scenario">{"".join(parts)}</main>')


def _computing(shown: Shown, folder: str) -> str:
    """Return the link to the page that computes, or why there is none."""
    if shown.computes:
        name = literal(f"compute it here: {shown.title}")
        differs = f" Note: {literal(line(shown.missing))}." if shown.missing else ""
        return (
            f'<p><a href="{folder}{PAGE}" aria-label="{name}">Compute it here</a>, with sliders, offline.{differs}</p>'
        )
    return f"<p>No page computes it: {literal(line(shown.missing))}</p>" if shown.missing else ""


def _times(seconds: Mapping[str, Any]) -> str:
    """Return how long compilation and run took."""
    if not all(isinstance(seconds.get(key), int | float) for key in ("compile", "run")):
        return ""
    device = literal(line(str(seconds.get("device", ""))))
    return f"<p>CPU time: {seconds['compile']:.3g} s to compile, {seconds['run']:.3g} s to run; {device}.</p>"


# Width and height of a chart, and the margins for its numbers, in its own units.
_CHART, _MARGIN = (320, 150), 22


def _chart(data: Any) -> str:
    """Return a curve as SVG with its extremes, without scripts; empty for damaged data."""
    try:
        points = [(float(x), float(y)) for x, y in data["points"]]
        name, unit, clock, clock_unit = (line(str(data[key])) for key in ("name", "unit", "clock", "clock_unit"))
    except (TypeError, KeyError, ValueError):
        return ""
    (first, last), (low, high) = (
        ((min(values), max(values)) for values in zip(*points, strict=True)) if points else (((0.0, 0.0),) * 2)
    )
    if not (last > first and high > low and math.isfinite(last - first + high - low)):
        return ""
    width, height = _CHART[0], _CHART[1] - 2 * _MARGIN
    path = " ".join(
        f"{width * (x - first) / (last - first):.1f},{_MARGIN + height * (high - y) / (high - low):.1f}"
        for x, y in points
    )
    label, over = _with_unit(name, unit), _with_unit(clock, clock_unit)
    texts = (
        ("start", 0, 14, f"{high:.4g}"),
        ("start", 0, _CHART[1] - 6, f"{low:.4g}"),
        ("end", width, _CHART[1] - 6, f"{over} {first:.3g} to {last:.3g}"),
    )
    words = "".join(f'<text x="{x}" y="{y}" text-anchor="{a}">{literal(text)}</text>' for a, x, y, text in texts)
    meaning = f"{name} over {clock}: from {points[0][1]:.4g} to {points[-1][1]:.4g}, between {low:.4g} and {high:.4g}"
    return (
        f'<figure class="chart"><figcaption>{literal(label)}</figcaption>'
        f'<svg viewBox="0 0 {_CHART[0]} {_CHART[1]}" role="img" aria-label="{literal(meaning)}">'
        f'<polyline points="{path}"/>{words}</svg></figure>'
    )


def _with_unit(name: str, unit: str) -> str:
    words = name.replace("_", " ")
    return f"{words} ({shown_unit(unit)})" if unit not in ("", "1") else words


def _commands(scenario: Scenario) -> list[str]:
    """Return commands that run, sweep, differentiate and optimize a scenario."""
    single = {name: p for name, p in scenario.parameters.items() if isinstance(p.default, float) and p.default}
    commands = [command(scenario, "run")]
    if single:
        # What the file sets is what it is about; a time step is an error of discretization, which a study varies last.
        is_set = {name for name, settings in scenario.parameter_settings.items() if settings.default is not None}
        name, parameter = min(single.items(), key=lambda item: (item[0] == "time_step", item[0] not in is_set))
        least, largest = parameter.bounds
        low, high = sorted(min(max(factor * parameter.default, least), largest) for factor in (0.9, 1.1))
        commands.append(command(scenario, "sweep", "--over", f"{name}={low:g}:{high:g}:5"))
        if scenario.objectives:
            objective = next(iter(scenario.objectives))
            commands.append(command(scenario, "grad", "--objective", objective, "--wrt", name, "--check"))
            commands.append(command(scenario, "optimize", "--objective", objective, "--wrt", name))
    return commands


def _value_in(validation: Any, diagnostics: Mapping[str, Any]) -> str:
    """Return the value of a checked number in the run of the page, or a dash if it is that of another run."""
    is_final = not (validation.overrides or validation.derivative or validation.expression)
    value = diagnostics.get(validation.quantity) if is_final and validation.reduce == "final" else None
    return f"{value:g}" if isinstance(value, int | float) else "\N{EN DASH}"


def _reference(text: str) -> str:
    """Return a reference, as a link if it is a DOI."""
    identifier = text.removeprefix("doi:")
    return (
        literal(text) if identifier == text else f'<a href="https://doi.org/{literal(identifier)}">{literal(text)}</a>'
    )


def _loading(up: str) -> str:
    return f'<link rel="stylesheet" href="{up}pages.css">\n<script src="{up}gallery.js" defer></script>'
