"""Optimal control of a puck: a planned force brings it to rest at a goal with the least effort."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector, dot, norm, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, disk, repeat
from simkit.rigid.bodies.motion import Motion, Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
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
    """

    def force(time: jax.Array, params: Params) -> Vector:
        # In units of the interval between knots, the times of the knots do not depend on the time step.
        scaled = time / (steps_between * params["time_step"])
        weights = jnp.maximum(1 - jnp.abs(scaled - jnp.arange(knots)), 0)
        x, z = (jnp.sum(weights * params[name]) for name in ("force_x", "force_z"))
        return Vector(x, jnp.zeros_like(x), z)

    def push(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del motion
        zero = zeros(bodies.mass)
        return Wrench(force=zero + force(time, params), torque=zero)

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time
        offset, velocity = (motion.position - _goal(params))[0], motion.velocity[0]
        effort = _effort(params, steps_between * params["time_step"])
        penalty = params["position_weight"] * dot(offset, offset) + params["velocity_weight"] * dot(velocity, velocity)
        return {"cost": effort + penalty, "effort": effort, "miss": norm(offset), "speed": norm(velocity)}

    def observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies
        center = motion.position[0]
        tip = center + DRAWN * force(time, params)
        return {"target": stacked(_goal(params)), "links": jnp.stack([stacked(center), stacked(tip)])[None]}

    plan = {
        "force_x": Parameter(_line(1.0, -1.0, knots), unit="N", doc="force along the cushion at the knots"),
        "force_z": Parameter(_line(-1.5, 0.5, knots), unit="N", doc="force away from the cushion at the knots"),
    }
    scene = Scene(
        params=PARAMETERS | plan,
        bodies=_bodies,
        start=_start,
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


def _bodies(params: Params) -> Bodies:
    return repeat(disk(params["mass"], params["radius"]), 1)


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
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
