"""Balls with hard impacts at their exact times: a bouncing ball, and a pool break."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import compensated_sum
from simkit.core.formulation import computed_once
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.vector import Vector, dot, norm, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.bounces import (
    SLIP_PER_IMPULSE,
    Ball,
    bounce_series,
    impact_impulse,
    push,
    slide,
    slip_velocity,
    time_of_impact,
)
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor, gather_planes, plane
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Planes, Scene
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate

BOUNCING_BALL = {
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

BALL_DIMENSIONS = {
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

    Example:
        >>> run = simkit.run(rigid.bouncing_ball(), steps=200, every=200, launch_angle=90.0)
        >>> bounces, ratio = int(run["bounces"][-1]), float(run["apex_ratio"][-1])
        >>> print(f"after {bounces} bounces the apex is {ratio:.4f} = {0.75 ** (2 * bounces):.4f} of the first")
        after 2 bounces the apex is 0.3164 = 0.3164 of the first
    """
    return Simulation(
        init=_ball_init,
        step=_ball_step,
        observe=_ball_observe,
        diagnose=_ball_diagnose,
        params=BOUNCING_BALL,
        dimensions=BALL_DIMENSIONS,
    )


def _ball_init(params: Params, key: jax.Array) -> BouncingBall:
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


def _ball_step(state: BouncingBall, params: Params) -> BouncingBall:
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


def _ball_observe(state: BouncingBall, params: Params) -> Arrays:
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


def _ball_diagnose(state: BouncingBall, params: Params) -> Arrays:
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


BILLIARDS_BREAK = {
    "speed": Parameter(7.0, unit="m/s", doc="speed of the cue ball at the start"),
    "angle": Parameter(0.5, unit="deg", doc="angle of its velocity from the long axis of the table"),
    "offset": Parameter(0.0, unit="m", doc="offset of its start from the long axis, along y"),
    "spin": Parameter(0.0, unit="rad/s", doc="spin of the cue ball at the start; positive is top spin"),
    "gap": Parameter(0.001, unit="m", doc="gap between neighbors in the rack"),
    "radius": Parameter(0.028575, POSITIVE, "m", "radius of the balls"),
    "mass": Parameter(0.17, POSITIVE, "kg", "mass of each ball; sets energy and momentum, not the motion"),
    "restitution": Parameter(
        0.95, SHARE, "1", "coefficient of restitution of balls, between each other and on cushions and cloth"
    ),
    "ball_friction": Parameter(0.05, NOT_NEGATIVE, "1", "coefficient of friction between balls"),
    "cloth_friction": Parameter(
        0.2, NOT_NEGATIVE, "1", "coefficient of friction on the cloth, if larger than that between balls"
    ),
    "cushion_friction": Parameter(
        0.15, NOT_NEGATIVE, "1", "coefficient of friction on the cushions, if larger than that between balls"
    ),
    "length": Parameter(2.54, POSITIVE, "m", "length of the table, along x"),
    "width": Parameter(1.27, POSITIVE, "m", "width of the table, along y"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.005, POSITIVE, "s", "time step; impacts are at their exact times within it"),
}


@described(
    RIGID,
    cue_x=("m", "cue ball along x"),
    cue_y=("m", "cue ball along y"),
    apex_x=("m", "apex ball of the rack along x"),
    fastest=("m/s", "largest speed"),
)
@arguments(rows=whole("rows of the rack", low=1, high=5))
def billiards_break(*, rows: int = 5, impacts: int = 32) -> Simulation:
    """Return the break of a rack: solid spheres that slide and roll on cloth, and hit each other and four cushions.

    The table extends from x = 0 to ``length`` and from y = 0 to ``width``. The cue ball starts a quarter of the length
    from one end, the apex of the triangle is a quarter from the other. Impacts are hard and sequential (the gap between
    the balls of the rack determines their order); cushions are vertical planes, so a ball may hop.

    A break is chaotic: every impact multiplies small differences by about the distance between impacts over the radius,
    so derivatives grow from impact to impact, and hold for ever smaller changes.

    Good values: restitution 0.92 to 0.98, friction between balls 0.03 to 0.08, on cloth 0.15 to 0.4.

    Args:
        rows: number of rows of the triangle, 1 to 5.
        impacts: budget of events per step.

    Returns:
        The simulation; it also diagnoses ``cue_x``, ``cue_y``, ``apex_x`` (of the apex ball) and ``fastest``, the
        largest speed.

    Raises:
        UserError: if rows is outside [1, 5].

    Example:
        >>> run = simkit.run(rigid.billiards_break(rows=2), steps=100, every=100)
        >>> print(f"{run.sizes['body']} balls, the cue ball at {float(run['cue_x'][-1]):.1f} m of 2.54 m")
        4 balls, the cue ball at 1.8 m of 2.54 m
    """
    # Positions in the triangle, in units of the distance of neighbors, the apex first.
    row, column = np.array([(row, column) for row in range(rows) for column in range(row + 1)], float).T
    along, across = np.sqrt(3) / 2 * row, column - row / 2
    # Points on the edge of the table, in units of its sides: it is drawn in short pieces, each with its own shadow.
    corners, pieces = np.arange(5), np.arange(0, 4, 1 / 16)
    edge_along, edge_across = np.interp(pieces, corners, [0, 1, 1, 0, 0]), np.interp(pieces, corners, [0, 0, 1, 1, 0])

    def bodies(params: Params) -> Bodies:
        ball = sphere(params["mass"], params["radius"], params["ball_friction"], params["restitution"])
        return repeat(ball, 1 + len(row))

    def planes(params: Params) -> Planes:
        friction = params["cushion_friction"]
        return gather_planes(
            [
                floor(params["cloth_friction"]),
                plane((1, 0, 0), 0.0, friction),
                plane((-1, 0, 0), -params["length"], friction),
                plane((0, 1, 0), 0.0, friction),
                plane((0, -1, 0), -params["width"], friction),
            ]
        )

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        zero, still = zeros(bodies.mass), jnp.zeros(len(row), bodies.mass.dtype)
        spacing, length, middle = 2 * params["radius"] + params["gap"], params["length"], params["width"] / 2
        angle = jnp.deg2rad(params["angle"])
        ahead, aside = jnp.cos(angle), jnp.sin(angle)

        def all_balls(cue: jax.Array, rack: jax.Array) -> jax.Array:
            return jnp.concatenate([cue[None], rack])

        position = Vector(
            all_balls(length / 4, 3 / 4 * length + spacing * jnp.asarray(along, still.dtype)),
            all_balls(middle + params["offset"], middle + spacing * jnp.asarray(across, still.dtype)),
            zero.z + params["radius"],
        )
        velocity = Vector(all_balls(params["speed"] * ahead, still), all_balls(params["speed"] * aside, still), zero.z)
        spin = Vector(all_balls(-params["spin"] * aside, still), all_balls(params["spin"] * ahead, still), zero.z)
        return motion_of(bodies, position, velocity=velocity, angular_velocity=spin)

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        x, y = motion.position.x, motion.position.y
        return {"cue_x": x[0], "cue_y": y[0], "apex_x": x[1], "fastest": jnp.max(norm(motion.velocity), axis=0)}

    def observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        along, across = (jnp.asarray(part, bodies.mass.dtype) for part in (edge_along, edge_across))
        height = jnp.broadcast_to(bodies.radius[0], along.shape)
        ends = jnp.stack([params["length"] * along, params["width"] * across, height], axis=-1)
        return {"links": jnp.stack([ends, jnp.roll(ends, -1, axis=0)], axis=1)}

    return simulate(
        Scene(
            params=BILLIARDS_BREAK,
            bodies=bodies,
            start=start,
            dynamics=Events(impacts=impacts),
            planes=planes,
            loads=(gravity(),),
            measures=measures,
            observe=observe,
            dimensions={"links": ("cushion_piece", "end", "space")},
        )
    )
