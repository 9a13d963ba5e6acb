"""What acts on bodies: gravity, and any function of the user's."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.scene import Load, parameter_of_load


def gravity(name: str = "gravity") -> Load:
    """Return the weight ``-m g`` along z.

    Args:
        name: of the parameter that holds g, in m/s^2.
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del motion, time
        nothing = zeros(bodies.mass)
        return Wrench(
            force=Vector(nothing.x, nothing.y, -bodies.mass * parameter_of_load(name, params)), torque=nothing
        )

    def energy(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        return jnp.sum(bodies.mass * parameter_of_load(name, params) * motion.position.z, axis=0)

    return Load(wrench=wrench, energy=energy)


def applied(function: Callable[[Motion, Bodies, jax.Array, Params], Wrench]) -> Load:
    """Return a load from any pure function of the state of one scene.

    Args:
        function: ``(motion, bodies, time, params) -> Wrench`` with one number for each body in every array; may depend
            on time and differentiably on everything else.
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        if jnp.ndim(time) == 0:
            return function(motion, bodies, time, params)
        # Members of an ensemble lie along the last axis, which a function of one scene does not know.
        return jax.vmap(function, in_axes=-1, out_axes=-1)(motion, bodies, time, params)

    return Load(wrench=wrench)
