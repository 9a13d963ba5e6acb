"""A puck that a planned force brings to rest at a goal, with as little effort as possible."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
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
    "start_gap": Parameter(0.8, NOT_NEGATIVE, "m", "between puck and cushion at the start"),
    "goal_x": Parameter(2.0, unit="m", doc="how far along the cushion the goal is"),
    "goal_gap": Parameter(0.8, NOT_NEGATIVE, "m", "between puck and cushion at the goal"),
    "position_weight": Parameter(
        1000.0, NOT_NEGATIVE, "N^2 s/m^2", "weight of the square of the distance from the goal"
    ),
    "velocity_weight": Parameter(1000.0, NOT_NEGATIVE, "N^2 s^3/m^2", "weight of the square of the speed"),
    "time_step": Parameter(0.05, POSITIVE, "s", "time step; stretches the plan with it"),
}
# Length at which frames show a force, m/N.
DRAWN = 0.3


@described(
    RIGID,
    cost=("N^2 s", "effort and penalty, as if the run ended now"),
    effort=("N^2 s", "effort of the whole plan"),
    miss=("m", "distance from the goal"),
)
def steered_puck(*, knots: int = 5, steps_between: int = 10) -> Simulation:
    """Return a puck on an air table, seen from above, with a cushion along z = 0 and a force that is planned ahead.

    Each component of the force is a polygon through its values at ``knots`` equal distances in time, the last one at
    T = (knots - 1) steps_between time_step. What is to be smallest is

        cost = effort + w_x |x(T) - goal|^2 + w_v |v(T)|^2,     effort = integral of |F|^2 dt from 0 to T

    From rest to rest over a distance d in a straight line the least effort is ``12 m^2 d^2 / T^3``, by a force that
    falls linearly in time from ``6 m d / T^2`` to its negative (Pontryagin). A cushion without loss is a mirror: by way
    of it, the least effort is that of the straight line to the image of the goal, ``12 m^2 (d^2 + 4 h^2) / T^3`` for
    gaps h at both ends, if the puck gets there with no force on it, at T/2, which is a knot for an odd number of them.

    Which way is found depends on the plan that the search starts from: derivatives do not tell of an impact that does
    not happen. By default it starts from one that sends the puck to the cushion.

    w_x is the parameter ``position_weight`` and w_v ``velocity_weight``; ``force_x`` and ``force_z``, ``knots`` numbers
    each, are the plan.

    Diagnostics, besides those of every scene: ``cost`` as if the run ended now, ``effort`` of the whole plan (N^2 s),
    ``miss``, distance from the goal now (m), and ``speed`` now (m/s).

    Args:
        knots: of the force, 2 to 1000.
        steps_between: time steps between knots, 1 to 1000.

    Raises:
        UserError: if an argument is out of its range.
    """
    for name, value, low in (("knots", knots, 2), ("steps_between", steps_between, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= 1000:
            raise UserError(f"{name} = {value!r} is not a whole number in [{low}, 1000]; choose one within")

    def force(time: jax.Array, params: Params) -> Vector:
        # In units of the distance between knots, time does not depend on the time step where a knot is.
        place = time / (steps_between * params["time_step"])
        weights = jnp.maximum(1 - jnp.abs(place - jnp.arange(knots)), 0)
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
    """Return the integral of the square of a polygon, exactly."""
    total = jnp.zeros_like(interval)
    for name in ("force_x", "force_z"):
        first, second = params[name][:-1], params[name][1:]
        total += interval / 3 * jnp.sum(first**2 + first * second + second**2)
    return total
