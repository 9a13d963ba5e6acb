"""Small jointed scenes for several tests."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.joint import hinge, hinge_angle, hinge_rate, joint, slider_displacement
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.simulate import simulate

AXIS = (0.0, -1.0, 0.0)
LENGTHS = (0.1, 0.1, 1.0)


def key():
    return jax.random.key(0)


def params_of(**values):
    return {name: jnp.asarray(value, dtype=float) for name, value in values.items()}


def moment(length=1.0, mass=1.0):
    """Return the moment of inertia of the pendulum's bar about its pivot."""
    return mass * (0.1**2 + length**2) / 12 + mass * length**2 / 4


def pivot(params):
    return hinge(0, anchor=(0, 0, params["length"] / 2), base=(0, 0, 0), axis=AXIS)


def pendulum(loads, order=2, **values):
    """Return a bar on a hinge at its upper end, at an angle (rad) from straight down, with an angular velocity."""

    def start(params, bodies, key):
        none = jnp.zeros(1)
        angle, half = params["angle"], params["length"] / 2
        return motion_of(
            bodies,
            Vector(none + half * jnp.sin(angle), none, none - half * jnp.cos(angle)),
            exponential(Vector(none, none - angle, none)),
            Vector(none + half * params["rate"] * jnp.cos(angle), none, none + half * params["rate"] * jnp.sin(angle)),
            Vector(none, none - params["rate"], none),
        )

    def measures(motion, bodies, time, params):
        return {"angle": hinge_angle(motion, pivot(params)), "rate": hinge_rate(motion, bodies, pivot(params))}

    defaults = {"length": 1.0, "mass": 1.0, "angle": 0.0, "rate": 0.0, "time_step": 1e-3}
    return simulate(
        Scene(
            params=params_of(**(defaults | values)),
            bodies=lambda params: gather([box(params["mass"], (0.1, 0.1, params["length"]))]),
            start=start,
            dynamics=Jointed(order=order),
            joints=lambda params: (pivot(params),),
            loads=loads,
            measures=measures,
        )
    )


def carriage(loads, **values):
    """Return a box on a slider along an axis that lies obliquely in space, at a displacement."""
    axis = (2 / 3, 1 / 3, 2 / 3)

    def rail(params):
        return joint("slider", 0, axis=axis)

    def start(params, bodies, key):
        none, x = jnp.zeros(1), params["displacement"]
        return motion_of(bodies, Vector(none + axis[0] * x, none + axis[1] * x, none + axis[2] * x))

    return simulate(
        Scene(
            params=params_of(**({"mass": 2.0, "displacement": 0.3, "time_step": 1e-3} | values)),
            bodies=lambda params: gather([box(params["mass"], LENGTHS)]),
            start=start,
            dynamics=Jointed(order=4),
            joints=lambda params: (rail(params),),
            loads=loads,
            measures=lambda motion, bodies, time, params: {"x": slider_displacement(motion, rail(params))},
        )
    )


def at_rest(bodies, places):
    """Return bodies at rest at positions (n, 3)."""
    x, y, z = (jnp.asarray([place[axis] for place in places], dtype=float) for axis in range(3))
    return motion_of(bodies, Vector(x, y, z) + zeros(bodies.mass))
