"""Contact points of shapes against planes."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.rigid.algebra.quaternion import axes_of, rotate, unrotate
from simkit.rigid.algebra.stages import staged
from simkit.rigid.algebra.vector import Vector, dot, each, times
from simkit.rigid.collision.points import FAR, Placed, Points, along_slots, cyclic, in_slots, midway, sign
from simkit.rigid.shapes.form import Form, arrays_of

# Number of contact points of each shape against a plane; of any other polytope, one for each of `TILTS`.
SLOTS = {"sphere": 1, "disk": 1, "capsule": 2, "box": 4, "cylinder": 6, "ellipsoid": 1}
# Directions in the body frame by which the normal is tilted, to find the lowest corners of a polytope, or nearly so.
TILT = 0.05
TILTS = TILT * np.array([[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
# Sine of the angle up to which a cylinder stands, and has points all around the rim of its end. Beyond, it rolls, and
# points that turn with it would hit the plane ahead of the lowest one.
STANDS = 0.05
# Squared sine below which the lowest point of the rim of a standing cylinder is that of no direction, its middle.
LEVEL = 1e-12


def slots_of(kind: str) -> int:
    """Return the number of contact points of a shape against a plane."""
    return SLOTS.get(kind, len(TILTS))


def against_plane(kind: str, placed: Placed, normal: Vector, offset: jax.Array, forms: Sequence[Form] = ()) -> Points:
    """Return the contact points of bodies of one kind with planes ``n . x = d``.

    A sphere has its lowest point, a capsule those of its two ends, a box the corners of the face whose outward normal
    is nearest to -n, one slot per corner. A cylinder has the lowest point of either end, and four around the rim of
    the lower one while it stands; an ellipsoid its lowest point; a mesh corners that are lowest for slightly tilted
    normals. The gap is exact on either side of the plane.

    Args:
        kind: one of `simkit.rigid.bodies.bodies.KINDS`.
        placed: the bodies, (pairs, ...).
        normal: n, unit vectors towards the bodies, broadcast against the bodies.
        offset: d in m, likewise.
        forms: of the bodies, for meshes.

    Returns:
        Points with `slots_of` the kind slots, whose normal is n.
    """
    if kind == "box":
        lowest = _corners(placed, normal)
    elif kind == "capsule":
        _, _, axis = axes_of(placed.orientation)
        end = along_slots((-1, 1), placed.radius)
        lowest = placed.position + end * placed.half_lengths.z * axis - placed.radius * normal
    elif kind == "cylinder":
        lowest = _rim(placed, normal)
    elif kind == "ellipsoid":
        scaled = times(placed.half_lengths, unrotate(placed.orientation, normal))
        arm = times(placed.half_lengths, scaled) / jnp.sqrt(dot(scaled, scaled))
        lowest = (placed.position - rotate(placed.orientation, arm))[None]
    elif kind not in SLOTS:
        lowest = _lowest_corners(placed, normal, tuple(forms))
    else:
        lowest = (placed.position - placed.radius * normal)[None]
    gap = dot(normal, lowest) - offset
    if kind == "cylinder":
        upright = jnp.abs(dot(axes_of(placed.orientation)[2], normal)) > (1 - STANDS**2) ** 0.5
        gap = jnp.concatenate([gap[:2], jnp.where(upright, gap[2:], FAR)])
        return in_slots(Points(position=midway(lowest, normal, jnp.where(gap < FAR, gap, 0)), normal=normal, gap=gap))
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


def _rim(placed: Placed, normal: Vector) -> Vector:
    """Return the lowest point of the lower and of the upper end of cylinders, and four points around the lower end."""
    a, b, c = axes_of(placed.orientation)
    x, y, z = (dot(axis, normal) for axis in (a, b, c))
    radius, half = placed.half_lengths.x, placed.half_lengths.z
    lower = placed.position - sign(z) * half * c
    down = -radius / jnp.sqrt(x * x + y * y + LEVEL) * (x * a + y * b)
    points = [lower + down, placed.position + sign(z) * half * c + down]
    points += [lower + way * radius * axis for axis in (a, b) for way in (1, -1)]
    return each(lambda *values: jnp.stack(values), *points)


def _lowest_corners(placed: Placed, normal: Vector, forms: tuple[Form, ...]) -> Vector:
    """Return the corners of polytopes that are lowest along normals tilted by `TILTS`, one for each."""
    like = placed.radius
    corners = arrays_of(forms, forms)[1][:, :, 0].astype(like.dtype)
    corners = corners.reshape(*corners.shape, *(1,) * (like.ndim - 1))
    x, y, z = (size * corner for size, corner in zip(_components(placed.half_lengths), corners, strict=True))
    local = unrotate(placed.orientation, normal)
    lowest = []
    for tilt in TILTS.tolist():
        height = sum(
            part * (along + shift) for part, along, shift in zip((x, y, z), _components(local), tilt, strict=True)
        )
        chosen = jnp.argmin(jax.lax.stop_gradient(height), axis=0)[None]
        lowest.append(Vector(*(jnp.take_along_axis(part, chosen, axis=0)[0] for part in (x, y, z))))
    arms = each(lambda *values: jnp.stack(values), *lowest)
    return placed.position + rotate(placed.orientation, arms)


def _components(a: Vector) -> tuple[jax.Array, jax.Array, jax.Array]:
    return a.x, a.y, a.z
