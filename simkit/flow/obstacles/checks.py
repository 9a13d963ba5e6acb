"""Refusing bodies that do not fit into their domain."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.obstacles.distance import distance_and_normal, positions
from simkit.flow.obstacles.shapes import Shape

if TYPE_CHECKING:
    from simkit.flow.equations import Equations

# Cells across the narrowest body that the forced shell can hold: one spacing on either side, and one between.
NARROWEST = 3


def check_obstacle(shape: Shape, domain: Domain) -> None:
    """Refuse a body that is outside the domain, fills it, touches one of its sides, or is too small for its cells.

    Args:
        shape: the body, with the values it would run with.
        domain: the domain.

    Raises:
        UserError: if it is; says which.
    """
    grid = domain.grid
    centers = [jnp.asarray(p, dtype=float) for p in positions(None, grid)]
    distance = np.asarray(distance_and_normal(shape, centers)[0])
    if not np.isfinite(distance).all():
        raise UserError("the obstacle's shape is not a number somewhere in the domain; correct its parameters")
    if distance.min() >= 0:
        raise UserError("the obstacle is outside the domain, or between its points; move it inside, or enlarge it")
    if distance.max() <= 0:
        raise UserError("the obstacle fills the domain; make it smaller")
    for i, axis in enumerate(grid.axes):
        for face in (axis.faces[0], axis.faces[-1]):
            points = [jnp.full_like(p, face) if k == i else p for k, p in enumerate(centers)]
            gap = float(np.min(np.asarray(distance_and_normal(shape, points)[0])))
            width = float(axis.widths[0] if face == axis.faces[0] else axis.widths[-1])
            if gap < 2 * width:
                raise UserError(
                    f"the obstacle comes within {gap:.3g} of the side {'xyz'[i]} = {face:g}; "
                    f"leave at least two cells, {2 * width:.3g}"
                )
    deepest = tuple(int(k) for k in np.unravel_index(np.argmin(distance), distance.shape))
    narrow = min(float(axis.widths[k]) for axis, k in zip(grid.axes, deepest, strict=True))
    # The deepest point of the grid may be half a cell from the deepest of the body.
    across = narrow - 2 * float(distance.min())
    if across < NARROWEST * narrow:
        raise UserError(
            f"the obstacle is about {across:.3g} across where cells are {narrow:.3g} wide; "
            f"use smaller cells, at least {NARROWEST} across it"
        )


def check_scalar(equations: "Equations") -> None:
    """Refuse a scalar beside a body, which it would pass through.

    Args:
        equations: of a flow with a body.

    Raises:
        UserError: if the flow carries a scalar.
    """
    if equations.scalar is not None:
        raise UserError("an obstacle does not serve a scalar, which would pass through it; leave one of them out")
