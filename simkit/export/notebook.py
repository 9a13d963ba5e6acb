"""Notebooks: runs, sweeps, optimizations, derivatives, scenarios and simulations as HTML, small and soon drawn."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.core.parameter import count, shown_bounds
from simkit.errors import UserError
from simkit.export.markup import literal, table
from simkit.jobs.sweep_results import failures_of, is_failure
from simkit.scenario.scenario import PARAMETER_HEAD, Scenario

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation
    from simkit.export.pictures import Drawing
    from simkit.jobs.differentiation import ValueAndDerivative
    from simkit.jobs.results import Origin, ResultDataset

# Seconds within which a film is drawn, and its pixels. A chart of more members, or more panels, would take longer.
SECONDS, FILM = 1.5, 480 * 270
MOST_MEMBERS, MOST_PANELS = 10_000, 6
# Rows of a table, letters of a text, and bytes of a picture.
MOST_ROWS, MOST_LETTERS, MOST_BYTES = 40, 300, 1_500_000

STYLE = """<style>
.simkit { line-height: 1.45; max-width: 60rem; }
.simkit p { margin: .2rem 0 .5rem; }
.simkit figure { margin: .5rem 0; }
.simkit img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.simkit .scroll { overflow-x: auto; }
.simkit table { border-collapse: collapse; font-size: .92em; margin: .3rem 0; }
.simkit th, .simkit td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.simkit summary { cursor: pointer; opacity: .8; }
.simkit mark { background: #b3261e; color: #fff; padding: 0 .4em; border-radius: 4px; }
</style>"""


def result(dataset: "ResultDataset") -> str:
    """Return what a job computed: pictures, its status in words, numbers and parameters.

    Args:
        dataset: its result.
    """
    origin = dataset.origin
    assert origin is not None  # a part of a result shows itself as xarray does
    parts = {"run": _run, "optimization": _optimization, "derivative": _derivative}.get(origin.report, _sweep)
    title = _title(origin.scenario.title or origin.scenario.name)
    return _block(title, *parts(dataset, origin), _folded("parameters", _parameters(origin.scenario, dataset)))


def _run(dataset: "ResultDataset", origin: "Origin") -> Iterable[str]:
    """Yield the status of a run, its film, and the last values of its diagnostics."""
    from simkit.export.pictures import film_within  # tables are shown without Matplotlib

    outcome = origin.result
    yield _words(outcome.message, bool(outcome.failed))
    try:
        yield _figure(*film_within(dataset, SECONDS, FILM))
    except UserError as error:  # there is nothing to draw
        yield _words(str(error))
    last = outcome.diagnostics
    rows = (
        (name, f"{value:.6g}", _attribute(dataset, name, "units"), _attribute(dataset, name, "long_name"))
        for name, value in last.items()
        if np.ndim(value) == 0
    )
    yield _folded("diagnostics at the end", _table(("name", "value", "unit", "meaning"), rows))


def _optimization(dataset: "ResultDataset", origin: "Origin") -> Iterable[str]:
    """Yield the status of an optimization, the chart of its iterations, and parameters before and after."""
    from simkit.export.pictures import chart_of_iterations

    outcome, scenario = origin.result, origin.scenario
    yield _words(outcome.message, bool(outcome.failed))
    yield _figure(chart_of_iterations(dataset))
    best, loss = outcome.best, dataset["loss"].values
    rows = [(origin.objective, f"{loss[0]:.6g}", f"{float(dataset['best_loss'].values[-1]):.6g}", "")]
    for name in origin.wrt:
        parameter = scenario.parameters[name]
        rows.append((name, _number(parameter.default), _number(best[name]), shown_bounds(parameter.bounds)))
    yield _table(("", "start", "best", "bounds"), rows)


def _sweep(dataset: "ResultDataset", origin: "Origin") -> Iterable[str]:
    """Yield how the members of a sweep ended, and the chart over the swept parameters."""
    from simkit.export.pictures import chart_of_sweep

    status = dataset["status"]
    axes = ", ".join(f"{axis} ({status.sizes[axis]})" for axis in status.dims if status.sizes[axis] > 1)
    # Status words of a result that stays in its chunks are read from all of them.
    is_small = status.size <= MOST_MEMBERS and "preferred_chunks" not in status.encoding
    words, failed = f"{status.size} member{'s' * (status.size != 1)}{f' over {axes}' * bool(axes)}", False
    if is_small:
        names, numbers = np.unique(status.values, return_counts=True)
        ends = (f"{number} {str(name).replace('_', ' ')}" for name, number in zip(names, numbers, strict=True))
        failed = bool(is_failure(status.values, failures_of(dataset)).any())
        words = f"{words}: {', '.join(ends)}"
    yield _words(words, failed)
    try:
        if not is_small:
            raise UserError(
                f"no chart is drawn here of over {MOST_MEMBERS} members or arrays on disk; simkit.picture draws it"
            )
        yield _figure(chart_of_sweep(dataset, MOST_PANELS))
    except UserError as error:
        yield _words(str(error))


def _derivative(dataset: "ResultDataset", origin: "Origin") -> Iterable[str]:
    """Yield a stored derivative."""
    stored = origin.result
    slopes = {name: dataset[name].values for name in origin.wrt}
    yield from _slopes(origin.scenario, origin.objective, stored.value, slopes, stored.note)


def derivative(value: "ValueAndDerivative") -> str:
    """Return an objective's value and derivatives, beside central differences where they were computed.

    Args:
        value: of `simkit.value_and_grad`.
    """
    scenario, checked = value.scenario, value.check
    parts = _slopes(scenario, value.objective, value.value, value.derivative, value.note, checked)
    return _block(_title(scenario.title or scenario.name), *parts, _folded("parameters", _parameters(scenario)))


CHECKED = ("central difference", "its error", "verdict")


def _slopes(
    scenario: Scenario,
    objective: str,
    value: float,
    slopes: Mapping[str, np.ndarray],
    note: str,
    checked: Any = None,
) -> Iterable[str]:
    """Yield the value of an objective and a table of its derivatives, the one that counts most with the longest bar."""
    settings = scenario.objectives.get(objective)
    about = ", ".join(filter(None, (settings.doc if settings else "", scenario.run.precision)))
    yield f"<p><bdi>{_short(objective)}</bdi> = <strong>{value:.8g}</strong> ({_short(about)})</p>"
    if note:
        yield _words(note, True)
    of_one = {name: 0.01 * _inner(scenario.parameters[name].default, slope) for name, slope in slopes.items()}
    largest = max((abs(change) for change in of_one.values() if np.isfinite(change)), default=0.0) or 1.0
    rows = []
    for name, slope in list(slopes.items())[:MOST_ROWS]:
        parameter = scenario.parameters[name]
        row = [name, _number(parameter.default), parameter.unit, _number(slope), f"{of_one[name]:+.3g}"]
        if checked is not None:
            row += [_number(checked.difference[name]), f"{np.max(checked.error[name]):.1g}", checked.verdict[name]]
        rows.append((row, round(100 * abs(of_one[name]) / largest) if np.isfinite(of_one[name]) else 0))
    head = ["parameter", "value", "unit", "derivative", "change for +1 %", *(CHECKED if checked is not None else ())]
    yield _table(head, (row for row, _ in rows), [width for _, width in rows])
    if len(slopes) > MOST_ROWS:
        yield _words(f"and {len(slopes) - MOST_ROWS} more")


def scenario(value: Scenario) -> str:
    """Return title, summary, parameters and objectives of a scenario.

    Args:
        value: the scenario.
    """
    run = value.run
    settings = f"{value.simulation}; {run.steps} steps, {run.precision}"
    objectives = ((name, each.goal, each.doc) for name, each in value.objectives.items())
    return _block(
        f"{_title(value.title or value.name)} <code>{_short(value.name)}</code>",
        _words(value.summary),
        f"<p><small>{_short(settings)}</small></p>",
        _parameters(value),
        _folded("objectives", _table(("name", "goal", "meaning"), objectives)) if value.objectives else "",
    )


def simulation(value: "Simulation") -> str:
    """Return parameters and quantities of a simulation.

    Args:
        value: the simulation.
    """
    leaves, rows = paths.leaves(value.params), []
    for name, number in list(leaves.items())[: MOST_ROWS + 1]:
        declared = value.parameters.get(name)
        about = (declared.unit, shown_bounds(declared.bounds), declared.doc) if declared else ("", "", "")
        rows.append((name, _number(number), *about))
    quantities = ((name, each.unit, each.doc) for name, each in value.quantities.items())
    more = _words(f"and {len(leaves) - MOST_ROWS} more") if len(leaves) > MOST_ROWS else ""
    folded = _folded("quantities", _table(("name", "unit", "meaning"), quantities)) if value.quantities else ""
    return _block("<strong>Simulation</strong>", _table(PARAMETER_HEAD, rows), more, folded)


def _block(*parts: str) -> str:
    return f'{STYLE}<div class="simkit">{"".join(parts)}</div>'


def _title(title: str) -> str:
    return f"<strong><bdi>{_short(title)}</bdi></strong>"


def _words(text: str, is_failure: bool = False) -> str:
    mark = "<mark>!</mark> " if is_failure else ""
    return f"<p>{mark}<bdi>{_short(text)}</bdi></p>" if text else ""


def _short(text: Any) -> str:
    """Return a text as HTML that shows it literally, cut to `MOST_LETTERS`."""
    text = str(text)
    return literal(text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}\N{HORIZONTAL ELLIPSIS}")


def _folded(name: str, content: str) -> str:
    return f"<details><summary>{literal(name)}</summary>{content}</details>"


def _table(head: Sequence[str], rows: Iterable[Iterable[Any]], bars: Sequence[int] = ()) -> str:
    """Return a table of at most `MOST_ROWS` rows with cut texts, and bars of lengths in percent in a last column."""
    cells = [[str(cell)[:MOST_LETTERS] for cell in row] for _, row in zip(range(MOST_ROWS), rows, strict=False)]
    text = table([*head, *([""] if bars else [])], [[*row, *([""] if bars else [])] for row in cells])
    for length in bars:
        style = f"width:{0.06 * length:.2f}em;height:.7em;background:#2a78d6;border-radius:2px"
        text = text.replace("<td></td></tr>", f'<td><div style="{style}"></div></td></tr>', 1)
    return text


def _parameters(scenario: Scenario, dataset: Any = None) -> str:
    swept = {*map(str, dataset.dims), *map(str, dataset.coords)} if dataset is not None else set[str]()
    rows = ((name, "swept" if name in swept else value, *words) for name, value, *words in scenario.parameter_rows)
    return _table(PARAMETER_HEAD, rows)


def _number(value: Any) -> str:
    """Return a number, or how many an array has."""
    array = np.asarray(value)
    if array.dtype == object or array.size != 1:
        return f"[{count(value) if isinstance(value, tuple | list) else array.size} values]"
    return f"{array.item():.6g}"


def _inner(value: Any, slope: Any) -> float:
    return float(np.sum(np.asarray(value, float) * np.asarray(slope, float)))


def _attribute(dataset: "ResultDataset", name: str, attribute: str) -> str:
    place = next((each for each in (name, f"diagnosed_{name}") if each in dataset), "")
    return str(dataset[place].attrs.get(attribute, "")) if place else ""


def _figure(drawing: "Drawing", still: "Drawing | None" = None) -> str:
    """Return a film or picture; a still one for those who asked for less motion, or where a film is too large."""
    if still and len(drawing.data) > MOST_BYTES:
        drawing, still = still, None
    image = drawing._repr_html_()
    if still:
        source = f"data:image/png;base64,{base64.b64encode(still.data).decode()}"
        image = f'<picture><source media="(prefers-reduced-motion: reduce)" srcset="{source}">{image}</picture>'
    return f"<figure>{image}</figure>"
