"""Change of momenta by forces and torques over a time step."""

import dataclasses

import jax

from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench


def kick(motion: Motion, bodies: Bodies, wrench: Wrench, duration: jax.Array) -> Motion:
    """Return the motion after a wrench has acted for a time, ``v' = v + F t / m``, ``L' = L + N t``.

    Args:
        motion: state.
        bodies: what moves.
        wrench: forces F and torques N, constant.
        duration: t in s.
    """
    return dataclasses.replace(
        motion,
        velocity=motion.velocity + wrench.force * (duration / bodies.mass),
        angular_momentum=motion.angular_momentum + wrench.torque * duration,
    )
