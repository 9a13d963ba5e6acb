"""One time step of a flow: Runge-Kutta or Adams-Bashforth stages, each followed by a projection."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import compensated_sum
from simkit.core.formulation import computed_once_on_cpu
from simkit.core.pytrees import pytree
from simkit.core.simulation import Params
from simkit.flow.boundary.domain import prescribe, pushed
from simkit.flow.diagnosis.measures import integral, mean_velocity
from simkit.flow.equations import Equations, explicit_terms, implicit_friction
from simkit.flow.grid import Velocity, like
from simkit.flow.obstacles.stage import BodiesInStep, Obstacle, Stage
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.implicit import implicit_solver, lifting, mean_drag

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
        obstacle_data: of the obstacle's method, computed at the start and valid for any parameters; ``()`` if there is
            none.
        time: time passed, and its rounding error so far.
        time_step: length of the last step.
        iteration: number of steps taken, int32.

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.periodic_axis(4, 1.0))
        >>> start, step = flow.stepper(flow.Equations(flow.domain(axes, (None, None)), "nu", flow.fixed_time_step))
        >>> state = start((jnp.ones((4, 4)), jnp.zeros((4, 4))), {"nu": 0.1, "time_step": 0.1})
        >>> isinstance(state, flow.FlowState), state.velocity[0].shape, int(state.iteration)
        (True, (4, 4), 0)
    """

    velocity: Velocity
    pressure: jax.Array
    scalar: Any
    explicit: tuple[jax.Array, ...]
    drive: jax.Array
    load: jax.Array
    obstacle_data: Any
    time: jax.Array
    time_step: jax.Array
    iteration: jax.Array


type Start = Callable[..., FlowState]
type Step = Callable[[FlowState, Params], FlowState]


class During(NamedTuple):
    """What all stages of one step share.

    Attributes:
        params: parameters.
        start: time at the start of the step.
        length: of the step.
        share: weight of the end of a stage in implicit friction: 1/2 for Crank-Nicolson, 1 in the first step of
            Adams-Bashforth.
        bodies: the bodies during the step.
    """

    params: Params
    start: jax.Array
    length: jax.Array
    share: jax.Array | float
    bodies: BodiesInStep


class Between(NamedTuple):
    """The flow between two stages.

    Attributes:
        velocity: components on their faces.
        pressure: of the last stage.
        scalar: the scalars.
        explicit: explicit terms of the last stage.
        drive: acceleration that keeps the flow rate.
        driven: its integral over the stages so far.
        impulse: momentum and amounts of scalars that the bodies received and gave so far.
        mean_pressure: integral of the pressure over the stages so far, over the length of the step; ``()`` where the
            state holds that of the last stage.
    """

    velocity: Velocity
    pressure: jax.Array
    scalar: Any
    explicit: tuple[jax.Array, ...]
    drive: jax.Array
    driven: jax.Array
    impulse: jax.Array
    mean_pressure: Any


def stepper(equations: Equations) -> tuple[Start, Step]:
    """Return ``start(velocity, params, scalar=())``, the state at time zero, and ``step(state, params)``.

    A stage of a step first finds a velocity ``w`` and then the pressure that makes it solenoidal. With N the explicit
    terms (advection, force, and friction along explicit axes), L the friction along implicit axes and ``n + o`` the
    part of the step that the stage covers::

        (w - u)/dt = n N(u) + o N_old + (n + o) (L (w + u)/2 - grad(p))
        laplacian(q) = div(w)/((n + o) dt),    u = w - (n + o) dt grad(q),    p = p + q - L q (n + o) dt/2

    Without implicit axes and drag the old pressure is omitted, and p = q. Drag changes ``w`` as in
    `simkit.flow.stepping.implicit.implicit_solver`.

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

    Example:
        >>> axes = (flow.periodic_axis(4, 1.0), flow.bounded_axis(8, 2.0, origin=-1.0))
        >>> channel = flow.domain(axes, (None, ("wall", "wall")))
        >>> push = lambda velocity, scalar, params, time: (2 * params["nu"], 0.0)
        >>> start, step = flow.stepper(flow.Equations(channel, "nu", flow.fixed_time_step, force=push, implicit=(1,)))
        >>> params = {"nu": jnp.array(1.0), "time_step": jnp.array(0.1)}
        >>> state = start(tuple(jnp.zeros(channel.grid.shape(i)) for i in (0, 1)), params)
        >>> for _ in range(40):
        ...     state = jax.jit(step)(state, params)
        >>> print(np.round(np.float64(state.velocity[0][0, :4]), 3))
        [0.234 0.609 0.859 0.984]
        >>> print(np.round(1 - channel.grid.axes[1].centers[:4] ** 2, 3))
        [0.234 0.609 0.859 0.984]

    Reference: the weights of the stages, Spalart, Moser and Rogers, J. Comput. Phys. 96, 297 (1991),
    doi:10.1016/0021-9991(91)90238-G; the increment of the pressure, van Kan, SIAM J. Sci. Stat. Comput. 7, 870 (1986),
    doi:10.1137/0907059, and Brown, Cortez and Minion, J. Comput. Phys. 168, 464 (2001), doi:10.1006/jcph.2001.6715.
    """
    made = Stepper(equations)
    return made.start, made.step


class Stepper:
    """The stages of a step as methods, see `stepper`; what does not depend on the parameters is made once."""

    def __init__(self, equations: Equations) -> None:
        """Make the solvers of the implicit terms and of the pressure."""
        self.equations = equations
        self.domain, self.grid = equations.domain, equations.domain.grid
        self.open_sides = self.domain.open_sides()
        self.obstacle = equations.obstacle or Obstacle()
        self.obstacle.check_equations(equations)
        self.has_stages = equations.method == "runge_kutta"
        self.averages_pressure = self.has_stages and self.obstacle.averages_pressure
        self.solve_pressure = pressure_solver(self.grid, open_sides=self.open_sides)
        self.add_implicit = implicit_solver(equations) if equations.keeps_pressure else None
        lifts = equations.keeps_pressure and equations.side_pressure is not None
        self.lift = lifting(equations, self.solve_pressure) if lifts else None
        self.add_diffusion = equations.scalar.implicit_diffusion(equations.implicit) if equations.scalar else None

    def project(
        self, velocity: Velocity, part: jax.Array, source: jax.Array | None = None
    ) -> tuple[Velocity, jax.Array]:
        """Return the velocity projected onto a given divergence, zero for None, and the pressure that makes it so.

        The whole velocity is projected, not only its change: this removes rounding errors of earlier steps.

        Args:
            velocity: any, with its values on the sides.
            part: length of time in which the pressure acts.
            source: the divergence at the cell centers.
        """
        with jax.named_scope("projection"):
            missing = divergence(velocity, self.grid) if source is None else divergence(velocity, self.grid) - source
            pressure = self.solve_pressure(missing / part)
            slopes = gradient(pressure, self.grid, self.open_sides)
            return jax.tree.map(lambda u, slope: u - part * slope, velocity, slopes), pressure

    def start(self, velocity: Velocity, params: Params, scalar: Any = ()) -> FlowState:
        """Return the state at time zero."""
        equations, zero = self.equations, jnp.zeros((), velocity[0].dtype)
        if equations.flow_rate is not None:
            # A jump of the flow rate within the first step would leave an error of first order in its length.
            missing = equations.flow_rate(params, zero) - mean_velocity(velocity, 0, self.grid)
            velocity = (velocity[0] + missing, *velocity[1:])
        length = like(zero, equations.step_length(velocity, scalar, params, zero))
        parts = length * like(zero, STAGES[:, :2].sum(1) if self.has_stages else np.ones(1))
        data = self.obstacle.prepare(params, parts, self.project)
        inertia = self.obstacle.during(params, data, zero).inertia(zero)
        terms = explicit_terms(velocity, scalar, equations, params, zero, inertia)
        return FlowState(
            velocity=velocity,
            pressure=self._first_pressure(velocity, terms[: self.grid.dimension], params, zero, parts[0]),
            scalar=scalar,
            explicit=() if self.has_stages else terms,
            drive=zero,
            load=jnp.zeros(self.obstacle.loads, zero.dtype),
            obstacle_data=data,
            time=jnp.zeros(2, zero.dtype),
            time_step=length,
            iteration=jnp.zeros((), jnp.int32),
        )

    def _first_pressure(
        self, velocity: Velocity, acceleration: Velocity, params: Params, zero: jax.Array, part: jax.Array
    ) -> jax.Array:
        """Return the pressure that keeps the velocity solenoidal at time zero, under an explicit acceleration.

        ``part`` is the length of the first stage, over which drag is averaged.
        """
        equations, domain = self.equations, self.domain
        if equations.keeps_pressure:
            friction = implicit_friction(velocity, equations.on_sides(params, zero), equations, params)
            acceleration = jax.tree.map(jnp.add, acceleration, friction)
            drag = mean_drag(velocity, equations, params, zero, part)
            acceleration = jax.tree.map(jnp.subtract, acceleration, drag)
            if self.open_sides:
                acceleration = pushed(acceleration, equations.pressure_on_sides(params, zero), domain)
        if equations.boundary is not None:
            # On inflow, outflow and open sides it is the rate of change of the normal velocity there.
            def moved(time: jax.Array) -> Velocity:
                later = jax.tree.map(lambda u, a: u + time * a, velocity, acceleration)
                return prescribe(later, equations.on_sides(params, time), domain)

            acceleration = jax.jvp(moved, (zero,), (jnp.ones_like(zero),))[1]
        return self.solve_pressure(divergence(acceleration, self.grid))

    def step(self, state: FlowState, params: Params) -> FlowState:
        """Return the state one time step later."""
        length = like(state.time, self.equations.step_length(state.velocity, state.scalar, params, state.time[0]))
        first = state.iteration == 0
        now = During(
            params=params,
            start=state.time[0],
            length=length,
            share=0.5 if self.has_stages else like(state.time, jnp.where(first, 1.0, 0.5)),
            bodies=self.obstacle.during(params, state.obstacle_data, state.time[0]),
        )
        before = state.explicit
        if self.has_stages:
            # The first stage has no old terms: their weight is zero, and any array of the same shape can be passed.
            before = state.velocity if self.equations.scalar is None else (*state.velocity, state.scalar)
        velocity, impulse = now.bodies.begin(state.velocity, state.time[0], length)
        mean_pressure = jnp.zeros_like(state.pressure) if self.averages_pressure else ()
        driven = jnp.zeros_like(state.drive)
        at = Between(velocity, state.pressure, state.scalar, before, state.drive, driven, impulse, mean_pressure)
        fitted = self._times_of_pressures(state, length)
        if self.has_stages:
            stages = like(state.time, STAGES), jnp.arange(len(STAGES)), *fitted
            at, _ = jax.lax.scan(lambda at, stage: (self._stage(at, now, *stage), None), at, stages)
        else:
            # With steps of one length these are 3/2 and -1/2.
            old = jnp.where(first, 0, -length / (2 * state.time_step))
            at = self._stage(at, now, (1 - old, old, 0), 0, *fitted)
        ends = (state.time[0], state.velocity, state.scalar), (state.time[0] + length, at.velocity, at.scalar)
        return FlowState(
            velocity=at.velocity,
            pressure=at.mean_pressure if self.averages_pressure else at.pressure,
            scalar=at.scalar,
            explicit=() if self.has_stages else at.explicit,
            drive=at.driven / length,
            load=now.bodies.received(at.impulse, *ends, self.equations.scalar) / length,
            obstacle_data=state.obstacle_data,
            time=jnp.stack(compensated_sum(state.time[0], state.time[1], length)),
            time_step=length,
            iteration=state.iteration + 1,
        )

    def _stage(
        self, at: Between, now: During, weights: Any, number: Any, time_of_pressure: jax.Array | None = None
    ) -> Between:
        """Return the result of one stage: explicit terms, implicit friction, bodies and pressure, flow rate."""
        new, old, passed = weights
        # The barrier keeps scalars from being recomputed for each point, which would prevent vectorization.
        gain, loss, part = computed_once_on_cpu((new * now.length, old * now.length, (new + old) * now.length))
        time = now.start + passed * now.length
        changes, explicit, (velocity, scalar) = self._explicit_changes(at, now, time, gain, loss)
        change = changes[: self.grid.dimension]
        if self.equations.flow_rate is not None:
            change = (change[0] + part * at.drive, *change[1:])
        scalar, side_values = self._next_scalar(scalar, changes[self.grid.dimension :], now, time, part)
        pressure, left, correction = at.pressure, at.pressure, None
        if self.add_implicit is not None:
            with jax.named_scope("implicit"):
                if self.lift is not None:
                    pressure = self.lift(pressure, now.params, time_of_pressure, time + part / 2)
                change, correction = self.add_implicit(change, velocity, pressure, now.params, time, part, now.share)
            # It has added the old pressure gradient already.
            left = jnp.zeros_like(pressure)
        velocity, increment, momentum = self._solenoidal(velocity, change, left, now, number, time + part, part)
        pressure = increment if correction is None else pressure + increment - correction(increment)
        drive, driven = at.drive, at.driven
        if self.equations.flow_rate is not None:
            missing = self.equations.flow_rate(now.params, time + part) - mean_velocity(velocity, 0, self.grid)
            velocity = (velocity[0] + missing, *velocity[1:])
            drive = drive + missing / part
            driven = driven + part * drive
        mean_pressure = jax.tree.map(lambda p: p + part / now.length * pressure, at.mean_pressure)
        impulse = at.impulse + jnp.concatenate([momentum, side_values])
        return Between(velocity, pressure, scalar, explicit, drive, driven, impulse, mean_pressure)

    def _solenoidal(
        self, before: Velocity, change: Velocity, left: jax.Array, now: During, number: Any, time: jax.Array, part: Any
    ) -> tuple[Velocity, jax.Array, jax.Array]:
        """Return the velocity at the end of a stage, the pressure that makes it solenoidal, and the momentum removed.

        ``left`` is the old pressure where its gradient is not in the change; ``time`` that of the end of the stage.
        """
        velocity, source = jax.tree.map(jnp.add, before, change), now.bodies.source(time)
        if self.equations.boundary is not None:
            made = 0.0 if source is None else integral(source, self.grid)
            velocity = prescribe(velocity, self.equations.on_sides(now.params, time), self.domain, made)
        return now.bodies.project(velocity, before, left, Stage(number, part, time, self.project, source))

    def _explicit_changes(
        self, at: Between, now: During, time: jax.Array, gain: jax.Array, loss: jax.Array
    ) -> tuple[tuple, tuple, tuple[Velocity, Any]]:
        """Return ``gain N(u) + loss N_old`` of velocity and scalar, N(u) alone, and velocity and scalar themselves."""
        with jax.named_scope("explicit"):
            # The old terms are consumed before the new ones are computed, so that their memory is reused. One long loop
            # is faster than nested loops.
            kept = jax.tree.map(lambda o: loss * o.ravel(), at.explicit)
            kept, velocity, scalar = computed_once_on_cpu((kept, at.velocity, at.scalar))
            terms = explicit_terms(velocity, scalar, self.equations, now.params, time, now.bodies.inertia(time))
            changes = jax.tree.map(lambda n, o: gain * n + o.reshape(n.shape), terms, kept)
        return changes, terms, (velocity, scalar)

    def _next_scalar(
        self, scalar: Any, changes: tuple, now: During, time: jax.Array, part: jax.Array
    ) -> tuple[Any, jax.Array]:
        """Return the scalar at the end of a stage, and the amounts that the bodies gave."""
        if self.equations.scalar is None:
            return scalar, jnp.zeros(0, now.length.dtype)
        (change,) = changes
        if self.add_diffusion is not None:
            change = self.add_diffusion(change, scalar, now.params, time, part, now.share)
        after = jax.tree.map(jnp.add, scalar, change)
        return now.bodies.impose_scalar(after, scalar, self.equations.scalar, time + part)

    def _times_of_pressures(self, state: FlowState, length: jax.Array) -> tuple[jax.Array, ...]:
        """Return the time to which the pressure at the start of each stage belongs; empty without `lift`."""
        if self.lift is None:
            return ()
        # The middle of the previous stage, or of the step of a mean; for the first step, the start.
        in_last_stage = self.has_stages and not self.averages_pressure
        last = like(length, (1 - STAGES[-1, 2]) / 2 if in_last_stage else 0.5)
        now = state.time[0]
        before = jnp.where(state.iteration == 0, now, now - last * state.time_step)
        if not self.has_stages:
            return (before,)
        middles = now + length * like(length, STAGES[:-1, 2] + np.diff(STAGES[:, 2]) / 2)
        return (jnp.concatenate([before[None], middles]),)
