"""One time step of a flow: Runge-Kutta or Adams-Bashforth stages, each followed by a projection."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import compensated_sum
from simkit.core.formulation import computed_once
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.flow.boundary.domain import prescribe, pushed
from simkit.flow.diagnosis.measures import integral, mean_velocity
from simkit.flow.equations import Equations, explicit_terms, implicit_friction
from simkit.flow.grid import Velocity, like
from simkit.flow.obstacles.stage import Stage
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.scalar import TransportedScalar, TransportedScalars
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.implicit import friction_solver, lifting

# Weights (new, old) of the explicit terms of each stage, and the fraction of the step before the stage.
STAGES = np.array([(8 / 15, 0.0, 0.0), (5 / 12, -17 / 60, 8 / 15), (3 / 4, -5 / 12, 2 / 3)])


@pytree
class FlowState:
    """The state of a flow between two time steps.

    Attributes:
        velocity: components on their faces, see `simkit.flow.grid.Grid`.
        pressure: at the cell centers, divided by density, with zero mean unless a side gives the pressure; at the
            middle of the last stage, 1/2 (Adams-Bashforth) or 1/6 (Runge-Kutta) of a step ago; with direct forcing the
            mean over the last step.
        scalar: at the cell centers, or several by name; ``()`` if there is none.
        explicit: the explicit terms one step ago; ``()`` for Runge-Kutta, which needs none.
        drive: the uniform acceleration along the first axis that keeps the prescribed flow rate, mean over the last
            step; zero if no flow rate is prescribed.
        load: mean force of the flow on the obstacle over the last step, and the amount of each scalar that it gave per
            time; empty if there is none.
        hold: data of the obstacle's method, computed at the start and valid for any parameters; ``()`` if there is
            none.
        time: time passed, and its rounding error so far.
        time_step: length of the last step.
        iteration: number of steps taken, int32.
    """

    velocity: Velocity
    pressure: jax.Array
    scalar: Any
    explicit: tuple[jax.Array, ...]
    drive: jax.Array
    load: jax.Array
    hold: Any
    time: jax.Array
    time_step: jax.Array
    iteration: jax.Array


type Start = Callable[..., FlowState]
type Step = Callable[[FlowState, Params], FlowState]
# ``(velocity, part, divergence=None) -> velocity, pressure``: the velocity projected onto a given divergence (zero by
# pressure that makes it so in that time.
type Project = Callable[..., tuple[Velocity, jax.Array]]


def stepper(equations: Equations) -> tuple[Start, Step]:
    """Return ``start(velocity, params, scalar=())``, the state at time zero, and ``step(state, params)``.

    A stage of a step first finds a velocity ``w`` and then the pressure that makes it solenoidal. With N the explicit
    terms (advection, force, and friction along explicit axes), L the friction along implicit axes and ``n + o`` the
    part of the step that the stage covers::

        (w - u)/dt = n N(u) + o N_old + (n + o) (L (w + u)/2 - grad(p))
        laplacian(q) = div(w)/((n + o) dt),    u = w - (n + o) dt grad(q),    p = p + q - L q (n + o) dt/2

    Without implicit axes the old pressure is omitted, and p = q.

    ==================  =========================================================  ==================================
    method              weights (n, o) of the stages                               order, without implicit axes
    ==================  =========================================================  ==================================
    runge_kutta         (8/15, 0), (5/12, -17/60), (3/4, -5/12)                    3; Courant number below 1.7
    adams_bashforth     (1 + r/2, -r/2), r the ratio to the step before            2; Courant number below about 0.5
    ==================  =========================================================  ==================================

    Implicit axes are of second order. The first Adams-Bashforth step is an Euler step with fully implicit friction,
    which damps the discontinuity of an impulsive start that Crank-Nicolson would turn into an oscillation.

    The state at time zero has the prescribed flow rate, if there is one: a uniform velocity is added to the given one.

    Args:
        equations: what to integrate.

    Reference: the weights of the stages, Spalart, Moser and Rogers, J. Comput. Phys. 96, 297 (1991),
    doi:10.1016/0021-9991(91)90238-G; the increment of the pressure, van Kan, SIAM J. Sci. Stat. Comput. 7, 870 (1986),
    doi:10.1137/0907059, and Brown, Cortez and Minion, J. Comput. Phys. 168, 464 (2001), doi:10.1006/jcph.2001.6715.
    """
    domain, obstacle = equations.domain, equations.obstacle
    grid = domain.grid
    several = equations.method == "runge_kutta"
    if obstacle is not None:
        obstacle.check_equations(equations)
    averages = several and obstacle is not None and obstacle.averages_pressure
    open_sides = domain.open_sides()
    solve_pressure = pressure_solver(grid, open_sides=open_sides)
    solve_friction = friction_solver(equations) if equations.implicit else None
    lift = lifting(equations, solve_pressure) if equations.implicit and equations.side_pressure else None
    solve_diffusion = equations.scalar.implicit_diffusion(equations.implicit) if equations.scalar else None

    def project(velocity: Velocity, part: jax.Array, source: jax.Array | None = None) -> tuple[Velocity, jax.Array]:
        # The whole velocity is projected, not only its change: this removes rounding errors of earlier steps.
        with jax.named_scope("projection"):
            missing = divergence(velocity, grid) if source is None else divergence(velocity, grid) - source
            increment = solve_pressure(missing / part)
            return jax.tree.map(
                lambda u, slope: u - part * slope, velocity, gradient(increment, grid, open_sides)
            ), increment

    def start(velocity: Velocity, params: Params, scalar: Any = ()) -> FlowState:
        zero = jnp.zeros((), velocity[0].dtype)
        if equations.flow_rate is not None:
            # A jump of the flow rate within the first step would leave an error of first order in its length.
            missing = equations.flow_rate(params, zero) - mean_velocity(velocity, 0, grid)
            velocity = (velocity[0] + missing, *velocity[1:])
        inertia = obstacle.inertia(params, zero) if obstacle else None
        terms = explicit_terms(velocity, scalar, equations, params, zero, inertia)
        acceleration = terms[: grid.dimension]
        if equations.implicit:
            friction = implicit_friction(velocity, equations.on_sides(params, zero), equations, params)
            acceleration = jax.tree.map(jnp.add, acceleration, friction)
            if open_sides:
                acceleration = pushed(acceleration, equations.pressure_on_sides(params, zero), domain)
        if equations.boundary is not None:
            # On inflow, outflow and open sides it is the rate of change of the normal velocity there.
            def moved(time: jax.Array) -> Velocity:
                later = jax.tree.map(lambda u, a: u + time * a, velocity, acceleration)
                return prescribe(later, equations.on_sides(params, time), domain)

            acceleration = jax.jvp(moved, (zero,), (jnp.ones_like(zero),))[1]
        length = like(zero, equations.step_length(velocity, scalar, params, zero))
        parts = length * like(zero, STAGES[:, :2].sum(1) if several else np.ones(1))
        return FlowState(
            velocity=velocity,
            pressure=solve_pressure(divergence(acceleration, grid)),
            scalar=scalar,
            explicit=() if several else terms,
            drive=zero,
            load=jnp.zeros(obstacle.loads if obstacle else 0, zero.dtype),
            hold=obstacle.prepare(params, parts, project) if obstacle else (),
            time=jnp.zeros(2, zero.dtype),
            time_step=length,
            iteration=jnp.zeros((), jnp.int32),
        )

    def fits(state: FlowState, length: jax.Array) -> tuple[jax.Array, ...]:
        """Return the time to which the pressure at the start of each stage belongs; empty without open sides."""
        if lift is None:
            return ()
        # The middle of the previous stage, or of the step of a mean; for the first step, the start.
        last = like(length, (1 - STAGES[-1, 2]) / 2 if several and not averages else 0.5)
        now = state.time[0]
        before = jnp.where(state.iteration == 0, now, now - last * state.time_step)
        if not several:
            return (before,)
        middles = now + length * like(length, STAGES[:-1, 2] + np.diff(STAGES[:, 2]) / 2)
        return (jnp.concatenate([before[None], middles]),)

    def step(state: FlowState, params: Params) -> FlowState:
        length = like(state.time, equations.step_length(state.velocity, state.scalar, params, state.time[0]))
        first = state.iteration == 0
        # For bodies at rest it is the same in all stages.
        resting = obstacle.inertia(params, state.time[0]) if obstacle and not obstacle.moves else None
        body = obstacle.at(params, state.hold) if obstacle else ()

        def stage(carry, weights_and_index):
            velocity, pressure, scalar, before, drive, pushed, impulse, mean_pressure = carry
            (new, old, passed), index, *fitted = weights_and_index
            # The barrier keeps scalars from being recomputed for each point, which would prevent vectorization.
            gain, loss, part = computed_once((new * length, old * length, (new + old) * length))
            time = state.time[0] + passed * length
            with jax.named_scope("explicit"):
                # The old terms are consumed before the new ones are computed, so that their memory is reused. One long
                # loop is faster than nested loops.
                kept = jax.tree.map(lambda o: loss * o.ravel(), before)
                kept, velocity, scalar = computed_once((kept, velocity, scalar))
                inertia = obstacle.inertia(params, time) if obstacle and obstacle.moves else resting
                now = explicit_terms(velocity, scalar, equations, params, time, inertia)
                changes = jax.tree.map(lambda n, o: gain * n + o.reshape(n.shape), now, kept)
                change = changes[: grid.dimension]
                if equations.flow_rate is not None:
                    change = (change[0] + part * drive, *change[1:])
            correction, share = None, 0.5 if several else like(state.time, jnp.where(first, 1.0, 0.5))
            if equations.scalar is not None:
                spread = changes[-1]
                if solve_diffusion is not None:
                    spread = solve_diffusion(spread, scalar, params, time, part, share)
                at_start, scalar = scalar, jax.tree.map(jnp.add, scalar, spread)
                if obstacle is not None:
                    assert isinstance(equations.scalar, TransportedScalar | TransportedScalars), (
                        "checked by the obstacle"
                    )
                    diffusivity = equations.scalar.diffusivity(params)
                    scalar, added = obstacle.hold_scalar(scalar, at_start, diffusivity, params, time + part)
                    impulse = impulse.at[-len(added) :].add(added)
            if solve_friction is not None:
                with jax.named_scope("implicit"):
                    if lift is not None:
                        pressure = lift(pressure, params, *fitted, time + part / 2)
                    change, correction = solve_friction(change, velocity, pressure, params, time, part, share)
            started, velocity = velocity, jax.tree.map(jnp.add, velocity, change)
            source = obstacle.source(params, time + part) if obstacle else None
            if equations.boundary is not None:
                made = 0.0 if source is None else integral(source, grid)
                velocity = prescribe(velocity, equations.on_sides(params, time + part), domain, made)
            if obstacle is None:
                velocity, increment = project(velocity, part)
            else:
                # Implicit friction has already added the old pressure gradient.
                left = pressure if correction is None else jnp.zeros_like(pressure)
                now_at = Stage(index, part, time + part, project, source)
                velocity, increment, momentum = obstacle.hold(velocity, started, left, params, body, now_at)
                impulse = impulse.at[: len(momentum)].add(momentum)
            pressure = increment if correction is None else pressure + increment - correction(increment)
            if equations.flow_rate is not None:
                missing = equations.flow_rate(params, time + part) - mean_velocity(velocity, 0, grid)
                velocity = (velocity[0] + missing, *velocity[1:])
                drive = drive + missing / part
                pushed = pushed + part * drive
            mean_pressure = jax.tree.map(lambda p: p + part / length * pressure, mean_pressure)
            return (velocity, pressure, scalar, now, drive, pushed, impulse, mean_pressure), None

        before = state.explicit
        if several:
            # The first stage has no old terms: their weight is zero, and any array of the same shape can be passed.
            before = state.velocity if equations.scalar is None else (*state.velocity, state.scalar)
        nothing = jnp.zeros_like(state.drive), jnp.zeros_like(state.load)
        nothing += ((jnp.zeros_like(state.pressure),) if averages else (),)
        carry = state.velocity, state.pressure, state.scalar, before, state.drive, *nothing
        if several:
            stages = like(state.time, STAGES), jnp.arange(len(STAGES))
            carry, _ = jax.lax.scan(stage, carry, (*stages, *fits(state, length)))
        else:
            # With steps of one length these are 3/2 and -1/2.
            old = jnp.where(first, 0, -length / (2 * state.time_step))
            carry, _ = stage(carry, ((1 - old, old, 0), 0, *fits(state, length)))
        velocity, pressure, scalar, explicit, _, pushed, impulse, mean_pressure = carry
        if obstacle is not None:
            ends = (state.time[0], state.velocity), (state.time[0] + length, velocity)
            gained = obstacle.gained(params, *ends)
            impulse = impulse if gained is None else impulse.at[: len(gained)].add(gained)
            if equations.scalar is not None:
                scalars = state.scalar, scalar
                kept = obstacle.kept(params, *((time, c) for (time, _), c in zip(ends, scalars, strict=True)))
                made = obstacle.produced(
                    params,
                    *(
                        (time, equations.scalar.production(c, flow, params, time))
                        for (time, flow), c in zip(ends, scalars, strict=True)
                    ),
                )
                impulse = impulse.at[-len(kept) :].add(-kept if made is None else made - kept)
        return FlowState(
            velocity=velocity,
            pressure=mean_pressure[0] if mean_pressure else pressure,
            scalar=scalar,
            explicit=() if several else explicit,
            drive=pushed / length,
            load=impulse / length,
            hold=state.hold,
            time=jnp.stack(compensated_sum(state.time[0], state.time[1], length)),
            time_step=length,
            iteration=state.iteration + 1,
        )

    return start, step
