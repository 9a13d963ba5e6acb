"""The hull of a closed mesh of triangles, with the mass properties of the mesh."""

import dataclasses
import functools
import re

import jax.numpy as jnp
import numpy as np
from scipy.spatial import ConvexHull

from simkit.core.settings import text
from simkit.errors import UserError
from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.form import Form
from simkit.rigid.shapes.solid import size, solid

# Corners that differ by less than this part of the size are one, and so are sides.
SAME = 1e-9


def _checked(surface: str, where: str) -> str:
    """Return the text of a mesh.

    Raises:
        UserError: if it is none, or not closed; names the key.
    """
    try:
        _read(TEXT.check(surface, where))
    except UserError as error:
        raise UserError(f"{where}{str(error).removeprefix('surface').removeprefix(where)}", key=where) from None
    return surface


TEXT = text("content of an OBJ file, or of an STL file in ASCII: a closed surface")


@solid(
    keys={"surface": dataclasses.replace(TEXT, check=_checked)},
    values={"scale": size("size of a unit of length of the file", 1.0)},
    volume=lambda surface, scale: scale**3 * _read(surface)[2],
)
def mesh(mass: Number, surface: str, scale: Number = 1.0, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a body with the mass properties of a closed mesh, filled evenly, that touches others with its convex hull.

    The body's center is the center of mass, and its axes are the principal ones, in the order of the file's axes that
    are nearest to them.

    Args:
        mass: in kg.
        surface: content of an OBJ file or of an STL file in ASCII, ``Path("wedge.obj").read_text()``; in a scenario
            file ``{ file = "wedge.obj" }``.
        scale: length of a unit of the file in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Raises:
        UserError: if the text is no mesh, or the mesh is not closed.

    Example:
        >>> corners = ["v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1"]
        >>> sides = ["f 1 3 2", "f 1 2 4", "f 2 3 4", "f 3 1 4"]
        >>> wedge = rigid.mesh(1.0, chr(10).join(corners + sides), scale=0.1)
        >>> wedge.kinds, len(wedge.forms[0].rows)
        (('mesh',), 4)
    """
    form, half, _, moments = _read(surface)
    mass, scale = jnp.asarray(mass), jnp.asarray(scale)
    moments = tuple(mass * scale**2 * moment for moment in moments)
    return body("mesh", mass, moments, [scale * length for length in half], 0, friction, restitution, form)


@functools.lru_cache(maxsize=64)
def _read(surface: str) -> tuple[Form, tuple[float, ...], float, tuple[float, ...]]:
    """Return form, half lengths, volume, and moments of inertia per mass of a mesh, in units of the file."""
    corners, triangles = _triangles(surface)
    a, b, c = np.moveaxis(corners[triangles], 1, 0)
    # Signed volumes and second moments of the tetrahedra under the triangles.
    sixth = np.linalg.det(np.stack([a, b, c], axis=1)) / 6
    volume = float(sixth.sum())
    if volume < 0:
        sixth, volume = -sixth, -volume
    extent = np.ptp(corners, axis=0).max()
    if not volume > SAME * extent**3:
        raise UserError("surface encloses no volume; give a closed mesh of triangles that face outward")
    center = np.einsum("t,tk->k", sixth, a + b + c) / (4 * volume)
    a, b, c = a - center, b - center, c - center
    whole = a + b + c
    shares = np.linalg.det(np.stack([a, b, c], axis=1)) / 6
    second = sum(np.einsum("t,ti,tj->ij", shares, v, v) for v in (a, b, c, whole)) / (20 * abs(shares.sum()))
    second = second * np.sign(shares.sum())
    values, axes = np.diag(second), np.eye(3)
    # Axes of the file that are principal are kept: of a cube, all are, and rounding would choose.
    if np.abs(second - np.diag(values)).max() > SAME * values.max():
        values, axes = np.linalg.eigh(second)
        # Each principal axis in the place of the axis of the file that is nearest to it, right-handed.
        order = _nearest_axes(axes)
        axes, values = axes[:, order], values[order]
        axes = axes * np.where(np.diag(axes) < 0, -1, 1)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
    local = (corners - center) @ axes
    half = np.abs(local).max(axis=0)
    hull = ConvexHull(local / half)
    sides = hull.equations[:, :3] / -hull.equations[:, 3:]
    sides = sides[np.unique(np.round(sides / SAME / 10), axis=0, return_index=True)[1]]
    x, y, z = values
    form = Form(rows=_tuples(sides), corners=_tuples(local[hull.vertices] / half))
    return form, tuple(half.tolist()), volume, (y + z, z + x, x + y)


def _tuples(rows: np.ndarray) -> tuple[tuple[float, float, float], ...]:
    return tuple((float(x), float(y), float(z)) for x, y, z in rows)


def _nearest_axes(axes: np.ndarray) -> list[int]:
    """Return the order of columns in which each is nearest to the axis of its place, the clearest one first."""
    left, order = np.abs(axes), [0, 0, 0]
    for _ in range(3):
        place, column = np.unravel_index(left.argmax(), left.shape)
        order[place] = int(column)
        left[place], left[:, column] = -1, -1
    return order


def _triangles(surface: str) -> tuple[np.ndarray, np.ndarray]:
    """Return corners (n, 3) and triangles (m, 3) of a closed mesh.

    Raises:
        UserError: if there are none, or an edge does not belong to two triangles.
    """
    numbers = re.findall(r"^\s*v(?:ertex)?\s+(\S+)\s+(\S+)\s+(\S+)", surface, re.MULTILINE)
    try:
        corners = np.array(numbers, dtype=float).reshape(-1, 3)
        faces = [
            [int(part.split("/")[0]) for part in line.split()]
            for line in re.findall(r"^\s*f\s+(.+)$", surface, re.MULTILINE)
        ]
        triangles = [(face[0], face[k], face[k + 1]) for face in faces for k in range(1, len(face) - 1)]
        index = np.array(triangles, dtype=int).reshape(-1, 3)
        # OBJ counts from 1, and from the end with negative numbers; STL lists three corners a triangle.
        index = (
            np.where(index > 0, index - 1, index + len(corners)) if faces else np.arange(len(corners)).reshape(-1, 3)
        )
        corners[index]
    except (ValueError, IndexError) as error:
        raise UserError(f"surface is no OBJ or ASCII STL mesh: {error}; give the text of such a file") from None
    if len(index) < 4 or not np.isfinite(corners).all():
        raise UserError(
            f"surface has {len(index)} triangles between finite corners; give the text of an OBJ file or of an STL "
            "file in ASCII, with 4 or more"
        )
    size = np.ptp(corners, axis=0).max()
    _, first, merged = np.unique(np.round(corners / (SAME * size)), axis=0, return_index=True, return_inverse=True)
    index = merged.ravel()[index]
    edges = np.concatenate([index[:, [0, 1]], index[:, [1, 2]], index[:, [2, 0]]])
    count = len(first)
    there, back = edges @ [count, 1], edges @ [1, count]
    open_edges = np.setdiff1d(there, back)
    if open_edges.size or len(np.unique(there)) < len(there):
        raise UserError(
            f"surface is not closed: {max(open_edges.size, 1)} edges do not lie between two triangles that face the "
            "same way; close its holes"
        )
    return corners[first], index
