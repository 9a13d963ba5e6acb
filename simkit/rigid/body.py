"""Where a rigid body is and how it moves."""

import jax

from simkit.core.pytree import pytree


@pytree
class Body:
    """One rigid body; map over a leading axis for many.

    Attributes:
        position: center of mass in m, (3,).
        orientation: unit quaternion (w, x, y, z) from the body's frame to that of space, (4,).
        velocity: of the center of mass in m/s, (3,).
        angular_velocity: in the frame of space, in rad/s, (3,).
    """

    position: jax.Array
    orientation: jax.Array
    velocity: jax.Array
    angular_velocity: jax.Array
