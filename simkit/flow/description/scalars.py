"""Scalars of a flow described as data."""

from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.scope import Formula, Scope
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.boundary.side_data import SideValues
from simkit.flow.description.formulas import AXES, TIME, Places
from simkit.flow.description.sides import ENDS
from simkit.flow.grid import Velocity
from simkit.flow.scalar import TransportedScalar

INSULATED = "insulated"
# The kind of a side, and the formula of its value or flux; None for an insulated side.
type End = tuple[str, Formula | None]


class ScalarFormulas:
    """Formulas of one scalar.

    Attributes:
        ends: kind and formula of the lower and upper side of each axis; None for a periodic axis.
        diffusivity: formula of parameters.
        initial: formula of the coordinates.
        source: formula of coordinates, time, velocity and scalars; or None.
    """

    def __init__(self, settings: Settings, scope: Scope, places: Places, names: tuple[str, ...]) -> None:
        """Check the settings of one scalar.

        Args:
            settings: its settings.
            scope: of formulas.
            places: of the domain.
            names: names that the source may use besides parameters.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self.settings = settings
        self.ends = tuple(_ends(settings, axis, scope, places) for axis in range(len(places.axes)))
        for name in AXES[len(places.axes) :]:
            if settings["sides"].given & {name}:
                raise settings["sides"].refuse(name, "is given, and the flow is plane; remove it, or give axes.z")
        self.diffusivity = scope.formula(settings["diffusivity"])
        self.initial = scope.formula(settings["initial"], places.axes)
        self.source = None if settings["source"] is None else scope.formula(settings["source"], names)

    def start(self, places: Places, params: Params) -> jax.Array:
        """Return the initial values at the cell centers."""
        field = self.initial.on(places.axes, params, **places.coordinates(None, params))
        return jnp.broadcast_to(field, places.domain.grid.cells)


def carried_scalar(name: str, one: ScalarFormulas, places: Places) -> TransportedScalar:
    """Return the transported scalar that the equations take.

    Args:
        name: its name.
        one: its formulas.
        places: of the domain.

    Raises:
        UserError: if its sides do not fit the domain.
    """

    def values(params: Params, time: Any) -> SideValues:
        return tuple(
            None if pair is None else tuple(_given(end, places, i, side, params, time) for side, end in enumerate(pair))
            for i, pair in enumerate(one.ends)
        )  # type: ignore[return-value]

    formula = one.source

    def source(scalars: dict[str, jax.Array], velocity: Velocity, params: Params, time: Any) -> jax.Array:
        assert formula is not None
        return places.at_centers(formula, velocity, scalars, params, time)

    given = any(end[1] is not None for pair in one.ends for end in pair or ())
    try:
        return TransportedScalar(
            domain=places.domain,
            sides=tuple(None if pair is None else (pair[0][0], pair[1][0]) for pair in one.ends),
            diffusivity=lambda params: one.diffusivity.number(params),
            values=values if given else None,
            source=None if formula is None else source,
            scheme=one.settings["scheme"],
        )
    except UserError as error:
        raise UserError(f"scalars.{name}: {error}") from None


def _given(end: End, places: Places, axis: int, side: int, params: Params, time: Any) -> Any:
    formula = end[1]
    if formula is None:
        return 0.0
    return formula.on(places.axes, params, **places.on_side(axis, side, None, params), time=time)


def _ends(settings: Settings, axis: int, scope: Scope, places: Places) -> tuple[End, End] | None:
    name, sides = AXES[axis], settings["sides"]
    if places.domain.sides[axis] is None:
        if name in sides.given:
            raise sides.refuse(name, "is given, and the axis is periodic; remove it")
        return None
    known = (*places.axes, TIME)
    lower, upper = (condition(sides[name][end], sides[name].path(end), scope, known) for end in ENDS)
    for side, (kind, _) in enumerate((lower, upper)):
        if kind != "value" and places.domain.side(axis, side).enters:
            raise sides[name].refuse(
                ENDS[side], "gives no value, and the flow enters there; give the value that it brings"
            )
    return lower, upper


def condition(given: FormulaText | Settings, where: str, scope: Scope, names: tuple[str, ...]) -> End:
    """Return the boundary condition of a scalar on a side or an obstacle: its kind and formula.

    Args:
        given: a value, "insulated", or a table of a value or a flux.
        where: path of its key.
        scope: of formulas.
        names: names that formulas may use besides parameters.

    Raises:
        UserError: that names the key, if a table has both or neither.
    """
    if isinstance(given, FormulaText):
        return (INSULATED, None) if given.text == INSULATED else ("value", scope.formula(given, names))
    kinds = [kind for kind in ("value", "flux") if given[kind] is not None]
    if len(kinds) != 1:
        raise UserError(
            f"{where} gives " + ("both a value and a flux" if kinds else "neither a value nor a flux; give one")
        )
    return kinds[0], scope.formula(given[kinds[0]], names)
