"""Contact points of spheres, disks, capsules and boxes against planes."""

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.quaternion import axes_of
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot
from simkit.rigid.collision.points import Placed, Points, along_slots, cyclic, in_slots, midway, sign

# Number of contact points of each shape against a plane.
SLOTS = {"sphere": 1, "disk": 1, "capsule": 2, "box": 4}


def against_plane(kind: str, placed: Placed, normal: Vector, offset: jax.Array) -> Points:
    """Return the contact points of bodies of one kind with planes ``n . x = d``.

    A sphere has its lowest point, a capsule those of its two ends, a box the corners of the face whose outward normal
    is nearest to -n, one slot per corner. The gap is exact on either side of the plane.

    Args:
        kind: one of `simkit.rigid.bodies.bodies.KINDS`.
        placed: the bodies, (pairs, ...).
        normal: n, unit vectors towards the bodies, broadcast against the bodies.
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
    """Return the four corners of the face of boxes whose outward normal is nearest to the plane's, reversed."""
    a, b, c = axes_of(placed.orientation)
    alongs = [dot(axis, normal) for axis in (a, b, c)]
    first, second, third = (jnp.abs(along) for along in alongs)
    chosen = (first >= second) & (first >= third), second >= third
    halves = placed.half_lengths
    along, _, _ = cyclic(*chosen, *alongs)
    to_face, edge_u, edge_v = cyclic(*chosen, *staged((halves.x * a, halves.y * b, halves.z * c)))
    center = placed.position - sign(along) * to_face
    u, v = along_slots((-1, 1, 1, -1), placed.radius), along_slots((-1, -1, 1, 1), placed.radius)
    return center + u * edge_u + v * edge_v
