"""Contact points of spheres and disks against spheres, disks, capsules and boxes."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.vector import Vector, dot, each, perpendicular, select
from simkit.rigid.collision.points import Placed, Points, clamp, cyclic, midway, sign

# Distance of two points, relative to the sizes of bodies, below which they count as coincident.
ROUNDING = 1e-6


def sphere_sphere(a: Placed, b: Placed) -> Points:
    """Return the contact points of spheres or disks: one point on the line of their centers.

    Args:
        a: the first of each pair, (pairs, ...).
        b: the second of each pair.

    Returns:
        Points with one slot; the normal of concentric spheres is z, which lies in the x-z plane of disks.
    """
    return _one_slot(between_balls(a.position, a.radius, b.position, b.radius, up(a.radius)))


def sphere_capsule(a: Placed, b: Placed) -> Points:
    """Return the contact points of spheres with capsules: one point on the line to the nearest point of the axis.

    Args:
        a: the spheres, (pairs, ...).
        b: the capsules.

    Returns:
        Points with one slot; a sphere with its center on the axis is pushed off perpendicularly.
    """
    _, _, axis = axes_of(b.orientation)
    nearest = b.position + clamp(dot(a.position - b.position, axis), b.half_lengths.z) * axis
    across, _ = perpendicular(axis)
    return _one_slot(between_balls(a.position, a.radius, nearest, b.radius, across))


def sphere_box(a: Placed, b: Placed) -> Points:
    """Return the contact points of spheres with boxes: one point on the line to the nearest point of the box.

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
    first: Vector, first_radius: jax.Array, second: Vector, second_radius: jax.Array, fallback: Vector
) -> Points:
    """Return the contact points of balls.

    Args:
        first: centers in m.
        first_radius: in m.
        second: centers in m.
        second_radius: in m.
        fallback: normals of balls that are concentric up to rounding.
    """
    direction, distance = along(first - second, first_radius + second_radius, fallback)
    normal, gap = direction, distance - (first_radius + second_radius)
    return Points(position=midway(first - first_radius * normal, normal, gap), normal=normal, gap=gap)


def along(apart: Vector, size: jax.Array, fallback: Vector) -> tuple[Vector, jax.Array]:
    """Return the direction and the length of vectors; a fallback direction and zero where the length is rounding.

    Args:
        apart: vectors in m.
        size: reference length for rounding in m, for instance the size of the bodies that the vectors connect.
        fallback: unit vectors.
    """
    squared = dot(apart, apart)
    real = squared > (ROUNDING * size) ** 2
    length = jnp.sqrt(jnp.where(real, squared, 1))
    return select(real, apart / length, fallback), jnp.where(real, length, 0)


def up(like: jax.Array) -> Vector:
    """Return the unit vector along z, in the shape and precision of an array."""
    _, _, z = axes_of_frame(like)
    return z


def axes_of_frame(like: jax.Array) -> tuple[Vector, Vector, Vector]:
    """Return the unit vectors along x, y and z, in the shape and precision of an array."""
    zero, one = jnp.zeros_like(like), jnp.ones_like(like)
    return Vector(one, zero, zero), Vector(zero, one, zero), Vector(zero, zero, one)


def _one_slot(points: Points) -> Points:
    return each(lambda values: values[None], points)
