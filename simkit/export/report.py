"""Reports of stored work: one page each, with film, charts, parameters, checks and how to compute it again."""

import base64
import datetime
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from simkit.core.parameter import MOST_SHOWN, count
from simkit.errors import UserError
from simkit.export.markup import code, framed, literal, page, shared, table
from simkit.export.pictures import draw, draw_sweep, play
from simkit.export.replacing import check_page
from simkit.jobs.stored_jobs import open_frames, open_run
from simkit.jobs.sweep_results import columns_of, final_numbers, objective_arrays
from simkit.render.style import shown_unit
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.drawing import CLOCKS
from simkit.scenario.scenario import PARAMETER_HEAD, Scenario
from simkit.storage.files import write_bytes
from simkit.storage.kinds import kind_of
from simkit.storage.run_directory import REPORT, SCENARIO, RunDirectory

# Pixels and frames of the film within the page.
FILM, FRAMES = 480 * 270, 60
# Points of a chart and rows of a table beyond which a page becomes slow.
MOST_POINTS = 2000
MOST_ROWS = 1000

type Section = tuple[str, str]
"""Heading and HTML of a part of a report."""


def report(directory: Path | str, output: Path | str | None = None, *, player: bool = False) -> Path:
    """Write a page about stored work, which needs no other file and no network, and return its path.

    It shows the status and, of a run, the film, charts and final values of its diagnostics; of a sweep the chart and a
    table of its members; of an optimization loss and parameters over its iterations; of a derivative its values. Then
    follow parameters, published numbers, software, devices, the scenario file and the call that computes it again.

    Args:
        directory: run directory; a run may be unfinished, which is said.
        output: file to write; ``None`` for ``report.html`` in the run directory.
        player: whether a player takes the place of the film of a run; it needs three.js, from npm.

    Raises:
        UserError: if nothing can be read back, nothing of it can be played, or the file cannot be written.

    Example:
        >>> run = simkit.run("projectile", output="runs/throw", overwrite=True)
        >>> simkit.report("runs/throw").name
        'report.html'
    """
    if output is not None:
        check_page(Path(output))
    opened = RunDirectory.open(directory)
    job = kind_of(opened.kind)
    result = open_run(opened.path)
    scenario = opened.scenario()
    sections = [*_results(opened, job.report, result, player), *_circumstances(opened, scenario, result)]
    title = scenario.title or scenario.name
    words = next(filter(None, (result.attrs.get(name) for name in ("message", "note", "status"))), "")
    if "seed" in result.dims:
        statuses, counts = np.unique(result["status"].values, return_counts=True)
        ended = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in zip(statuses, counts, strict=True))
        words = f"{result['status'].size} members: {ended}"
    head = f"<h1>{literal(title)}</h1><p>{literal(scenario.summary)}</p><p><strong>{literal(words)}</strong></p>"
    body = "".join(f"<section><h2>{literal(heading)}</h2>{html}</section>" for heading, html in sections)
    text = page(
        f"{title}: {job.noun.partition(' ')[2]}",
        f"<style>\n{shared('pages.css')}</style>",
        f'<main class="scenario">{head}{body}</main>\n<script>\n{shared("report.js")}{shared("ticks.js")}</script>',
    )
    file = Path(output) if output else opened.path / REPORT
    write_bytes(file, text.encode())
    return file


def _results(opened: RunDirectory, kind: str, result: xarray.Dataset, player: bool) -> Iterator[Section]:
    """Yield what a job computed."""
    if player and kind != "run":
        raise UserError("a player shows a run, and this is none; leave it out, or report one of its runs")
    if kind in ("sweep", "starts"):
        yield from _of_sweep(opened, result)
        return
    clock = next((name for name in CLOCKS if result.sizes.get(name, 0) > 1), None)
    if kind == "run" and player:
        yield "Player", framed(play(open_frames(opened.path, "film"))[0].data, opened.scenario().title)
    elif kind == "run" and clock:
        yield "Film", _film(opened)
    numbers = {
        str(name): array
        for name, array in result.data_vars.items()
        if array.dims in ((), (clock,)) and array.dtype.kind in "fiub"
    }
    if kind == "optimization":
        numbers = {name: numbers[name] for name in ("loss", *opened.manifest["request"]["wrt"]) if name in numbers}
    if clock and (over := {name: array for name, array in numbers.items() if array.dims == (clock,)}):
        yield f"Over {clock}", _charts(result[clock], over)
    if objective := opened.manifest["request"].get("objective"):
        value = result.attrs.get("value", "")
        yield "Objective", table(("name", "value"), [(objective, f"{value:.10g}" if value else "over the iterations")])
    if kind == "optimization":
        declared, wrt = opened.scenario().parameters, opened.manifest["request"]["wrt"]
        values = ((name, declared[name].default, result[f"best_{name}"].values[-1].tolist()) for name in wrt)
        best = ((name, _cell(begun), _cell(value), declared[name].unit) for name, begun, value in values)
        yield "Best parameters", table(("parameter", "at the start", "best", "unit"), best)
    if numbers:
        rows = ((n, f"{a.values.ravel()[-1]:.10g}", _unit(a), a.attrs.get("long_name", "")) for n, a in numbers.items())
        yield "Derivatives" if kind == "derivative" else "At the end", table(("name", "value", "unit", "meaning"), rows)


def _film(opened: RunDirectory) -> str:
    """Return the film of a run, within the page."""
    outcome = open_frames(opened.path, "film")
    with tempfile.TemporaryDirectory() as folder:
        try:
            film = draw(outcome, Path(folder) / "film.gif", "gif", FILM, maximum_frames=FRAMES).read_bytes()
        except UserError as error:  # nothing to draw
            return f"<p>{literal(str(error))}</p>"
    return _picture(film, "gif", outcome.scenario.title)


def _picture(data: bytes, kind: str, title: str) -> str:
    encoded = base64.b64encode(data).decode()
    return f'<figure><img src="data:image/{kind};base64,{encoded}" alt="{literal(title)}"></figure>'


def _charts(clock: xarray.DataArray, arrays: Mapping[str, xarray.DataArray]) -> str:
    """Return charts of numbers over time or iterations."""
    chosen = np.unique(np.linspace(0, clock.size - 1, min(clock.size, MOST_POINTS)).round().astype(int))
    series = [{"name": name, "values": _listed(array.values[chosen])} for name, array in arrays.items()]
    data = {"clock": {"name": str(clock.name), "values": _listed(clock.values[chosen])}, "series": series}
    figures = "".join(
        f'<figure class="chart"><figcaption>{literal(_label(name, array))} <output></output></figcaption>'
        f'<canvas tabindex="0" role="img" aria-label="{literal(f"{name} over {clock.name}")}"></canvas></figure>'
        for name, array in arrays.items()
    )
    # No text within the data can end the element.
    embedded = json.dumps(data).replace("<", "\\u003c")
    hint = "<p>Drag to see a part, double-click to see all; arrow keys read the values.</p>"
    return f'{hint}<div class="charts">{figures}</div><script type="application/json" id="data">{embedded}</script>'


def _listed(values: np.ndarray) -> list[float | None]:
    """Return numbers as JSON has them, with ``None`` for those that are not finite."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _unit(array: xarray.DataArray) -> str:
    return shown_unit(str(array.attrs.get("units", "")))


def _label(name: str, array: xarray.DataArray) -> str:
    unit = _unit(array)
    return f"{name} ({unit})" if unit not in ("", "1") else name


def _of_sweep(opened: RunDirectory, result: xarray.Dataset) -> Iterator[Section]:
    """Yield the chart and the members of a sweep, or of an optimization from several starts, objectives first."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            chart = draw_sweep(result, opened.scenario(), Path(folder) / "sweep.png").read_bytes()
            yield "Chart", _picture(chart, "png", "results over the swept parameters")
        except UserError as error:  # nothing to chart
            yield "Chart", f"<p>{literal(str(error))}</p>"
    shape, seeds = result["status"].shape, result["seed"].values
    columns = {name: np.broadcast_to(values[..., None], shape) for name, values in columns_of(result).items()}
    columns |= {"seed": np.broadcast_to(seeds, shape)}
    columns |= {name: array.values for name, array in (objective_arrays(result) | final_numbers(result)).items()}
    columns |= {"status": result["status"].values}
    flat = [values.ravel()[:MOST_ROWS] for values in columns.values()]
    rows = ([_cell(value) for value in row] for row in zip(*flat, strict=True))
    members = result["status"].size
    words = f"<p>The first {MOST_ROWS} of {members}.</p>" if members > MOST_ROWS else ""
    yield "Members", words + table(list(columns), rows, "sorted")


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_cell, value))}]" if count(value) <= MOST_SHOWN else f"[{count(value)} values]"
    return f"{value:.7g}" if isinstance(value, np.number | float) else str(value)


def _circumstances(opened: RunDirectory, scenario: Scenario, result: xarray.Dataset) -> Iterator[Section]:
    """Yield parameters, published numbers, software, devices, and how to compute it again."""
    swept = set(map(str, result.dims)) | set(map(str, result.coords))
    rows = ((name, "swept" if name in swept else value, *words) for name, value, *words in scenario.parameter_rows)
    yield "Parameters", table(PARAMETER_HEAD, rows)
    if scenario.validations:
        checked = (
            (each.words, f"{each.expected:g}", f"{each.tolerance:g}", each.source) for each in scenario.validations
        )
        yield "Published numbers of this scenario", table(("quantity", "expected", "tolerance", "source"), checked)
    manifest = opened.manifest
    began = datetime.datetime.fromtimestamp((opened.path / "manifest.json").stat().st_mtime, datetime.UTC)
    run = scenario.run
    facts = [("steps", str(run.steps)), ("steps per frame", str(run.every)), ("precision", run.precision)]
    facts += [("seed", str(run.seed)), ("began", f"{began:%Y-%m-%d %H:%M} UTC")]
    facts += [("devices", ", ".join(manifest["devices"]))]
    facts += [(name, str(version)) for name, version in manifest["versions"].items()]
    yield "Run, software and devices", table(("", ""), facts)
    saved = f"<p>With the file below saved as {literal(scenario.name)}.toml:</p>"
    yield "Again", saved + code(_call(opened, scenario)) + code(opened.text)


FUNCTIONS = {"sweep": "sweep", "optimization": "optimize", "starts": "optimize", "derivative": "value_and_grad"}


def _call(opened: RunDirectory, scenario: Scenario) -> str:
    """Return the call that does the same work anew from the scenario file, if that is saved under its name."""
    fresh, request = parse_scenario(opened.text, opened.path / SCENARIO), opened.manifest["request"]
    pairs = [(key, vars(fresh.run)[key], value) for key, value in vars(scenario.run).items()]
    pairs += [(name, fresh.parameters[name].default, each.default) for name, each in scenario.parameters.items()]
    pairs += [(f"config.{key}", fresh.config.get(key), value) for key, value in scenario.config.items()]
    options = {key: request[key] for key in ("objective", "method", "seeds", "zip") if request.get(key)}
    options |= {key: value for key, before, value in pairs if before != value}
    plain = [f"{key}={value!r}" for key, value in options.items() if key.isidentifier()]
    dotted = {key: value for key, value in options.items() if not key.isidentifier()}
    places = [repr(f"{scenario.name}.toml"), *(repr(request[key]) for key in ("over", "wrt") if request.get(key))]
    arguments = ", ".join([*places, *plain, *([f"**{dotted!r}"] if dotted else [])])
    return f"simkit.{FUNCTIONS.get(kind_of(opened.kind).report, 'run')}({arguments})"
