"""Semi-implicit Euler method: momenta first, then positions with the new momenta; first order, symplectic."""

from collections.abc import Callable

import jax

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity
from simkit.rigid.integrators.kick import kick


def semi_implicit_euler(
    motion: Motion, bodies: Bodies, load: Callable[[Motion, jax.Array], Wrench], time: jax.Array, time_step: jax.Array
) -> Motion:
    """Return the state one step later, ``p' = p + F dt``, ``x' = x + p'/m dt``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        load: ``(motion, time) -> wrench``, the total load.
        time: in s.
        time_step: dt in s.
    """
    return drift(kick(motion, bodies, load(motion, time), time_step), bodies, time_step)


def drift(motion: Motion, bodies: Bodies, time_step: jax.Array) -> Motion:
    """Return bodies moved and turned at constant velocities, ``x' = x + v dt``, ``q' = exp(omega dt / 2) q``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        time_step: dt in s.
    """
    return Motion(
        position=motion.position + time_step * motion.velocity,
        orientation=turn(motion.orientation, time_step * angular_velocity(motion, bodies)),
        velocity=motion.velocity,
        angular_momentum=motion.angular_momentum,
    )
