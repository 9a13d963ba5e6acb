"""Contact points of each shape against a plane."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot, select
from simkit.rigid.collision.points import Placed, Points
from simkit.rigid.collision.slots import along_slots, in_slots, midway

# Points that each shape has against a plane.
SLOTS = {"sphere": 1, "disk": 1, "capsule": 2, "box": 4}


def against_plane(kind: str, placed: Placed, normal: Vector, offset: jax.Array) -> Points:
    """Return where bodies of one kind may touch planes ``n . x = d``.

    A sphere has its lowest point, a capsule those of its two ends, a box the corners of the face that looks most
    towards the plane; a slot is a corner's place in that face. The gap is exact on either side of the plane.

    Args:
        kind: one of `simkit.rigid.bodies.bodies.KINDS`.
        placed: the bodies, (pairs, ...).
        normal: n, unit vectors towards the bodies, which broadcast against those arrays.
        offset: d in m, likewise.

    Returns:
        Points with `SLOTS[kind]` slots, whose normal is n.
    """
    if kind == "box":
        lowest = _corners(placed, normal)
    elif kind == "capsule":
        _, _, axis = axes_of(placed.orientation)
        end = along_slots((-1, 1), placed.radius)
        lowest = placed.position + end * placed.half_lengths.z * axis - placed.radius * normal
    else:
        lowest = (placed.position - placed.radius * normal)[None]
    gap = dot(normal, lowest) - offset
    return in_slots(Points(position=midway(lowest, normal, gap), normal=normal, gap=gap))


def _corners(placed: Placed, normal: Vector) -> Vector:
    a, b, c = axes_of(placed.orientation)
    alongs = [dot(axis, normal) for axis in (a, b, c)]
    first, second, third = (jnp.abs(along) for along in alongs)
    is_first = (first >= second) & (first >= third)
    is_second = second >= third
    halves = placed.half_lengths
    a, b, c = halves.x * a, halves.y * b, halves.z * c

    def cyclic(first: Vector, second: Vector, third: Vector) -> Vector:
        return select(is_first, first, select(is_second, second, third))

    along = jnp.where(is_first, alongs[0], jnp.where(is_second, alongs[1], alongs[2]))
    a, b, c = staged((a, b, c))
    center = placed.position - jnp.where(along >= 0, 1, -1) * cyclic(a, b, c)
    one, other = along_slots((-1, 1, 1, -1), placed.radius), along_slots((-1, -1, 1, 1), placed.radius)
    return center + one * cyclic(b, c, a) + other * cyclic(c, a, b)
