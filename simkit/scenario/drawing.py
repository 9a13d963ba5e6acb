"""The table ``[render]``: keys that every picture takes, and views, which declare theirs and what they can draw."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

from simkit.core.parameter import POSITIVE
from simkit.core.parts import Choice, Declaration, PartTable, declaration_of
from simkit.core.settings import Rule, Setting, Settings, interval, line, number, table, unwrapped
from simkit.core.settings.setting import check_table
from simkit.errors import UserError, known
from simkit.plugins import Registry
from simkit.scenario.checks import LONGEST_LABEL
from simkit.scenario.registry import VIEWS
from simkit.scenario.sections import RenderSettings

# Name in place of a drawn quantity for a simulation made in Python without any.
NOTHING = "nothing"
# In place of settings with a mistake.
UNKNOWN = RenderSettings("", "")
CLOCKS = ("time", "iteration")


@dataclasses.dataclass(frozen=True)
class Frame:
    """What one frame holds, as arrays or their shapes.

    Attributes:
        observed: arrays by name.
        diagnosed: scalars by name.
        coordinates: shape of each coordinate, by name.
    """

    observed: Mapping[str, Any]
    diagnosed: Mapping[str, Any]
    coordinates: Mapping[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class View(Declaration):
    """What a view declares besides its keys.

    Attributes:
        source: arrays that it draws: observed ones, diagnostics, or either.
        arrays: names of further observed arrays that it needs.
        axes: number of axes of the quantity in one frame; ``None`` for any.
        likely: ``frame -> names`` of the quantities that it could draw, the likeliest first; none where the view is
            not one that a simulation gets by default.
    """

    source: Literal["observed", "diagnosed", "either"] = "either"
    arrays: tuple[str, ...] = ()
    axes: int | None = None
    likely: Callable[[Frame], list[str]] = lambda frame: []

    def drawn(self, observed: Mapping[str, Any], diagnosed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arrays of which the view draws one.

        Args:
            observed: observed arrays by name.
            diagnosed: diagnostics by name.
        """
        return {"observed": observed, "diagnosed": diagnosed, "either": {**diagnosed, **observed}}[self.source]


def view[Painter: Callable[..., Any]](
    *, keys: Mapping[str, Setting], rules: tuple[Rule, ...] = (), **drawn: Any
) -> Callable[[Painter], Painter]:
    """Return a decorator that attaches the declaration of a view to the function or class that makes its painter.

    Args:
        keys: its keys of ``[render]``.
        rules: as for `simkit.core.parts.Declaration`.
        **drawn: other attributes of `View`.
    """

    def mark(painter: Painter) -> Painter:
        painter.declaration = View(keys, rules=rules, **drawn)  # type: ignore[attr-defined]
        return painter

    return mark


def view_of(name: str) -> View:
    """Return the declaration of a view; one without a declaration draws any array and has no keys of its own.

    Args:
        name: of the view.
    """
    declared = declaration_of(VIEWS.resolve(name))
    return declared if isinstance(declared, View) else View(declared.keys, rules=declared.rules)


COMMON = {
    "quantity": line("array shown as color; for a chart, the diagnostic drawn over time", longest=LONGEST_LABEL),
    "label": line("text of the color bar; by default the quantity's name", "", LONGEST_LABEL),
    "unit": line("unit of the quantity", "1", LONGEST_LABEL),
    "limits": interval("lowest and highest color value, or ends of the axis; by default those of the data", None),
    "frames_per_second": number("speed of the animation", 20.0, (POSITIVE[0], 1000.0)),
}


def render_table(views: Registry = VIEWS) -> PartTable:
    """Return the declaration of ``[render]``.

    Args:
        views: registry of the views.
    """
    return PartTable((Choice(views, "view", "how frames are drawn"),), COMMON)


def render_settings(entries: Mapping[str, Any], where: str = "render") -> RenderSettings:
    """Return the settings of a table ``[render]``, every key checked against the declaration of its view.

    Args:
        entries: the table.
        where: its path, for messages.

    Raises:
        UserError: for all keys that are unknown, missing, without effect on the view, or have a wrong value.
    """
    check_table(entries, where, lambda: UNKNOWN)
    entries = {key: unwrapped(value, key) for key, value in entries.items()}
    # `simkit list` reads files before it needs to know which packages are installed.
    is_shipped = entries.get("view") in tuple(VIEWS.own)
    try:
        return _settings_of(render_table(VIEWS.shipped() if is_shipped else VIEWS).read(entries, where))
    except UserError as error:
        is_whole = error.partial and all(error.partial.get(key) for key in ("view", "quantity"))
        error.partial = _settings_of(error.partial) if is_whole else UNKNOWN
        raise


def _settings_of(table: Settings) -> RenderSettings:
    values = dict(table)
    common = {key: values.pop(key) for key in ("view", *COMMON)}
    return RenderSettings(**common, options=values)


RENDER = Setting(
    "a table",
    "drawing of the frames",
    render_settings,
    is_required=True,
    inner=lambda: render_table().every_key(),
    describe=lambda: render_table().schema(),
    form="table",
    example=UNKNOWN,
)


def window(doc: str) -> Setting:
    """Return the setting of the drawn part of a plane: a table with a pair for each axis, ``x`` and ``y``.

    Args:
        doc: its meaning.
    """
    axes = table(doc, {axis: interval(f"ends along {axis}", None) for axis in "xy"}, {})

    def check(value: Any, where: str) -> dict[str, tuple[float, float]]:
        return {axis: ends for axis, ends in axes.check(value, where).items() if ends is not None}

    return dataclasses.replace(axes, check=check)


def check_view(
    settings: RenderSettings, observed: Mapping[str, Any], diagnosed: Mapping[str, Any], owner: str, file: str
) -> None:
    """Refuse a view without its observed arrays, or of a quantity that it cannot draw.

    Args:
        settings: of the picture.
        observed: observed arrays of one frame, by name.
        diagnosed: diagnostics of one frame, by name.
        owner: name of the simulation, for messages.
        file: name of the scenario file, for messages.

    Raises:
        UserError: that names what is missing, and the quantities that there are.
    """
    declared, name = view_of(settings.view), settings.quantity
    if missing := [each for each in declared.arrays if each not in observed]:
        raise UserError(
            f"{file}: render.view = '{settings.view}' needs the observed array '{missing[0]}', which {owner} does not "
            "have; choose another view",
            key="render.view",
        )
    arrays = declared.drawn(observed, diagnosed)
    if name == NOTHING and not arrays:
        return  # it can run; drawing is refused later
    known(name, arrays, f"{file}: render.quantity")
    if declared.axes not in (None, arrays[name].ndim):
        raise UserError(
            f"{file}: render.quantity = '{name}' has {arrays[name].ndim} axes; the view '{settings.view}' draws arrays "
            f"with {declared.axes}",
            key="render.quantity",
        )


def likely_view(frame: Frame, view: str | None = None, quantity: str | None = None) -> tuple[str, str]:
    """Return a view and the quantity that it draws: the first view of simkit for which a frame has what it needs.

    Args:
        frame: arrays or their shapes; without any that could be drawn, the quantity is `NOTHING`.
        view: the view, if given.
        quantity: the drawn quantity, if given.
    """
    names = (view,) if view in VIEWS.names() else VIEWS.own
    possible = {}
    for each in names:
        declared = view_of(each)
        has_arrays = all(name in frame.observed for name in declared.arrays)
        possible[each] = declared.likely(frame) if has_arrays else []
    view = view or next((each for each, quantities in possible.items() if quantities), [*names][-1])
    return view, quantity or next(iter(possible.get(view, ())), NOTHING)
