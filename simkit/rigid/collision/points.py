"""Contact points: what collision detection gives to every method of contact."""

import jax

from simkit.core.pytree import pytree
from simkit.rigid.algebra.quaternion import Quaternion
from simkit.rigid.algebra.vector import Vector


@pytree
class Placed:
    """Shapes in space, one number each along the first axis.

    Attributes:
        position: of the centers in m.
        orientation: from the body's frame to that of space.
        half_lengths: of the box that the radius rounds, see `simkit.rigid.bodies.bodies.Bodies`, in m.
        radius: in m.
    """

    position: Vector
    orientation: Quaternion
    half_lengths: Vector
    radius: jax.Array


@pytree
class Points:
    """Points at which a first body may touch a second one (or a plane).

    Every pair of shapes has a fixed number of slots, along the first axis of each array; the pairs follow along the
    second. A slot keeps its meaning from step to step, so that impulses may be carried over.

    Attributes:
        position: midway between the surfaces, in m.
        normal: unit vector from the second body to the first.
        gap: distance of the surfaces along the normal in m, negative where they overlap.
    """

    position: Vector
    normal: Vector
    gap: jax.Array
