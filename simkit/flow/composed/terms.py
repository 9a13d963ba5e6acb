"""Viscosity, forces and flow rate of a flow described as data."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from simkit.core.expressions.scope import Formula
from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity
from simkit.flow.boundary.side_velocity import velocity_on_sides
from simkit.flow.composed.places import Places
from simkit.flow.viscosity import Viscosity

type Force = Callable[[Velocity, Any, Params, jax.Array], tuple]


def viscosity_of(formula: Formula, boundary: Any, places: Places, fields: tuple[str, ...]) -> Viscosity:
    """Return the viscosity for the equations: a function of parameters, or a field.

    Args:
        formula: formula of the viscosity.
        boundary: velocity on the sides, see `simkit.flow.composed.sides.boundary_of`.
        places: of the domain.
        fields: names that make it a field: coordinates, time, velocity, shear rate and scalars.
    """
    if not formula.takes(*fields):
        return lambda params: formula.number(params)

    def field(velocity: Velocity, params: Params, scalar: Any, time: jax.Array) -> jax.Array:
        return places.at_centers(
            formula,
            velocity,
            scalar,
            params,
            time,
            lambda: velocity_on_sides(boundary, places.domain, params, time),
        )

    return field


def force_of(formulas: Mapping[int, Formula], places: Places) -> Force | None:
    """Return the force function of the equations; None if there are no forces.

    Args:
        formulas: by component.
        places: of the domain.
    """
    if not formulas:
        return None

    def force(velocity: Velocity, scalar: Any, params: Params, time: jax.Array) -> tuple:
        return tuple(
            places.at_faces(formulas[i], i, velocity, scalar, params, time) if i in formulas else 0.0
            for i in range(len(places.axes))
        )

    return force


def flow_rate_of(formula: Formula | None) -> Callable[[Params, jax.Array], jax.Array] | None:
    """Return the prescribed flow rate as a function of parameters and time; None if there is none.

    Args:
        formula: formula of time; or None.
    """
    return None if formula is None else lambda params, time: formula.number(params, time=time)
