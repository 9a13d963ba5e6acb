"""Implicit friction and drag, so that neither thin cells at a wall nor a dense medium limits the time step."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.flow.boundary.domain import Domain, prescribe, pushed
from simkit.flow.boundary.ghost_layers import side_shares
from simkit.flow.equations import Equations, implicit_friction
from simkit.flow.grid import Velocity, end
from simkit.flow.operators.advection import moving, on_all_faces
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


# Below this amount the share of a `Decay` is a series, whose derivative is right at zero too, and whose error is 1e-10.
SMALL = 0.01


class Decay(NamedTuple):
    """Drag on a component of the velocity during a stage, on the faces where it is an unknown.

    Attributes:
        amount: coefficient of the drag times the length of the stage.
        share: ``(1 - exp(-amount))/amount``: the mean of what is left of a push during the stage.
        velocity: of what drags.
    """

    amount: jax.Array
    share: jax.Array
    velocity: jax.Array | float


def decays(equations: Equations, params: Params, time: jax.Array, part: jax.Array) -> list[Decay]:
    """Return the drag on each component, by its coefficient in the middle of a stage; empty without drag.

    Args:
        equations: of the flow.
        params: parameters.
        time: at the start of the stage.
        part: length of time that it covers.
    """

    def decay(coefficient: jax.Array | float, velocity: jax.Array | float) -> Decay:
        amount = jnp.asarray(part * coefficient)
        series = 1 - amount / 2 * (1 - amount / 3 * (1 - amount / 4))
        large = jnp.maximum(amount, SMALL)
        return Decay(amount, jnp.where(amount < SMALL, series, -jnp.expm1(-large) / large), velocity)

    return [] if equations.drag is None else list(map(decay, *equations.drag(params, time + part / 2)))


def mean_drag(velocity: Velocity, equations: Equations, params: Params, time: jax.Array, part: jax.Array) -> Velocity:
    """Return the mean of the drag alone on a velocity during a stage, on all faces; arguments as for `decays`."""
    drag = [jnp.zeros_like(f) for f in velocity]
    for i, decay in enumerate(decays(equations, params, time, part)):
        slip = moving(velocity[i], i, equations.domain) - decay.velocity
        drag[i] = on_all_faces(decay.share * decay.amount / part * slip, i, equations.domain)
    return tuple(drag)


def implicit_solver(equations: Equations) -> Callable[..., tuple[Velocity, Correction]]:
    """Return the function that adds implicit friction, drag and the old pressure to the explicit change of a velocity.

        change - s part viscosity L change = share (explicit change + part (viscosity L velocity - grad(pressure))
                                                    - amount (velocity - that of what drags))

    Amount and share are those of `Decay`, 0 and 1 without drag. Drag alone is exact, at any length of the stage; a
    steady velocity does not depend on the time step. Boundary values enter both sides: those at ``time`` with the
    weight 1 - s, those at ``time + part`` with the weight s. The pressure on open sides is taken at ``time + part/2``,
    to which the old pressure is adjusted, see `lifting`.

    ``solve(change, velocity, pressure, params, time, part, share)`` returns the change, and the function of the
    increment q that Brown, Cortez and Minion subtract from it: ``s part viscosity L q``. With drag it is completed for
    the part of the drag that is the same everywhere, ``q - (q - s part viscosity L q)/largest share``: in a uniform
    medium the pressure is then that of the end of the stage. Elsewhere it follows within about 1/share stages.

    Args:
        equations: of the flow, with an implicit axis or drag.
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
        coefficient = share * part * equations.implicit_part(params) if axes else jnp.zeros_like(part)
        drag = decays(equations, params, time, part)
        inner, shares = [], []
        for i, f in enumerate(source):
            across = (j for j in axes if j != i and domain.sides[j] is not None)
            shares.append({j: side_shares(i, j, boundary, domain) for j in across})
            inner.append(moving(f, i, domain))
            if drag:
                # Before friction, which would spread what a dense medium takes into the fluid beside it.
                slip = moving(velocity[i], i, domain) - drag[i].velocity
                inner[i] = drag[i].share * (inner[i] - drag[i].amount * slip)
        solved = solver(inner, coefficient, shares) if axes else inner
        for i in domain.bounded():
            ends = [
                [] if is_open else [end(new[i], i, side) - end(velocity[i], i, side)]
                for side, is_open in enumerate(domain.is_open(i))
            ]
            solved[i] = joined([*ends[0], solved[i], *ends[1]], i)

        def correction(increment: jax.Array) -> jax.Array:
            total = jnp.zeros_like(increment)
            for j in axes:
                if any(domain.is_open(j)):
                    slope = slope_at_faces(increment, j, grid, open_sides)
                else:
                    slope = with_zero_ends(difference_at_faces(increment, j, grid), j, grid)
                total = total + difference_at_centers(slope, j, grid)
            if not drag:
                return coefficient * total
            return increment - (increment - coefficient * total) / jnp.max(jnp.stack([jnp.max(d.share) for d in drag]))

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
        side_values = (equations.pressure_on_sides(params, time) for time in (before, now))
        nothing = tuple(jnp.zeros(domain.grid.shape(i), pressure.dtype) for i in range(domain.grid.dimension))
        change = jax.tree.map(lambda old, new: new - old, *side_values)
        return pressure + solve_pressure(divergence(pushed(nothing, change, domain), domain.grid))

    return lift


def _with_ends_of(f: jax.Array, other: jax.Array, axis: int, domain: Domain) -> jax.Array:
    """Return a component of the velocity with the boundary layers of another along its own axis."""
    if domain.sides[axis] is None:
        return f
    return with_ends(end(other, axis, 0), inside(f, axis, domain.grid), end(other, axis, 1), axis)
