"""Pressure on the open sides of a flow described as data."""

from collections.abc import Mapping
from typing import Any

from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.pressure_sides import PressureOnSides, SidePressure
from simkit.flow.boundary.sides import SIDES
from simkit.flow.composed.places import AXES, TIME, Places
from simkit.flow.composed.sides import ENDS, kind_of


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
