"""Assembly of jointed bodies before a run: from a rough placement to one in which all joints are closed."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import turn
from simkit.rigid.algebra.vector import each
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity, momentum_of_rotation
from simkit.rigid.joints.constraints import Joints, jacobian, mobility, place, spread_impulse, violations
from simkit.rigid.joints.inverse import generalized_inverse, times_vector
from simkit.rigid.joints.rattle import without_opening


def assemble(motion: Motion, bodies: Bodies, joints: Joints, iterations: int = 10) -> Motion:
    """Return bodies displaced the least, in the norm of their inertia, so that all joints are closed and stay so.

    Newton's method, ``x <- x - M^-1 J^T (J M^-1 J^T)^+ g``, with a new Jacobian in each iteration; then one impulse
    ends the velocities that would open a joint.

    Args:
        motion: state near a placement with closed joints; angular velocities are kept while bodies turn.
        bodies: constants of the bodies.
        joints: of the scene.
        iterations: of Newton's method; 10 is enough for gaps up to half the size of a body.
    """
    if not joints:
        return motion
    count = motion.position.x.shape[0]
    spin = angular_velocity(motion, bodies)
    still = dataclasses.replace(motion, angular_momentum=each(jnp.zeros_like, spin))

    def newton(_: int, motion: Motion) -> Motion:
        placed = place(joints, motion)
        rows = jacobian(joints, placed, count)
        inverse = generalized_inverse(mobility(rows, motion, bodies))
        push, twist = spread_impulse(rows, -times_vector(inverse, violations(joints, placed)))
        turned = dataclasses.replace(still, orientation=motion.orientation, angular_momentum=twist)
        return dataclasses.replace(
            motion,
            position=motion.position + push / bodies.mass,
            orientation=turn(motion.orientation, angular_velocity(turned, bodies)),
        )

    motion = jax.lax.fori_loop(0, iterations, newton, still)
    motion = dataclasses.replace(motion, angular_momentum=momentum_of_rotation(bodies, motion.orientation, spin))
    return without_opening(motion, bodies, jacobian(joints, place(joints, motion), count))
