"""Loads on bodies: gravity, user-defined forces and torques, and their sum."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.core.simulation import Params
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.scene import Load, parameter_of_load


def gravity(name: str = "gravity") -> Load:
    """Return the weight ``-m g`` along z.

    Args:
        name: name of the parameter g, in m/s^2.

    Example:
        >>> weight = rigid.gravity()
        >>> ball = rigid.repeat(rigid.sphere(2.0, 0.1), 1)
        >>> motion = rigid.motion_of(ball, (0.0, 0.0, 3.0))
        >>> params = {"gravity": jnp.array(9.81)}
        >>> print(f"{weight.wrench(motion, ball, 0.0, params).force.z[0]:.2f} N")
        -19.62 N
        >>> print(f"{weight.energy(motion, ball, params).sum():.2f} J")
        58.86 J
    """

    def wrench(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        del motion, time
        zero = zeros(bodies.mass)
        return Wrench(force=Vector(zero.x, zero.y, -bodies.mass * parameter_of_load(name, params)), torque=zero)

    def energy(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
        return jnp.sum(bodies.mass * parameter_of_load(name, params) * motion.position.z, axis=0)

    return Load(wrench=wrench, energy=energy)


def applied(function: Callable[[Motion, Bodies, jax.Array, Params], Wrench]) -> Load:
    """Return the load that a pure function of the state of one scene computes.

    Args:
        function: ``(motion, bodies, time, params) -> Wrench``, every array (bodies,); may depend on time in any way,
            and differentiably on the other arguments.

    Example:
        >>> def wind(motion, bodies, time, params):
        ...     return rigid.Wrench(force=-params["drag"] * motion.velocity, torque=rigid.zeros(bodies.mass))
        >>> ball = rigid.repeat(rigid.sphere(1.0, 0.1), 1)
        >>> motion = rigid.motion_of(ball, (0.0, 0.0, 1.0), velocity=(4.0, 0.0, 0.0))
        >>> rigid.applied(wind).wrench(motion, ball, 0.0, {"drag": 0.5}).force.x.tolist()
        [-2.0]
    """
    return Load(wrench=function)


def wrench_of(loads: Sequence[Load], motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    """Return the sum of loads, of one scene or of members of an ensemble along the last axis of every array.

    A load is a function of one scene, with parameters of any shape; only here is it mapped over the members.

    Args:
        loads: the loads, possibly none.
        motion: state of the bodies.
        bodies: constants of the bodies.
        time: in s, a number or (members,).
        params: of the scene.
    """

    def of_scene(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
        zero = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
        each = (load.wrench(motion, bodies, time, params) for load in loads)
        # Fused with each other and with the step, several loads take minutes to compile (ten of them, with hinge
        # angles: 55 s of CPU instead of 5); one is left to the step.
        return sum(map(computed_once, each) if len(loads) > 1 else each, zero)

    mapped = of_scene if jnp.ndim(time) == 0 else jax.vmap(of_scene, in_axes=-1, out_axes=-1)
    return mapped(motion, bodies, time, params)
