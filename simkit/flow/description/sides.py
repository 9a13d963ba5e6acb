"""Domain of a flow described as data: axes, kinds of sides, parts of sides, and the pressure on open ones."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from simkit.core.expressions.scope import Formula
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, within
from simkit.flow.boundary.domain import Domain, PressureOnSides, SidePressure, domain
from simkit.flow.boundary.side_data import BoundaryVelocity, nothing
from simkit.flow.boundary.sides import Side
from simkit.flow.description.formulas import AXES, COMPONENTS, Names, OfTime, Places, arguments_of
from simkit.flow.grid import Axis, Grid, axis_of_faces, bounded_axis, periodic_axis, refined_axis
from simkit.flow.parts import SIDES

ENDS = ("lower", "upper")
# A formula and its value at a time, for the check before a run.
type Timed = tuple[Formula, OfTime]
# A side, or one of its parts, and the condition where it is, as a number: 1 where it holds; None for the rest.
type PartOfSide = tuple[Side, Formula | None]


@dataclasses.dataclass(frozen=True)
class Sides:
    """Sides of a flow described as data.

    Attributes:
        domain: the domain that they bound.
        velocities: formulas of the velocity on them, by (axis, side, component).
        pressures: formulas of the pressure on open ones, by (axis, side).
        parts: the parts of sides of several, by (axis, side), the rest of the side first.
        data: values that sides hold of their own.
    """

    domain: Domain
    velocities: Mapping[tuple[int, int, int], Formula]
    pressures: Mapping[tuple[int, int], Formula]
    parts: Mapping[tuple[int, int], Sequence[PartOfSide]]
    data: Sequence[Timed]


def sides_of(axes: Settings, wall_slope: str, names: Names) -> Sides:
    """Return the sides described by the settings of the axes.

    Args:
        axes: settings of ``x``, ``y`` and ``z``.
        wall_slope: "parabola" or "symmetric".
        names: names that formulas may use.

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    tables = [axes[name] for name in AXES if axes[name] is not None]
    grid = Grid(tuple(map(_axis, tables)))
    # Formulas are evaluated on sides before these are made.
    places = Places(Domain(grid, (None,) * len(tables)))
    velocities, pressures, sides, data = {}, {}, {}, []
    for axis, side, parts in _sides(tables):
        made = [_made_side(part, axis, side, places, names, data) for part in parts]
        conditions = [names.formula(_as_number(part["where"])) for part in parts[1:]]
        sides[axis, side] = list(zip(made, (None, *conditions), strict=True))
        for component, name in enumerate(COMPONENTS[: len(tables)]):
            text = _velocity(parts, name, names)
            if text is not None:
                velocities[axis, side, component] = names.formula(text)
        pressure = parts[0].get("pressure")
        if pressure is not None:
            pressures[axis, side] = names.formula(pressure)
    # Sides of several parts prescribe the velocity on all of them: fluid enters by the side if it does by a part.
    joined = {place: next((s for s, _ in parts if s.enters), parts[0][0]) for place, parts in sides.items()}
    pairs = tuple(None if each["periodic"] else (joined[i, 0], joined[i, 1]) for i, each in enumerate(tables))
    several = {place: parts for place, parts in sides.items() if len(parts) > 1}
    return Sides(domain(grid.axes, pairs, wall_slope), velocities, pressures, several, data)


def _sides(tables: Sequence[Settings]) -> Iterator[tuple[int, int, tuple[Settings, ...]]]:
    """Yield (axis, side, settings of its parts) of the sides of all bounded axes; one part for a whole side."""
    for axis, settings in enumerate(tables):
        for side, end in enumerate(ENDS):
            if settings["periodic"]:
                continue
            if settings[end] is None:
                kinds = ", ".join(SIDES.names())
                raise settings.refuse(end, f"is missing; give one of {kinds}, or {settings.path('periodic')} = true")
            parts = settings[end]
            yield axis, side, parts if isinstance(parts, tuple) else (parts,)


def _made_side(settings: Settings, axis: int, side: int, places: Places, names: Names, data: list[Timed]) -> Side:
    """Return a side or a part of it, after adding its own values to ``data``."""
    kind = SIDES.resolve(settings["kind"])
    declared = declaration_of(kind)

    def value(text: FormulaText) -> OfTime:
        formula = names.formula(text)
        data.append((formula, places.data_of_side(formula, axis, side)))
        return data[-1][1]

    return kind(**arguments_of(settings, declared.keys, declared.values, value))


def _as_number(condition: FormulaText) -> FormulaText:
    return dataclasses.replace(condition, text=f"where({condition.text}, 1, 0)")


def _velocity(parts: Sequence[Settings], name: str, names: Names) -> FormulaText | None:
    """Return the text of one component of the velocity on a side; None where all of its parts are at rest."""
    texts = [part.get(name) for part in parts]
    written = [text for text in texts if text is not None]
    if len(parts) == 1 or not written:
        return texts[0]
    joined = "0"
    for part, text in zip(parts, texts, strict=True):
        value = "0" if text is None else f"({text.text})"
        joined = value if part is parts[0] else f"where({part['where'].text}, {value}, {joined})"
    # Mistakes are marked in the text of the part.
    for text in written:
        names.formula(text)
    tables = tuple(table for text in written for table in text.tables)
    return dataclasses.replace(
        written[0], text=joined, where=" and ".join(text.where for text in written), tables=tables
    )


def check_parts(sides: Sides, places: Places, params: Params, time: jax.Array) -> None:
    """Refuse parts of sides that hold on no face at the start, on all of them, or where another part does.

    Raises:
        UserError: that names the key.
    """
    for (axis, side), parts in sides.parts.items():
        shape = [1 if k == axis else n for k, n in enumerate(places.domain.grid.cells)]
        taken = np.zeros(shape, bool)
        for _, formula in parts[1:]:
            assert formula is not None, "all parts but the first have a condition"
            value = places.of_side(formula, axis, side)(params, time)
            held = np.broadcast_to(np.asarray(value) > 0.5, shape)
            problem = "holds at the center of no face of the side at the start; widen it" if not held.any() else ""
            if (held & taken).any():
                problem = "holds where another part of the side does; make them apart"
            taken = taken | held
            if taken.all():
                problem = problem or "leaves nothing of the rest of the side; narrow it, or write no list"
            if problem:
                raise UserError(f"{formula.where} {problem}", key=formula.where)


def drawn_sides(axes: Settings, sides: Sides, places: Places, params: Params) -> np.ndarray:
    """Return how pictures show the left, right, lower and upper side, of several parts ``"wall to 0.4, inflow"``.

    Args:
        axes: settings of the axes.
        sides: of these axes.
        places: of the domain.
        params: parameters with which parts are where they are drawn.
    """
    drawn = list(sides.domain.drawn_sides())
    for place, (axis, end) in enumerate((axis, end) for axis in (0, 1) for end in (0, 1)):
        side = axes[AXES[axis]][ENDS[end]]
        if isinstance(side, Settings) and "drawn" in side:
            drawn[place] = side["drawn"]
        if (axis, end) in sides.parts:
            drawn[place] = _drawn_parts(sides.parts[axis, end], axis, end, places, params)
    return np.array(drawn)


def _drawn_parts(parts: Sequence[PartOfSide], axis: int, side: int, places: Places, params: Params) -> str:
    """Return the kinds along a side in the plane of pictures, each with its end, as at the start."""
    grid, along = places.domain.grid, 1 - axis
    shape = [1 if k == axis else n for k, n in enumerate(grid.cells)]
    layer = tuple(slice(None) if k == along else n // 2 for k, n in enumerate(shape))
    kinds = np.full(grid.cells[along], parts[0][0].drawn_as, dtype=object)
    for part, formula in parts[1:]:
        assert formula is not None, "all parts but the first have a condition"
        held = np.broadcast_to(np.asarray(places.of_side(formula, axis, side)(params, np.float32(0.0))), shape)[layer]
        kinds[held > 0.5] = part.drawn_as
    changes = np.flatnonzero(kinds[1:] != kinds[:-1])
    ends = [f"{kinds[k]} to {grid.axes[along].faces[k + 1]:.6g}" for k in changes]
    return ", ".join([*ends, kinds[-1]])


def boundary_of(
    formulas: Mapping[tuple[int, int, int], Formula], places: Places
) -> Callable[[Params, Any], BoundaryVelocity] | None:
    """Return the velocity on the sides as a function of parameters and time; None where all are at rest.

    Args:
        formulas: by (axis, side, component).
        places: of the domain.
    """
    values = {which: places.of_side(formula, *which) for which, formula in formulas.items()}

    def boundary(params: Params, time: Any) -> BoundaryVelocity:
        def velocity(axis: int, side: int) -> tuple[Any, ...]:
            return tuple(values.get((axis, side, i), nothing)(params, time) for i in range(len(places.axes)))

        return _on_sides(places.domain, velocity)

    return boundary if formulas else None


def side_pressure_of(formulas: Mapping[tuple[int, int], Formula], places: Places) -> SidePressure | None:
    """Return the pressure on the sides as a function of parameters and time; None where it is zero on all.

    Args:
        formulas: by (axis, side).
        places: of the domain.
    """
    values = {which: places.of_side(formula, *which) for which, formula in formulas.items()}

    def side_pressure(params: Params, time: Any) -> PressureOnSides:
        return _on_sides(places.domain, lambda *side: values.get(side, nothing)(params, time))

    return side_pressure if formulas else None


def _on_sides(domain: Domain, value: Callable[[int, int], Any]) -> Any:
    """Return ``value(axis, side)`` of both sides of each axis; None for a periodic axis."""
    pairs = enumerate(domain.sides)
    return tuple(None if pair is None else (value(axis, 0), value(axis, 1)) for axis, pair in pairs)


def _axis(settings: Settings) -> Axis:
    """Return one axis."""
    way = next(key for key in ("cells", "refined", "faces") if settings[key] is not None)
    start, end = settings["from"], settings["to"]
    if way == "faces":
        return _made(settings, way, axis_of_faces, settings["faces"])
    length = settings["length"] if end is None else end - start
    if length <= 0:
        raise settings.refuse("to", f"= {end:g} is not above 'from' = {start:g}; choose a larger one")
    if settings["periodic"]:
        return _made(settings, way, periodic_axis, settings["cells"], length, start)
    if way == "cells":
        return _made(settings, way, bounded_axis, settings["cells"], length, start, settings["stretching"])
    part = settings["refined"]
    return _made(settings, way, refined_axis, part["cell"], (part["from"], part["to"]), length, part["growth"], start)


def _made(settings: Settings, key: str, make: Callable[..., Axis], *arguments: Any) -> Axis:
    with within(f"{settings.path(key)}: "):
        return make(*arguments)
