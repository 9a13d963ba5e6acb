"""Acceleration on all faces of a flow: advection, friction, forces, and the pressure on open sides."""

from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.barrier import computed_once
from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity, end
from simkit.flow.boundary.domain import Domain, no_motion
from simkit.flow.boundary.ghost_layers import surround
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.boundary.pressure_sides import PressureOnSides, pushed_along
from simkit.flow.equations import Equations
from simkit.flow.obstacles.stage import Inertia
from simkit.flow.operators.advection import LAYERS, advection
from simkit.flow.operators.differences import with_ends
from simkit.flow.operators.diffusion import laplacian
from simkit.flow.operators.open_sides import on_all_faces
from simkit.flow.operators.stress import divergence_of_stress
from simkit.flow.viscosity import field_at_centers


def explicit_terms(
    velocity: Velocity,
    scalar: Any,
    equations: Equations,
    params: Params,
    time: jax.Array,
    inertia: Inertia | None = None,
) -> tuple[jax.Array, ...]:
    """Return the explicit acceleration on all faces of each component, and the rate of change of the scalar, if any.

    On the sides the acceleration is zero, except for those through which the flow leaves, and for open ones. What the
    pressure given there adds is among the explicit terms only where friction is; beside implicit friction see
    `simkit.flow.stepping.implicit.friction_solver`.

    Args:
        velocity: components on their faces.
        scalar: at the cell centers, or ``()``.
        equations: of the flow.
        params: parameters.
        time: time.
        inertia: the velocity that advection carries, see `Obstacle.inertia`; None for all of it.
    """
    domain, boundary = equations.domain, equations.on_sides(params, time)
    around = surround(velocity, boundary, domain, LAYERS[equations.scheme])
    acceleration = jax.tree.map(jnp.negative, _advected(velocity, around, boundary, equations, inertia))
    if equations.explicit or equations.varies:
        nearest = around if LAYERS[equations.scheme] == 1 else surround(velocity, boundary, domain)
        acceleration = _with_friction(acceleration, velocity, nearest, equations, params, (scalar, time))
    if equations.force is not None:
        acceleration = jax.tree.map(jnp.add, acceleration, equations.force(velocity, scalar, params, time))
    pushes = bool(domain.open_sides()) and not equations.implicit
    given = equations.pressure_on_sides(params, time) if pushes else None
    terms = tuple(computed_once(_on_all_faces(a, velocity, i, domain, given)) for i, a in enumerate(acceleration))
    if equations.scalar is None:
        return terms
    return (*terms, equations.scalar.rate(scalar, velocity, params, time, equations.explicit))


def implicit_friction(velocity: Velocity, boundary: BoundaryVelocity, equations: Equations, params: Params) -> Velocity:
    """Return the viscous acceleration along the implicit axes, on all faces of each component; zero on the sides."""
    around = surround(velocity, boundary, equations.domain)
    terms = laplacian(around, equations.domain, equations.implicit)
    viscosity = equations.implicit_part(params)
    return tuple(on_all_faces(viscosity * f, i, equations.domain) for i, f in enumerate(terms))


def _advected(
    velocity: Velocity, around: Velocity, boundary: BoundaryVelocity, equations: Equations, inertia: Inertia | None
) -> Velocity:
    """Return the divergence of the momentum flux on the faces of each component where it is an unknown."""
    domain, scheme = equations.domain, equations.scheme
    layers = LAYERS[scheme]
    if inertia is None:
        return advection(around, domain, scheme)
    if inertia.body is None:
        moved = jax.tree.map(jnp.multiply, velocity, inertia.fluid)
        return advection(around, domain, scheme, surround(moved, boundary, domain, layers))
    # Bodies keep clear of the sides, so that the correction vanishes there.
    relative = jax.tree.map(jnp.subtract, velocity, inertia.body)
    still = jax.tree.map(lambda f, part: (1 - part) * f, relative, inertia.fluid)
    relative, still = (surround(f, no_motion(domain), domain, layers) for f in (relative, still))
    unmoved = advection(relative, domain, scheme, still)
    return jax.tree.map(jnp.subtract, advection(around, domain, scheme), unmoved)


def _with_friction(
    acceleration: Velocity,
    velocity: Velocity,
    around: Velocity,
    equations: Equations,
    params: Params,
    carried: tuple[Any, jax.Array],
) -> Velocity:
    """Return the acceleration with that of explicit friction added, on the faces where velocity is an unknown."""
    domain = equations.domain
    if not equations.varies:
        viscosity = equations.implicit_part(params)
        friction = laplacian(around, domain, equations.explicit)
        return jax.tree.map(lambda a, f: a + viscosity * f, acceleration, friction)
    viscosity = field_at_centers(equations.viscosity, velocity, params, domain.grid.cells, carried)
    acceleration = jax.tree.map(jnp.add, acceleration, divergence_of_stress(around, viscosity, domain))
    if not equations.implicit:
        return acceleration
    part = equations.implicit_part(params)
    return jax.tree.map(lambda a, f: a - part * f, acceleration, laplacian(around, domain, equations.implicit))


def _on_all_faces(
    acceleration: jax.Array, velocity: Velocity, i: int, domain: Domain, given: PressureOnSides | None
) -> jax.Array:
    """Return one component on all faces, with the accelerations on outflow sides and on open sides."""
    if not any(side.leaves for side in domain.sides[i] or ()):
        acceleration = on_all_faces(acceleration, i, domain)
        return acceleration if given is None else pushed_along(i, acceleration, given, domain)
    ends = []
    for side in (0, 1):
        moved = (
            domain.side(i, side).acceleration(velocity, domain.place(i, side)) if (i, side) in domain.exits() else None
        )
        ends.append(jnp.zeros_like(end(acceleration, i, side)) if moved is None else moved)
    return with_ends(ends[0], acceleration, ends[1], i)
