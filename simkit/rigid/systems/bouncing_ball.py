"""Bouncing ball: flight, bounces, sliding and rolling of a ball thrown over a floor, in closed form."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.averages import compensated_sum
from simkit.core.formulation import computed_once
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.vector import Vector, dot, norm
from simkit.rigid.bounces.friction import SLIP_PER_IMPULSE, slide
from simkit.rigid.bounces.impact import impact_impulse, time_of_impact
from simkit.rigid.bounces.series import bounce_series
from simkit.rigid.bounces.sphere import Ball, push, slip_velocity
from simkit.rigid.quantities import RIGID

PARAMETERS = {
    "launch_speed": Parameter(4.0, unit="m/s", doc="speed at the start; 5.134860358 m/s reaches the default target"),
    "launch_angle": Parameter(60.0, unit="deg", doc="direction at the start above the horizontal"),
    "launch_height": Parameter(
        1.0, NOT_NEGATIVE, "m", "height of the ball's lowest point above the floor at the start"
    ),
    "launch_scatter": Parameter(
        0.0,
        NOT_NEGATIVE,
        "1",
        "standard deviation of random relative changes of launch speed and angle, drawn from the seed",
    ),
    "spin": Parameter(-30.0, unit="rad/s", doc="spin at the start about the axis y; negative is back spin"),
    "restitution": Parameter(
        0.75, SHARE, "1", "coefficient of restitution: vertical speed after an impact over that before it"
    ),
    "friction": Parameter(0.06, NOT_NEGATIVE, "1", "coefficient of Coulomb friction between ball and floor"),
    "radius": Parameter(0.1, POSITIVE, "m", "radius of the ball"),
    "mass": Parameter(0.5, POSITIVE, "kg", "mass of the ball; sets its energy, not its motion"),
    "gravity": Parameter(9.81, POSITIVE, "m/s^2", "acceleration of free fall"),
    "target": Parameter(6.5, unit="m", doc="target position along x at the end"),
    "time_step": Parameter(0.01, POSITIVE, "s", "time step; the motion is exact at any"),
}

DIMENSIONS = {
    "position": ("body", "space"),
    "orientation": ("body", "quaternion"),
    "radius": ("body",),
    "velocity": ("body", "space"),
    "target": ("space",),
}


@pytree
class BouncingBall:
    """State of the ball.

    Attributes:
        ball: position, orientation and velocities.
        resting: whether the ball has stopped bouncing and stays on the floor, bool.
        bounces: number of impacts so far, int32; the infinite series at the end of the bouncing is not counted.
        launch_apex: height in m of the lowest point at the apex of the first flight, possibly before the launch.
        time: in s.
        excess: accumulated rounding error of ``time``, in s; the exact time is ``time - excess``.
    """

    ball: Ball
    resting: jax.Array
    bounces: jax.Array
    launch_apex: jax.Array
    time: jax.Array
    excess: jax.Array


@described(
    RIGID,
    height=("m", "height of the lowest point"),
    apex_height=("m", "top of the current flight"),
    apex_ratio=("1", "top of the current flight over that of the first"),
    bounces=("1", "bounces so far"),
    distance_to_target=("m", "distance from the target"),
)
def bouncing_ball() -> Simulation:
    """Return a solid sphere thrown in the x-z plane over the floor z = 0.

    Free flight ``x'' = (0, 0, -g)`` between impacts with restitution e and Coulomb friction mu, which couples to the
    spin; then slipping with deceleration ``mu g`` and rolling. Every part is solved in closed form, with all the
    impacts within a step at their exact times, so results and derivatives do not depend on the time step.

    Derivatives are those at a fixed number of bounces. Good values: restitution 0.5 to 0.9 (a tennis ball
    0.75), friction 0.1 to 1, any time step, which only sets the times of frames.

    Returns:
        The simulation; it diagnoses ``time``, ``position_x``, ``height`` of the lowest point, ``speed``, ``energy``,
        ``apex_height`` of the current flight, ``apex_ratio`` to that of the first, ``bounces``,
        ``distance_to_target`` and ``penetration``.
    """
    return Simulation(
        init=_init, step=_step, observe=_observe, diagnose=_diagnose, params=PARAMETERS, dimensions=DIMENSIONS
    )


def _init(params: Params, key: jax.Array) -> BouncingBall:
    height, speed = params["launch_height"], params["launch_speed"]
    zero = jnp.zeros_like(height)
    change = 1 + params["launch_scatter"] * jax.random.normal(key, (2,), zero.dtype)
    speed, angle = speed * change[0], jnp.deg2rad(params["launch_angle"] * change[1])
    upward = speed * jnp.sin(angle)
    ball = Ball(
        position=Vector(zero, zero, params["radius"] + height),
        orientation=quaternion.identity(zero),
        velocity=Vector(speed * jnp.cos(angle), zero, upward),
        angular_velocity=Vector(zero, params["spin"], zero),
    )
    return BouncingBall(
        ball=ball,
        resting=(height <= 0) & (upward == 0),
        bounces=jnp.int32(0),
        launch_apex=height + upward**2 / (2 * params["gravity"]),
        time=zero,
        excess=zero,
    )


def _step(state: BouncingBall, params: Params) -> BouncingBall:
    state, params = computed_once((state, params))
    dt, gravity, radius = params["time_step"], params["gravity"], params["radius"]
    restitution, friction = params["restitution"], params["friction"]
    ball, zero = state.ball, jnp.zeros_like(dt)
    up = Vector(zero, zero, zero + 1)
    height, rate = ball.position.z, ball.velocity.z

    # Without an impact the speed of approach is set to zero, and so are all impulses of the impact and the series.
    fall = computed_once(time_of_impact(height - radius, rate, -gravity))
    hits = ~state.resting & (fall <= dt)
    fall = jnp.where(hits, fall, 0)
    approach = jnp.where(hits, gravity * fall - rate, 0)
    slip = slip_velocity(ball, up, radius)
    normal_impulse, impulse = impact_impulse(approach, slip, restitution, friction)
    bounce, slip, after_impact = computed_once(
        (normal_impulse - approach, slip + SLIP_PER_IMPULSE * impulse, dt - fall)
    )
    series = computed_once(bounce_series(bounce, slip, after_impact, restitution, friction, gravity))
    slip = slip + SLIP_PER_IMPULSE * series.impulse
    after_series = after_impact - series.duration

    stops = hits & series.rests
    resting = state.resting | stops
    drag, drag_shift = computed_once(slide(slip, jnp.where(resting, after_series, 0), friction, gravity))
    shift = impulse * after_impact + series.shift + series.impulse * after_series + drag_shift
    ball = push(ball, impulse + series.impulse + drag, shift, dt, up, radius)

    # The last flight of the step starts at its last impact, with the ball exactly on the floor.
    start = jnp.where(hits | state.resting, radius, height)
    upward = jnp.where(hits, series.upward, rate)
    flight = jnp.where(resting, 0, after_series)
    ball = dataclasses.replace(
        ball,
        position=dataclasses.replace(ball.position, z=start + flight * (upward - gravity * flight / 2)),
        velocity=dataclasses.replace(ball.velocity, z=upward - gravity * flight),
    )
    impacts = jnp.where(hits, 1 + jnp.where(stops, 0, series.impacts), 0)
    time, excess = compensated_sum(state.time, state.excess, dt)
    return BouncingBall(
        ball=ball,
        resting=resting,
        bounces=state.bounces + impacts.astype(jnp.int32),
        launch_apex=state.launch_apex,
        time=time,
        excess=excess,
    )


def _observe(state: BouncingBall, params: Params) -> Arrays:
    # Without the barriers, programs that fuse this with the step would round it differently.
    state, params = computed_once((state, params))
    target = params["target"] * jnp.asarray([1, 0, 0], dtype=params["target"].dtype)
    return {
        "position": vector.stacked(state.ball.position)[None],
        "orientation": quaternion.stacked(state.ball.orientation)[None],
        "radius": params["radius"][None],
        "velocity": vector.stacked(state.ball.velocity)[None],
        "target": target,
    }


def _diagnose(state: BouncingBall, params: Params) -> Arrays:
    state, params = computed_once((state, params))
    ball, gravity, radius = state.ball, params["gravity"], params["radius"]
    gap = ball.position.z - radius
    speed_squared, spin_squared = dot(ball.velocity, ball.velocity), dot(ball.angular_velocity, ball.angular_velocity)
    apex = gap + ball.velocity.z**2 / (2 * gravity)
    thrown = state.launch_apex > 0
    per_mass = speed_squared / 2 + radius**2 * spin_squared / 5 + gravity * gap
    return {
        "time": state.time,
        "position_x": ball.position.x,
        "height": gap,
        "speed": norm(ball.velocity),
        "energy": params["mass"] * per_mass,
        "apex_height": apex,
        "apex_ratio": jnp.where(thrown, apex / jnp.where(thrown, state.launch_apex, 1), 0),
        "bounces": state.bounces,
        "distance_to_target": jnp.abs(ball.position.x - params["target"]),
        "penetration": jnp.maximum(-gap, 0),
    }
