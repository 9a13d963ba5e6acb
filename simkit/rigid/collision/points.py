"""Contact points, the output of collision detection, and placed shapes, its input."""

import jax

from simkit.core.pytrees import pytree
from simkit.rigid.algebra.quaternion import Quaternion
from simkit.rigid.algebra.vector import Vector


@pytree
class Placed:
    """Shapes with position and orientation; the first axis of every array counts the bodies or pairs.

    Attributes:
        position: of the centers in m.
        orientation: rotation from the body frame to the world frame.
        half_lengths: of the box that the radius rounds, see `simkit.rigid.bodies.bodies.Bodies`, in m.
        radius: in m.
    """

    position: Vector
    orientation: Quaternion
    half_lengths: Vector
    radius: jax.Array


@pytree
class Points:
    """Potential contact points of a first body with a second one or a plane, arrays (slots, pairs, ...).

    Every pair of shapes has a fixed number of slots. A slot keeps its geometric meaning (for example a corner) from
    step to step, so that impulses can be carried over.

    Attributes:
        position: midway between the surfaces, in m.
        normal: unit vector from the second body to the first.
        gap: distance of the surfaces along the normal in m, negative where they overlap.
    """

    position: Vector
    normal: Vector
    gap: jax.Array
