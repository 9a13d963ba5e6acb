"""Kick: change of momenta by constant forces and torques over a time."""

import dataclasses

import jax

from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench


def kick(motion: Motion, bodies: Bodies, wrench: Wrench, duration: jax.Array) -> Motion:
    """Return the motion after a wrench has acted for a time, ``v' = v + F t / m``, ``L' = L + N t``.

    Args:
        motion: state of the bodies.
        bodies: constants of the bodies.
        wrench: constant forces F and torques N.
        duration: t in s.
    """
    return dataclasses.replace(
        motion,
        velocity=motion.velocity + wrench.force * (duration / bodies.mass),
        angular_momentum=motion.angular_momentum + wrench.torque * duration,
    )
