"""Domain of a flow described as data: axes, kinds of sides, parts of sides, and the pressure on open ones."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from simkit.core.expressions.evaluation import expression
from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain, PressureOnSides, SidePressure, domain
from simkit.flow.boundary.side_data import BoundaryVelocity
from simkit.flow.boundary.sides import SIDES
from simkit.flow.description.formulas import AXES, COMPONENTS, TIME, Places
from simkit.flow.grid import Axis, axis_of_faces, bounded_axis, periodic_axis, refined_axis

PARTS = ("wall", "inflow")
# Settings of a part: its kind, its table, and the path of its key.
type Part = tuple[str, Mapping[str, Any], str]
# Conditions of the parts of a side, as numbers: 1 where they hold and 0 elsewhere.
type Conditions = dict[tuple[int, int], list[Formula]]


def parts_of(settings: Any, where: str) -> list[Part]:
    """Return the parts of a side; one for a side that is a word or a table.

    Args:
        settings: the setting of the side.
        where: path of its key.

    Raises:
        UserError: if several are not walls and inflows, the first of them has a condition, or another has none.
    """
    entries = settings if isinstance(settings, tuple) else (settings,)
    found: list[Part] = []
    for index, one in enumerate(entries):
        path = f"{where}[{index}]" if isinstance(settings, tuple) else where
        given: Mapping[str, Any] = one if isinstance(one, Settings) else {}
        found.append((one["kind"] if isinstance(one, Settings) else one, given, path))
    if not isinstance(settings, tuple):
        return found
    if len(found) < 2:
        raise UserError(f"{where} is a list of {len(found)}; write the rest of the side and a part of it, or no list")
    for index, (kind, given, path) in enumerate(found):
        if kind not in PARTS:
            raise UserError(
                f"{path} is of kind '{kind}', which can be no part of a side; parts are of kind {' and '.join(PARTS)}"
            )
        if given.get("pressure") is not None:
            raise UserError(f"{path}.pressure is given, and a side of kind '{kind}' does not take it; remove it")
        if "drawn" in getattr(given, "given", ()):
            raise UserError(f"{path}.drawn is given, and pictures show a side as one; remove it")
        has_condition = given.get("where") is not None
        if has_condition != bool(index):
            raise UserError(
                f"{path}.where is {'given' if has_condition else 'missing'}; the first of the list is the rest of the "
                "side, and each of the others says where it is"
            )
    return found


def velocity_of(
    parts: list[Part], component: int, through: bool, scope: Scope, names: tuple[str, ...]
) -> Formula | None:
    """Return the formula of one component of the velocity on a side of several parts; None where all are at rest.

    Args:
        parts: of the side.
        component: which one.
        through: whether it passes the side.
        scope: of formulas.
        names: what they may take besides parameters: coordinates and the time.

    Raises:
        UserError: if an inflow has no velocity through the side, or a wall has one.
    """
    name, text, written = COMPONENTS[component], "0", []
    for kind, given, path in parts:
        said = given.get(name)
        if through and kind == "wall" and said is not None:
            raise UserError(f"{path}.{name} is given, and a wall lets nothing pass; remove it, or make it an 'inflow'")
        if through and kind == "inflow" and said is None:
            raise UserError(f"{path}.{name} is missing; give the velocity with which the flow comes in there")
        if said is not None:
            scope.formula(said, names)
            written.append(f"{path}.{name}")
        value = "0" if said is None else f"({said.text})"
        text = value if given.get("where") is None else f"where({given['where'].text}, {value}, {text})"
    return scope.formula(FormulaText(text, " and ".join(written)), names) if written else None


def conditions_of(parts: list[Part], scope: Scope, names: tuple[str, ...]) -> list[Formula]:
    """Return the conditions of all parts but the first, as numbers."""
    said, known = [given["where"] for _, given, _ in parts[1:]], {*scope.parameters, *scope.derived, *names}
    for one in said:
        expression(one.text, one.where, known, is_condition=True)
    return [scope.formula(FormulaText(f"where({one.text}, 1, 0)", one.where), names) for one in said]


def check_parts(conditions: Conditions, places: Places, params: Params, time: jax.Array) -> None:
    """Refuse parts of sides that hold on no face at the start, on all of them, or where another part does.

    Raises:
        UserError: that names the key.
    """
    for (axis, side), formulas in conditions.items():
        shape = [1 if k == axis else n for k, n in enumerate(places.domain.grid.cells)]
        taken = np.zeros(shape, bool)
        given = places.on_side(axis, side, None, params)
        for formula in formulas:
            held = np.broadcast_to(np.asarray(formula.on(places.axes, params, **given, time=time)) > 0.5, shape)
            if not held.any():
                raise UserError(f"{formula.where} holds at the center of no face of the side at the start; widen it")
            if (held & taken).any():
                raise UserError(f"{formula.where} holds where another part of the side does; make them apart")
            taken = taken | held
        if taken.all():
            raise UserError(f"{formulas[-1].where} leaves nothing of the rest of the side; narrow it, or write no list")


ENDS = ("lower", "upper")
type OnSides = dict[tuple[int, int, int], Formula]


def built_domain(axes: Settings, wall_slope: str) -> Domain:
    """Return the domain described by the settings of its axes.

    Args:
        axes: settings of ``x``, ``y`` and ``z``.
        wall_slope: "parabola" or "symmetric".

    Raises:
        UserError: if settings contradict each other; names the key.
    """
    for name in "xy":
        if axes[name] is None:
            raise UserError(
                f"{axes.path(name)} is missing; give its cells and where it ends, a flow has two axes or three"
            )
    settings = [axes[name] for name in AXES if axes[name] is not None]
    for one in settings:
        for end in ENDS:
            if one["periodic"] and one[end] is not None:
                raise one.refuse(end, "is given, and the axis is periodic; remove it, or 'periodic'")
    pairs = [None if one["periodic"] else (kind_of(one, "lower"), kind_of(one, "upper")) for one in settings]
    _check_passage(pairs, axes)
    return domain(tuple(map(_axis, settings)), tuple(pairs), wall_slope)


def velocities_on_sides(axes: Settings, scope: Scope, dimension: int) -> OnSides:
    """Return the formulas of the velocity on sides by (axis, side, component).

    Args:
        axes: settings of the axes.
        scope: of formulas.
        dimension: number of axes.

    Raises:
        UserError: if a side is given a velocity that its kind does not use, or an inflow has no normal velocity.
    """
    found: OnSides = {}
    for axis in range(dimension):
        one = axes[AXES[axis]]
        for side, end in enumerate(ENDS):
            if one["periodic"]:
                continue
            names = (*AXES[:dimension], TIME)
            if isinstance(one[end], tuple):
                parts = parts_of(one[end], one.path(end))
                _refuse_along_z(parts, dimension)
                conditions_of(parts, scope, names)
                for component in range(dimension):
                    formula = velocity_of(parts, component, component == axis, scope, names)
                    if formula is not None:
                        found[axis, side, component] = formula
                continue
            kind, given = SIDES[kind_of(one, end)], one[end] if isinstance(one[end], Settings) else {}
            if kind.drawn_as != "wall" and "drawn" in getattr(given, "given", ()):
                raise UserError(
                    f"{one.path(end)}.drawn is given, and a side of kind '{kind.kind}' is no wall; remove it"
                )
            for component, name in enumerate(COMPONENTS):
                said = given.get(name)
                where = f"{one.path(end)}.{name}"
                if said is None:
                    if kind.enters and component == axis:
                        raise UserError(f"{where} is missing; give the velocity with which the flow comes in there")
                    continue
                if component >= dimension:
                    raise UserError(f"{where} is a velocity along z, and the flow is plane; remove it, or give axes.z")
                if not (kind.enters if component == axis else kind.takes_along):
                    remedy = " or make the side an 'inflow'" if component == axis else ""
                    raise UserError(
                        f"{where} is given, and a side of kind '{kind.kind}' does not take it; remove it{remedy}"
                    )
                found[axis, side, component] = scope.formula(said, names)
    return found


def drawn_sides(axes: Settings, domain: Domain) -> np.ndarray:
    """Return how pictures show the left, right, lower and upper side.

    Args:
        axes: settings of the axes.
        domain: the domain of these axes.
    """
    drawn = domain.drawn_sides()
    for place, (axis, end) in enumerate((axis, end) for axis in AXES[:2] for end in ENDS):
        side = axes[axis][end]
        if drawn[place] == "wall" and isinstance(side, Settings):
            drawn[place] = side["drawn"]
    return drawn


def boundary_of(formulas: Mapping, places: Places) -> Callable[[Params, Any], BoundaryVelocity] | None:
    """Return the velocity on the sides as a function of parameters and time; None where all are at rest.

    Args:
        formulas: by (axis, side, component).
        places: of the domain.
    """
    if not formulas:
        return None
    dimension = len(places.axes)

    def value(axis: int, side: int, component: int, params: Params, time: Any) -> Any:
        formula = formulas.get((axis, side, component))
        if formula is None:
            return 0.0
        given = places.on_side(axis, side, component, params)
        return formula.on(places.axes, params, **given, time=time)

    def boundary(params: Params, time: Any) -> BoundaryVelocity:
        return tuple(
            None
            if pair is None
            else tuple(tuple(value(axis, side, i, params, time) for i in range(dimension)) for side in (0, 1))
            for axis, pair in enumerate(places.domain.sides)
        )  # type: ignore[return-value]

    return boundary


def _axis(settings: Settings) -> Axis:
    """Return one axis."""
    ways = [key for key in ("cells", "refined", "faces") if settings[key] is not None]
    if len(ways) != 1:
        given = f"{' and '.join(ways)} are given" if ways else "nothing says its cells"
        raise UserError(f"{settings.where}: {given}; give one of cells, refined and faces")
    if settings["faces"] is not None:
        for key in ("from", "to", "length", "stretching", "periodic"):
            if key in settings.given:
                raise settings.refuse(key, "is given beside faces, which fix all cells; remove it")
        return _made(settings, "faces", axis_of_faces, settings["faces"])
    start = settings["from"]
    if (settings["to"] is None) == (settings["length"] is None):
        raise UserError(f"{settings.where}: give either where the axis ends, 'to', or its 'length'")
    length = settings["length"] if settings["to"] is None else settings["to"] - start
    if length <= 0:
        raise settings.refuse("to", f"= {settings['to']:g} is not above 'from' = {start:g}; choose a larger one")
    if settings["periodic"]:
        for key in ("stretching", "refined"):
            if settings[key]:
                raise settings.refuse(key, "is given, and cells of a periodic axis are equal; remove it")
        return _made(settings, "cells", periodic_axis, settings["cells"], length, start)
    if settings["refined"] is None:
        return _made(settings, "cells", bounded_axis, settings["cells"], length, start, settings["stretching"])
    if settings["stretching"]:
        raise settings.refuse("stretching", "is given beside refined; remove one of them")
    part = settings["refined"]
    return _made(
        settings, "refined", refined_axis, part["cell"], (part["from"], part["to"]), length, part["growth"], start
    )


def _made(settings: Settings, key: str, make: Callable[..., Axis], *arguments: Any) -> Axis:
    try:
        return make(*arguments)
    except UserError as error:
        raise UserError(f"{settings.path(key)}: {error}") from None


def kind_of(settings: Settings, end: str) -> str:
    """Return the kind of one side of a bounded axis."""
    if settings[end] is None:
        raise settings.refuse(end, f"is missing; give one of {', '.join(SIDES)}, or {settings.path('periodic')} = true")
    kinds = [kind for kind, *_ in parts_of(settings[end], settings.path(end))]
    return "inflow" if "inflow" in kinds else kinds[0]


def conditions_on_sides(axes: Settings, scope: Scope, dimension: int) -> Conditions:
    """Return the formulas of where the parts of a side are, for sides of several parts, by (axis, side).

    Args:
        axes: settings of the axes.
        scope: of formulas.
        dimension: number of axes.

    Raises:
        UserError: if a condition takes a name that is not known there.
    """
    return {
        (axis, side): conditions_of(parts_of(settings, axes[AXES[axis]].path(end)), scope, (*AXES[:dimension], TIME))
        for axis in range(dimension)
        for side, end in enumerate(ENDS)
        if isinstance(settings := axes[AXES[axis]][end], tuple)
    }


def _refuse_along_z(parts: list[Part], dimension: int) -> None:
    for _, given, path in parts:
        if dimension == 2 and given.get("w") is not None:
            raise UserError(f"{path}.w is a velocity along z, and the flow is plane; remove it, or give axes.z")


def _check_passage(pairs: list[Any], axes: Settings) -> None:
    """Refuse a flow in without a way out, the reverse, and an outflow beside a side that gives the pressure."""
    by_kind = {
        kind: [
            axes.path(f"{AXES[i]}.{end}")
            for i, pair in enumerate(pairs)
            for end, k in zip(ENDS, pair or (), strict=False)
            if k == kind
        ]
        for kind in ("inflow", "outflow", "pressure")
    }
    if by_kind["pressure"]:
        if by_kind["outflow"]:
            raise UserError(
                f"{by_kind['outflow'][0]} is an outflow, and {by_kind['pressure'][0]} gives the pressure: how much "
                "leaves through each is not said; make both 'pressure' sides"
            )
        return
    for kind, other in (("inflow", "outflow"), ("outflow", "inflow")):
        # Of several inflows some may lead out.
        if by_kind[kind] and not by_kind[other] and (kind == "outflow" or len(by_kind[kind]) == 1):
            raise UserError(
                f"{by_kind[kind][0]} is an {kind}, and there is no {other}; make another side an "
                f"'{other}' or a 'pressure' side"
            )


def pressures_on_sides(axes: Settings, scope: Scope, dimension: int) -> dict[tuple[int, int], Formula]:
    """Return the formulas of the pressure on open sides by (axis, side); without a formula the pressure is zero.

    Args:
        axes: settings of the axes.
        scope: of formulas.
        dimension: number of axes.

    Raises:
        UserError: if a side that is not open gives one.
    """
    found = {}
    for axis in range(dimension):
        one = axes[AXES[axis]]
        for side, end in enumerate(ENDS):
            said = one[end]["pressure"] if isinstance(one[end], Settings) else None
            if said is None:
                continue
            if not SIDES[kind_of(one, end)].gives_pressure:
                raise UserError(
                    f"{one.path(end)}.pressure is given, and a side of kind '{kind_of(one, end)}' does not take it; "
                    "remove it, or make the side a 'pressure' side"
                )
            found[axis, side] = scope.formula(said, (*AXES[:dimension], TIME))
    return found


def side_pressure_of(formulas: Mapping[tuple[int, int], Formula], places: Places) -> SidePressure | None:
    """Return the pressure on the sides as a function of parameters and time; None where it is zero on all.

    Args:
        formulas: by (axis, side).
        places: of the domain.
    """
    if not formulas:
        return None

    def value(axis: int, side: int, params: Params, time: Any) -> Any:
        formula = formulas.get((axis, side))
        if formula is None:
            return 0.0
        return formula.on(places.axes, params, **places.on_side(axis, side, None, params), time=time)

    def side_pressure(params: Params, time: Any) -> PressureOnSides:
        return tuple(
            None if pair is None else (value(axis, 0, params, time), value(axis, 1, params, time))
            for axis, pair in enumerate(places.domain.sides)
        )

    return side_pressure
