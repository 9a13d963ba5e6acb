"""Implicit friction, so that thin cells at a wall do not limit the time step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.boundary.domain import Domain, prescribe, pushed
from simkit.flow.boundary.ghost_layers import side_shares
from simkit.flow.equations import Equations, implicit_friction
from simkit.flow.grid import Velocity, end
from simkit.flow.operators.advection import moving
from simkit.flow.operators.differences import (
    blend,
    difference_at_centers,
    difference_at_faces,
    divergence,
    gradient,
    inside,
    joined,
    slope_at_faces,
    with_ends,
    with_zero_ends,
)
from simkit.flow.solvers.diffusion import solver_between_sides

type Correction = Callable[[jax.Array], jax.Array]


def friction_solver(equations: Equations) -> Callable[..., tuple[Velocity, Correction]]:
    """Return the function that adds implicit friction and the old pressure to the explicit change of a velocity.

        change - s part viscosity L change = explicit change + part (viscosity L velocity - grad(pressure))

    Boundary values enter both sides: those at ``time`` with the weight 1 - s, those at ``time + part`` with the weight
    s. The pressure on open sides is taken at ``time + part/2``, to which the old pressure is adjusted, see `lifting`.

    ``solve(change, velocity, pressure, params, time, part, share)`` returns the change, and the function
    ``q -> s part viscosity L q`` by which Brown, Cortez and Minion correct the pressure for the increment q.

    Args:
        equations: of the flow, with at least one implicit axis.
    """
    domain, axes = equations.domain, equations.implicit
    grid = domain.grid
    solver = solver_between_sides(domain, axes)
    passes, open_sides = bool(domain.entrances()), domain.open_sides()

    def solve(
        change: Velocity,
        velocity: Velocity,
        pressure: jax.Array,
        params: Params,
        time: jax.Array,
        part: jax.Array,
        share: jax.Array | float,
    ) -> tuple[Velocity, Correction]:
        boundary = blend(equations.on_sides(params, time), equations.on_sides(params, time + part), share)
        between, new = velocity, velocity
        if passes:
            # The normal velocity on the sides at the end of the stage is known beforehand, and enters the friction.
            new = prescribe(jax.tree.map(jnp.add, velocity, change), equations.on_sides(params, time + part), domain)
            between = tuple(_with_ends_of(f, blend(f, new[i], share), i, domain) for i, f in enumerate(velocity))
        friction = implicit_friction(between, boundary, equations, params)
        slopes = gradient(pressure, grid, open_sides)
        if open_sides:
            friction = pushed(friction, equations.pressure_on_sides(params, time + part / 2), domain)
        source = jax.tree.map(lambda c, f, slope: c + part * (f - slope), change, friction, slopes)
        coefficient = share * part * equations.implicit_part(params)
        solved = []
        for i, f in enumerate(source):
            across = (j for j in axes if j != i and domain.sides[j] is not None)
            shares = {j: side_shares(i, j, boundary, domain) for j in across}
            inner = solver(moving(f, i, domain), coefficient, shares)
            if domain.sides[i] is not None:
                ends = [
                    [] if is_open else [end(new[i], i, side) - end(velocity[i], i, side)]
                    for side, is_open in enumerate(domain.is_open(i))
                ]
                inner = joined([*ends[0], inner, *ends[1]], i)
            solved.append(inner)

        def correction(increment: jax.Array) -> jax.Array:
            total = 0.0
            for j in axes:
                if any(domain.is_open(j)):
                    slope = slope_at_faces(increment, j, grid, open_sides)
                else:
                    slope = with_zero_ends(difference_at_faces(increment, j, grid), j, grid)
                total = total + difference_at_centers(slope, j, grid)
            return coefficient * total

        return tuple(solved), correction

    return solve


def lifting(equations: Equations, solve_pressure: Callable[[jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """Return the function that adjusts the pressure to a change of the pressure given on open sides.

        laplacian(q) = 0 inside,    q = change of the pressure on the open sides,    p <- p + q

    Without it the whole change would act on the nearest faces alone, and implicit friction would spread it there before
    the projection sees it. ``lift(pressure, params, before, now)`` takes the times of both.

    Args:
        equations: of a flow with open sides.
        solve_pressure: see `simkit.flow.solvers.pressure.pressure_solver`.
    """
    domain = equations.domain

    def lift(pressure: jax.Array, params: Params, before: jax.Array, now: jax.Array) -> jax.Array:
        given = (equations.pressure_on_sides(params, time) for time in (before, now))
        nothing = tuple(jnp.zeros(domain.grid.shape(i), pressure.dtype) for i in range(domain.grid.dimension))
        change = jax.tree.map(lambda old, new: new - old, *given)
        return pressure + solve_pressure(divergence(pushed(nothing, change, domain), domain.grid))

    return lift


def _with_ends_of(f: jax.Array, other: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return a component of the velocity with the boundary layers of another along its own axis."""
    if domain.sides[axis] is None:
        return f
    return with_ends(end(other, axis, 0), inside(f, axis, domain.grid), end(other, axis, 1), axis)
