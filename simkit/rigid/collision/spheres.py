"""Contact points of spheres against spheres, capsules and boxes."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, dot, each, perpendicular, select
from simkit.rigid.collision.points import Placed, Points
from simkit.rigid.collision.slots import clamp, cyclic, midway, sign

# Distance of two points, relative to the sizes of bodies, below which they count as one.
ROUNDING = 1e-6


def sphere_sphere(a: Placed, b: Placed) -> Points:
    """Return where spheres (or disks) may touch: one point on the line of their centers.

    Args:
        a: the first of each pair, (pairs, ...).
        b: the second of each pair.

    Returns:
        Points with one slot; spheres with one center touch along z, in the plane that disks move in.
    """
    return _one_slot(between_balls(a.position, a.radius, b.position, b.radius, up(a.radius)))


def sphere_capsule(a: Placed, b: Placed) -> Points:
    """Return where spheres may touch capsules: one point on the line to the nearest point of the axis.

    Args:
        a: the spheres, (pairs, ...).
        b: the capsules.

    Returns:
        Points with one slot; a sphere with its center on the axis is pushed off across it.
    """
    _, _, axis = axes_of(b.orientation)
    nearest = b.position + clamp(dot(a.position - b.position, axis), b.half_lengths.z) * axis
    across, _ = perpendicular(axis)
    return _one_slot(between_balls(a.position, a.radius, nearest, b.radius, across))


def sphere_box(a: Placed, b: Placed) -> Points:
    """Return where spheres may touch boxes: one point on the line to the nearest point of the box.

    A sphere with its center inside a box is pushed out through the nearest face.

    Args:
        a: the spheres, (pairs, ...).
        b: the boxes.

    Returns:
        Points with one slot.
    """
    center, halves = unrotate(b.orientation, a.position - b.position), b.half_lengths
    beyond = center - each(clamp, center, halves)
    depths = each(lambda half, along: half - jnp.abs(along), halves, center)
    is_first = (depths.x <= depths.y) & (depths.x <= depths.z)
    # The nearest face, for centers inside.
    face, _, _ = cyclic(is_first, depths.y <= depths.z, *axes_of_frame(a.radius))
    side = sign(dot(face, center))
    normal, distance = along(beyond, a.radius, side * face)
    distance = jnp.where(distance > 0, distance, side * dot(face, center) - dot(face, halves))
    normal, gap = rotate(b.orientation, normal), distance - a.radius
    return _one_slot(Points(position=midway(a.position - a.radius * normal, normal, gap), normal=normal, gap=gap))


def between_balls(
    first: Vector, first_radius: jax.Array, second: Vector, second_radius: jax.Array, otherwise: Vector
) -> Points:
    """Return where balls may touch.

    Args:
        first: centers in m.
        first_radius: in m.
        second: centers in m.
        second_radius: in m.
        otherwise: normals of balls with one center, up to rounding.
    """
    direction, distance = along(first - second, first_radius + second_radius, otherwise)
    normal, gap = direction, distance - (first_radius + second_radius)
    return Points(position=midway(first - first_radius * normal, normal, gap), normal=normal, gap=gap)


def along(apart: Vector, size: jax.Array, otherwise: Vector) -> tuple[Vector, jax.Array]:
    """Return the direction and the length of vectors, and another direction and zero for those of rounding only.

    Args:
        apart: vectors in m.
        size: what their lengths are compared with, the bodies that they connect for instance, in m.
        otherwise: unit vectors.
    """
    squared = dot(apart, apart)
    real = squared > (ROUNDING * size) ** 2
    length = jnp.sqrt(jnp.where(real, squared, 1))
    return select(real, apart / length, otherwise), jnp.where(real, length, 0)


def up(like: jax.Array) -> Vector:
    """Return the unit vector along z at each place of an array."""
    _, _, z = axes_of_frame(like)
    return z


def axes_of_frame(like: jax.Array) -> tuple[Vector, Vector, Vector]:
    """Return the unit vectors along x, y and z at each place of an array."""
    nothing, one = jnp.zeros_like(like), jnp.ones_like(like)
    return Vector(one, nothing, nothing), Vector(nothing, one, nothing), Vector(nothing, nothing, one)


def _one_slot(points: Points) -> Points:
    return each(lambda values: values[None], points)
