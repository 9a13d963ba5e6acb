"""Scalars of a flow described as data."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import precision_of
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import within
from simkit.flow.boundary.scalar_sides import ScalarSide
from simkit.flow.boundary.side_data import SideValues
from simkit.flow.description.formulas import AXES, Names, OfTime, Places, arguments_of
from simkit.flow.description.sides import ENDS, Timed
from simkit.flow.description.start import constants
from simkit.flow.grid import Velocity
from simkit.flow.parts import SCALAR_SIDES
from simkit.flow.scalar import TransportedScalar

# A side, and the number given there at a time; None for a side that takes none.
type End = tuple[ScalarSide, OfTime | None]


class ScalarFormulas:
    """Formulas of one scalar.

    Attributes:
        ends: lower and upper side of each axis, each with what is given there; None for a periodic axis.
        on_sides: formulas of data on the sides, each with its value at a time.
        diffusivity: formula of coordinates, time and scalars.
        initial: formula of the coordinates.
        source: formula of coordinates, time, velocity and scalars; or None.
    """

    def __init__(self, settings: Settings, names: Names, places: Places, stored: np.ndarray | None = None) -> None:
        """Check the settings of one scalar.

        Args:
            settings: its settings.
            names: names that formulas may use.
            places: of the domain.
            stored: its values at the start at the cell centers, in place of the formula; or None.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self.settings, self.stored = settings, stored
        self.on_sides: list[Timed] = []
        self.ends = tuple(self._ends(axis, names, places) for axis in range(len(places.axes)))
        self.diffusivity = names.formula(settings["diffusivity"])
        self.initial = names.formula(settings["initial"])
        self.source = None if settings["source"] is None else names.formula(settings["source"])

    def start(self, places: Places, params: Params) -> jax.Array:
        """Return the initial values at the cell centers."""
        if self.stored is not None:
            return constants(self.stored, precision_of(params))
        field = self.initial.on(places.axes, params, **places.coordinates(None, params))
        return jnp.broadcast_to(field, places.domain.grid.cells)

    def _ends(self, axis: int, names: Names, places: Places) -> tuple[End, End] | None:
        name, sides = AXES[axis], self.settings["sides"]
        if places.domain.sides[axis] is None:
            if name in sides.given:
                raise sides.refuse(name, "is given, and the axis is periodic; remove it")
            return None
        lower, upper = (self._end(sides[name][end], axis, side, names, places) for side, end in enumerate(ENDS))
        return lower, upper

    def _end(self, settings: Settings, axis: int, side: int, names: Names, places: Places) -> End:
        """Return a side with the number given there, after adding all that is given to ``on_sides``."""
        kind = SCALAR_SIDES.resolve(settings["kind"])
        declared = declaration_of(kind)

        # The value with the name of the part is the number that boundary data gives to the side, as one layer.
        own = settings[settings["kind"]] if kind.takes else None

        def value(text: FormulaText) -> OfTime:
            formula = names.formula(text)
            of_time = (places.of_side if text is own else places.data_of_side)(formula, axis, side)
            self.on_sides.append((formula, of_time))
            return of_time

        arguments = arguments_of(settings, declared.keys, declared.values, value)
        given = arguments.pop(settings["kind"]) if kind.takes else None
        return kind(**arguments), given


def carried_scalar(name: str, formulas: ScalarFormulas, places: Places, names: tuple[str, ...]) -> TransportedScalar:
    """Return the transported scalar that the equations take.

    Args:
        name: its name.
        formulas: its formulas.
        places: of the domain.
        names: those that make its diffusivity a field.

    Raises:
        UserError: if its sides do not fit the domain.
    """

    def values(params: Params, time: Any) -> SideValues:
        return tuple(
            None if pair is None else tuple(0.0 if of_side is None else of_side(params, time) for _, of_side in pair)
            for pair in formulas.ends
        )  # type: ignore[return-value]

    formula, spreads = formulas.source, formulas.diffusivity

    def diffusivity(scalars: dict[str, jax.Array], params: Params, time: Any) -> jax.Array:
        return places.at_centers(spreads, (), scalars, params, time)

    def source(scalars: dict[str, jax.Array], velocity: Velocity, params: Params, time: Any) -> jax.Array:
        assert formula is not None
        return places.at_centers(formula, velocity, scalars, params, time)

    with within(f"scalars.{name}: "):
        return TransportedScalar(
            domain=places.domain,
            sides=tuple(None if pair is None else (pair[0][0], pair[1][0]) for pair in formulas.ends),
            diffusivity=diffusivity if spreads.takes(*names) else spreads.number,
            values=values if any(given for pair in formulas.ends for _, given in pair or ()) else None,
            source=None if formula is None else source,
            scheme=formulas.settings["scheme"],
        )
