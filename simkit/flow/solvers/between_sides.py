"""Implicit friction or diffusion between the sides of a domain, solved directly."""

import functools
from collections.abc import Callable, Mapping

import jax
import numpy as np

from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.slopes import Share
from simkit.flow.operators.diffusion import second_difference, second_difference_at_centers
from simkit.flow.solvers.diffusion import diffusion_solver
from simkit.flow.solvers.modes import OpenEnds, Periodic, SecondDifference

type Shares = Mapping[int, tuple[Share, Share]]
# Shares of the lower and the upper side, None for a traced share; None for an axis without such sides.
type Known = tuple[float | None, float | None] | None


def solver_between_sides(domain: Domain, axes: tuple[int, ...]) -> Callable[[jax.Array, jax.Array, Shares], jax.Array]:
    """Return the direct solver ``solve(source, coefficient, shares) -> change`` of `diffusion_solver` in a domain.

    ``shares`` are those of `simkit.flow.boundary.slopes.side_shares` for every bounded implicit axis, except the own
    axis of a velocity component. Numbers enter tables that are computed once; traced shares are allowed on one axis.

    Args:
        domain: the domain.
        axes: implicit axes.

    Raises:
        UserError: when called, for sides that implicit friction does not support.
    """

    @functools.cache
    def tables(known: tuple[Known, ...]) -> Callable[..., jax.Array]:
        return diffusion_solver([_matrix(domain, i, pair) if i in axes else None for i, pair in enumerate(known)])

    def solve(source: jax.Array, coefficient: jax.Array, shares: Shares) -> jax.Array:
        known = tuple(_known(domain, i, shares[i]) if i in shares else None for i in range(domain.grid.dimension))
        traced = [i for i, pair in enumerate(known) if pair is not None and None in pair]
        if len(traced) > 1:
            raise UserError(
                f"sides of the axes {' and '.join('xyz'[i] for i in traced)} depend on parameters, and implicit "
                "friction and diffusion support one such axis; leave the others out of implicit, or give numbers"
            )
        return tables(known)(source, coefficient, shares[traced[0]] if traced else None)

    return solve


def _known(domain: Domain, axis: int, shares: tuple[Share, Share]) -> Known:
    """Return the shares of both sides of an axis, None for traced ones."""
    for side, share in enumerate(shares):
        if share is None:
            raise UserError(
                f"{domain.place(axis, side).name} has a slope that is not linear, which implicit friction and "
                f"diffusion do not support; leave {axis} out of implicit"
            )
    lower, upper = (float(share) if isinstance(share, int | float) else None for share in shares)
    return lower, upper


def _matrix(domain: Domain, axis: int, shares: Known) -> SecondDifference | OpenEnds | None:
    a = domain.grid.axes[axis]
    if a.periodic:
        return Periodic(a.cells, a.length / a.cells)
    if shares is None:
        return second_difference(axis, axis, domain)
    lower, upper = shares
    if lower is None or upper is None:
        return OpenEnds(a.widths, a.distances, np.array([domain.place(axis, side).weights for side in (0, 1)]))
    return second_difference_at_centers(axis, (lower, upper), domain)
