"""A puck steered by a planned force, and the identification of a ball's parameters from its trajectory."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.averages import AveragedState
from simkit.core.estimation import beside_recording
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, number, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.vector import Vector, dot, norm, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat
from simkit.rigid.bodies.motion import Motion, Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import World, simulate

STEERED_PUCK = {
    "mass": Parameter(0.5, POSITIVE, "kg", "mass of the puck"),
    "radius": Parameter(0.1, POSITIVE, "m", "radius of the puck"),
    "restitution": Parameter(1.0, SHARE, "1", "coefficient of restitution of the cushion"),
    "start_gap": Parameter(0.8, NOT_NEGATIVE, "m", "gap between puck and cushion at the start"),
    "goal_x": Parameter(2.0, unit="m", doc="position of the goal along the cushion"),
    "goal_gap": Parameter(0.8, NOT_NEGATIVE, "m", "gap between puck and cushion at the goal"),
    "position_weight": Parameter(
        1000.0, NOT_NEGATIVE, "N^2 s/m^2", "weight of the square of the distance from the goal"
    ),
    "velocity_weight": Parameter(1000.0, NOT_NEGATIVE, "N^2 s^3/m^2", "weight of the square of the speed"),
    "time_step": Parameter(0.05, POSITIVE, "s", "time step; the duration of the plan is proportional to it"),
}
# Drawn length of a force in frames, m/N.
DRAWN = 0.3


@described(
    RIGID,
    cost=("N^2 s", "effort plus penalties of the present position and velocity"),
    effort=("N^2 s", "effort of the whole plan"),
    miss=("m", "distance from the goal"),
)
@arguments(
    knots=whole("times at which the force is given", low=2, high=1000),
    steps_between=whole("steps from one of them to the next", low=1, high=1000),
)
def steered_puck(*, knots: int = 5, steps_between: int = 10) -> Simulation:
    """Return a puck on an air table, seen from above, with a cushion along z = 0 and a planned force.

    Each component of the force is piecewise linear in time between its values at ``knots`` equidistant times, the last
    one at T = (knots - 1) steps_between time_step. The cost to be minimized is

        cost = effort + w_x |x(T) - goal|^2 + w_v |v(T)|^2,     effort = integral of |F|^2 dt from 0 to T

    From rest to rest over a distance d in a straight line the least effort is ``12 m^2 d^2 / T^3``, by a force that
    falls linearly in time from ``6 m d / T^2`` to its negative (Pontryagin). An elastic cushion is a mirror: by way of
    it, the least effort is that of the straight line to the image of the goal, ``12 m^2 (d^2 + 4 h^2) / T^3`` for gaps
    h at both ends; the impact is then at T/2, where the force is zero, a knot if their number is odd.

    The local minimum that is found depends on the initial plan: derivatives contain no information about an impact that
    does not occur. The default plan sends the puck to the cushion.

    w_x is the parameter ``position_weight`` and w_v ``velocity_weight``; ``force_x`` and ``force_z``, ``knots`` numbers
    each, are the plan.

    It also diagnoses ``cost`` (N^2 s, with the present position and velocity), ``effort`` of the whole plan (N^2 s),
    ``miss``, the present distance from the goal (m), and ``speed`` (m/s).

    Args:
        knots: number of knots of the force, 2 to 1000.
        steps_between: time steps between knots, 1 to 1000.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> plan = {"force_x": [1.0] * 5, "force_z": [0.0] * 5}
        >>> run = simkit.run(rigid.steered_puck(), steps=40, **plan)
        >>> print(f"effort {float(run['effort'][-1]):.2f} N^2 s = (1 N)^2 for 40 steps of 0.05 s")
        effort 2.00 N^2 s = (1 N)^2 for 40 steps of 0.05 s
    """

    def force(time: jax.Array, params: Params) -> Vector:
        # In units of the interval between knots, the times of the knots do not depend on the time step.
        scaled = time / (steps_between * params["time_step"])
        weights = jnp.maximum(1 - jnp.abs(scaled - jnp.arange(knots)), 0)
        x, z = (jnp.sum(weights * params[name]) for name in ("force_x", "force_z"))
        return Vector(x, jnp.zeros_like(x), z)

    def push(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        zero = zeros(bodies.mass)
        return Wrench(force=zero + force(time, params), torque=zero)

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        offset, velocity = (motion.position - _goal(params))[0], motion.velocity[0]
        effort = _effort(params, steps_between * params["time_step"])
        penalty = params["position_weight"] * dot(offset, offset) + params["velocity_weight"] * dot(velocity, velocity)
        return {"cost": effort + penalty, "effort": effort, "miss": norm(offset), "speed": norm(velocity)}

    def observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        center = motion.position[0]
        tip = center + DRAWN * force(time, params)
        return {"target": stacked(_goal(params)), "links": jnp.stack([stacked(center), stacked(tip)])[None]}

    plan = {
        "force_x": Parameter(_line(1.0, -1.0, knots), unit="N", doc="force along the cushion at the knots"),
        "force_z": Parameter(_line(-1.5, 0.5, knots), unit="N", doc="force away from the cushion at the knots"),
    }
    scene = Scene(
        params=STEERED_PUCK | plan,
        bodies=_puck_bodies,
        start=_puck_start,
        dynamics=Events(impacts=4),
        planes=lambda params: floor(restitution=params["restitution"]),
        loads=(Load(wrench=push),),
        measures=measures,
        observe=observe,
        dimensions={"target": ("space",), "links": ("link", "end", "space")},
    )
    return simulate(scene)


def _line(first: float, last: float, count: int) -> tuple[float, ...]:
    return tuple(np.linspace(first, last, count).tolist())


def _puck_bodies(params: Params) -> Bodies:
    return repeat(disk(params["mass"], params["radius"]), 1)


def _puck_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    zero = zeros(bodies.mass)
    return motion_of(bodies, dataclasses.replace(zero, z=zero.z + params["radius"] + params["start_gap"]))


def _goal(params: Params) -> Vector:
    x = params["goal_x"]
    return Vector(x, jnp.zeros_like(x), params["radius"] + params["goal_gap"])


def _effort(params: Params, interval: jax.Array) -> jax.Array:
    """Return the exact time integral of the square of the piecewise linear force."""
    total = jnp.zeros_like(interval)
    for name in ("force_x", "force_z"):
        first, second = params[name][:-1], params[name][1:]
        total += interval / 3 * jnp.sum(first**2 + first * second + second**2)
    return total


SYSTEM_IDENTIFICATION = {
    "mass": Parameter(0.4, POSITIVE, "kg", "trial mass"),
    "friction": Parameter(0.02, NOT_NEGATIVE, "1", "trial coefficient of Coulomb friction between ball and floor"),
    "restitution": Parameter(0.7, SHARE, "1", "trial coefficient of restitution"),
    "launch_height": Parameter(
        1.0, NOT_NEGATIVE, "m", "height of the ball's lowest point above the floor at the start"
    ),
    "force": Parameter(1.0, unit="N", doc="amplitude of the known force along the floor"),
    "frequency": Parameter(1.0, unit="Hz", doc="frequency of the known force"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(
        0.01, POSITIVE, "s", "time step; the force is integrated to fourth order, impacts are at their exact times"
    ),
}
NOISE = Parameter(0.01, POSITIVE, "m", "standard deviation of the errors of the recorded coordinates")


@described(
    RIGID,
    place=("m", "position of the ball, x and z"),
    recorded_place=("m", "recorded position, x and z, with noise"),
    misfit=("1", "mean squared misfit in units of the noise, so far"),
    distance=("m", "root mean square difference from the recorded ball, without noise"),
)
@arguments(
    true_mass=number("mass of the recorded ball in kg", bounds=(1e-3, 1e3)),
    true_friction=number("its coefficient of friction", bounds=(0, 10)),
    true_restitution=number("its coefficient of restitution", bounds=(0, 1)),
    launch_speed=number("of both balls in m/s", bounds=(-100, 100)),
    radius=number("of both balls in m", bounds=(1e-3, 1e3)),
)
def system_identification(
    *,
    true_mass: float = 0.6,
    true_friction: float = 0.06,
    true_restitution: float = 0.8,
    launch_speed: float = 4.0,
    radius: float = 0.1,
    frame_every: int = 2,
) -> Simulation:
    """Return a bouncing ball with trial parameters beside the noisy recorded positions of another, and their misfit.

    Both are solid spheres thrown over a floor under a known force ``F sin(2 pi f t)`` along x, whose effect determines
    the mass; the bounces determine restitution, and their changes of the horizontal velocity determine friction, as
    long as the ball slips. One step is ``frame_every`` time steps and one recorded position ``(x, z)``, as from a
    camera at the side, with normal errors of standard deviation ``noise``; see
    `simkit.core.estimation.beside_recording` for the misfit and `simkit.core.estimation.standard_errors` for the
    standard errors of the parameters.

    Impacts are events at their exact times: the misfit is a smooth function of all parameters while their number does
    not change, and continuous where it does.

    F is the parameter ``force`` and f ``frequency``. Launch speed and radius are arguments, since they are the same for
    both balls.

    It also diagnoses ``misfit``, up to now, and ``distance``, the root mean square difference of the coordinates from
    the recorded ball now, without noise, in m.

    Frames contain two balls, the recorded one at its noisy positions first, and a link between them.

    Args:
        true_mass: mass of the recorded ball in kg.
        true_friction: coefficient of friction of the recorded ball.
        true_restitution: coefficient of restitution of the recorded ball.
        launch_speed: of both balls along x, in m/s; below 2.9 the second bounce ends the slip and does not determine
            friction.
        radius: of both balls, in m.
        frame_every: time steps between recorded positions.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> ball = rigid.system_identification(true_mass=0.6, true_friction=0.06, true_restitution=0.8)
        >>> run = simkit.run(ball, steps=70, mass=0.6, friction=0.06, restitution=0.8)
        >>> print(f"misfit about 1 at the true parameters: {float(run['misfit'][-1]):.1f}")
        misfit about 1 at the true parameters: 1.0
    """
    shared = {"launch_speed": Parameter(launch_speed), "radius": Parameter(radius)}
    scene = Scene(
        params=SYSTEM_IDENTIFICATION | shared,
        bodies=_ball_bodies,
        start=_ball_start,
        dynamics=Events(impacts=4),
        planes=lambda params: floor(),
        loads=(gravity(), Load(wrench=_ball_push)),
    )
    trial = simulate(scene)

    def observe(state: World, params: Params) -> dict[str, jax.Array]:
        return trial.observe(state, params) | _ball_place(state, params)

    pair = beside_recording(
        dataclasses.replace(trial, observe=observe),
        {"mass": true_mass, "friction": true_friction, "restitution": true_restitution},
        _ball_place,
        every=frame_every,
        noise=NOISE,
        fixed=tuple(shared),
    )

    def observe_both(state: AveragedState, params: Params) -> dict[str, jax.Array]:
        observed = pair.observe(state, params)
        x, z = observed["recorded_place"]
        position = jnp.stack([jnp.stack([x, jnp.zeros_like(x), z]), observed["position"][0]])
        turned = quaternion.stacked(state.current.pair.motion.orientation)[:, 0]
        return {
            "position": position,
            # The pair has the trial ball first, frames have the recorded ball first.
            "orientation": turned[::-1],
            "radius": jnp.concatenate([observed["radius"]] * 2),
            "links": position[None],
            "place": observed["place"],
            "recorded_place": observed["recorded_place"],
        }

    return dataclasses.replace(
        pair,
        observe=observe_both,
        dimensions={
            "position": ("ball", "space"),
            "orientation": ("ball", "quaternion"),
            "radius": ("ball",),
            "links": ("link", "end", "space"),
            "place": ("plane",),
            "recorded_place": ("plane",),
        },
    )


def _ball_bodies(params: Params) -> Bodies:
    return repeat(sphere(params["mass"], params["radius"], params["friction"], params["restitution"]), 1)


def _ball_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    zero = zeros(bodies.mass)
    return motion_of(
        bodies,
        dataclasses.replace(zero, z=zero.z + params["radius"] + params["launch_height"]),
        velocity=dataclasses.replace(zero, x=zero.x + params["launch_speed"]),
    )


def _ball_push(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    zero = zeros(bodies.mass)
    along = params["force"] * jnp.sin(2 * jnp.pi * params["frequency"] * time)
    return Wrench(force=Vector(zero.x + along, zero.y, zero.z), torque=zero)


def _ball_place(state: World, params: Params) -> dict[str, jax.Array]:
    return {"place": jnp.stack([state.motion.position.x[0], state.motion.position.z[0]])}
