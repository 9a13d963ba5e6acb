"""Second-order Adams-Bashforth advection with Crank-Nicolson diffusion and a fractional-step projection."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.pytree import pytree
from simkit.flow.diffusion import diffusion_solver
from simkit.flow.grid import ChannelGrid
from simkit.flow.operators import Velocity, Walls, advection, divergence, gradient, laplacian
from simkit.flow.pressure import pressure_solver


@pytree
class FlowState:
    """The state of a flow between two time steps.

    Attributes:
        velocity: ``(u, v)``, each ``(nx, ny)`` on its faces, unit U.
        pressure: ``(nx, ny)`` at the cell centers half a step ago, divided by density, unit U^2.
        advection: the advection term one step ago, where u and v live, unit U^2/h.
        iteration: number of steps taken, int32; the time is ``iteration * time_step``, exact for any number of steps.
    """

    velocity: Velocity
    pressure: jax.Array
    advection: Velocity
    iteration: jax.Array


def adams_bashforth(grid: ChannelGrid) -> tuple[Callable[..., FlowState], Callable[..., FlowState]]:
    """Return ``(start, step)`` that integrate the incompressible Navier-Stokes equations on a grid.

        du/dt + div(u u) = -grad(p) + nu laplacian(u) + force,    div(u) = 0

    One step of length dt first finds a velocity ``w`` with the old pressure, then the pressure increment ``q`` that
    makes it solenoidal::

        (w - u)/dt = -(3/2 N(u) - 1/2 N(u_old)) - grad(p) + nu laplacian((w + u)/2) + force
        laplacian(q) = div(w)/dt,    u_new = w - dt grad(q),    p_new = p + q - nu/2 div(w)

    The first step is of Euler's kind: N(u) alone, and the viscous term fully implicit, which damps the kink of an
    impulsive start that Crank-Nicolson would carry on as an oscillation. Second order in time and space; diffusion and
    pressure are unconditionally stable; advection asks for a Courant number below about 0.5 at high Reynolds number.

    ``start(velocity, viscosity, walls)`` makes the state from a solenoidal velocity, with the pressure that keeps it
    solenoidal, and ``step(state, viscosity, time_step, force, walls)`` advances it. ``force`` is the pair of components
    of a uniform body force, and ``walls`` the pair of velocities of the lower and the upper wall.

    Args:
        grid: the grid.

    Reference: van Kan, SIAM J. Sci. Stat. Comput. 7, 870 (1986), doi:10.1137/0907059; the last term of the pressure is
    from Brown, Cortez and Minion, J. Comput. Phys. 168, 464 (2001), doi:10.1006/jcph.2001.6715.
    """
    solve_pressure = pressure_solver(grid)
    solve_diffusion = diffusion_solver(grid)

    def start(velocity: Velocity, viscosity: jax.Array, walls: Walls) -> FlowState:
        advected = advection(velocity, grid)
        viscous = laplacian(velocity, walls, grid)
        acceleration = jax.tree.map(lambda n, d: viscosity * d - n, advected, viscous)
        pressure = solve_pressure(divergence(acceleration, grid))
        return FlowState(velocity=velocity, pressure=pressure, advection=advected, iteration=jnp.zeros((), jnp.int32))

    def step(state: FlowState, viscosity: jax.Array, time_step: jax.Array, force: Velocity, walls: Walls) -> FlowState:
        with jax.named_scope("advection"):
            advected = advection(state.velocity, grid)
        with jax.named_scope("diffusion"):
            implicit = jnp.where(state.iteration == 0, viscosity, viscosity / 2)
            source = jax.tree.map(
                lambda forced, new, old, pushed, diffused: (
                    time_step * (forced - 1.5 * new + 0.5 * old - pushed + viscosity * diffused)
                ),
                force,
                advected,
                state.advection,
                gradient(state.pressure, grid),
                laplacian(state.velocity, walls, grid),
            )
            change = solve_diffusion(source, implicit * time_step)
            velocity = jax.tree.map(jnp.add, state.velocity, change)
        with jax.named_scope("projection"):
            # The whole velocity is projected, not its change alone: rounding errors of earlier steps go with it.
            dilatation = divergence(velocity, grid)
            increment = solve_pressure(dilatation / time_step)
            velocity = jax.tree.map(lambda w, q: w - time_step * q, velocity, gradient(increment, grid))
            pressure = state.pressure + increment - implicit * dilatation
        return FlowState(velocity=velocity, pressure=pressure, advection=advected, iteration=state.iteration + 1)

    return start, step
