"""Implicit friction and diffusion, solved directly, also between sides whose coefficients are traced."""

import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.ghost_layers import Share
from simkit.flow.operators.diffusion import second_difference, second_difference_at_centers
from simkit.flow.solvers.modes import OpenEnds, Periodic, SecondDifference, Transform, symmetric_weights
from simkit.flow.solvers.pressure import Method, fastest_solver
from simkit.flow.solvers.tridiagonal import eliminate_traced, substitute


def diffusion_solver(
    matrices: Sequence[SecondDifference | OpenEnds | None], method: Method | None = None
) -> Callable[..., jax.Array]:
    """Return the direct solver of the implicit viscous term, ``solve(source, coefficient, shares) -> change``.

        change - coefficient (L_1 + L_2 + ...) change = source

    with the second difference ``L_i`` along axis i. ``coefficient`` (viscosity times time, unit h^2, not negative) is a
    traced value. A single bounded axis costs two passes over the array, each a transpose and a recurrence.
    ``shares`` are those of the two sides of the axis with `OpenEnds`; unused if there is none.

    Args:
        matrices: the second difference along each axis: `Periodic`; for a bounded axis an ``(n, n)`` tridiagonal matrix
            with positive off-diagonal entries, or for one axis `OpenEnds`, which is solved by elimination with either
            method; None for an axis along which there is none.
        method: as for `pressure_solver`.
    """
    known = [None if isinstance(matrix, OpenEnds) else matrix for matrix in matrices]
    for i, ends in enumerate(matrices):
        if isinstance(ends, OpenEnds):
            return _by_elimination_between(Transform(known, first=i), ends)
    bounded = {i: matrix for i, matrix in enumerate(known) if isinstance(matrix, np.ndarray)}

    def solver(chosen: Method) -> Callable[..., jax.Array]:
        if chosen == "modes" or not bounded:
            return _by_modes(Transform(known))
        along = max(bounded, key=lambda i: len(bounded[i]))
        others = [None if i == along else matrix for i, matrix in enumerate(known)]
        return _by_elimination(Transform(others, first=along), bounded[along])

    return fastest_solver(solver, method)


def _by_modes(transform: Transform) -> Callable[[jax.Array, jax.Array], jax.Array]:
    def solve(source: jax.Array, coefficient: jax.Array, shares: object = None) -> jax.Array:
        eigenvalues = jnp.asarray(transform.eigenvalues, source.dtype)
        return transform.from_modes(transform.to_modes(source) * (1 / (1 + coefficient * eigenvalues)))

    return solve


def _by_elimination(transform: Transform, matrix: np.ndarray) -> Callable[[jax.Array, jax.Array], jax.Array]:
    weights = symmetric_weights(matrix)
    coupling = weights[:-1] * np.diag(matrix, 1)
    # Excess of the diagonal over the couplings: at a wall at rest, and from the eigenvalues of the other axes.
    column = [-1] + [1] * (transform.eigenvalues.ndim - 1)
    loss = weights.reshape(column) * (transform.eigenvalues - matrix.sum(axis=1).reshape(column))

    def solve(source: jax.Array, coefficient: jax.Array, shares: object = None) -> jax.Array:
        w, a, s = (jnp.asarray(constant, source.dtype) for constant in (weights, coupling, loss))
        fraction, inverse = eliminate_traced(w.reshape(column) + coefficient * s, coefficient * a)
        return transform.from_modes(substitute(transform.to_modes(source), w, fraction, inverse))

    return solve


def _by_elimination_between(transform: Transform, ends: OpenEnds) -> Callable[..., jax.Array]:
    column = [-1] + [1] * (transform.eigenvalues.ndim - 1)
    coupling = 1 / ends.distances
    nearest, (near, far) = coupling[[0, -1]], ends.weights.T

    def between(two: jax.Array, inner: jax.Array) -> jax.Array:
        return jnp.concatenate([two[:1], inner, two[1:]])

    def solve(source: jax.Array, coefficient: jax.Array, shares: tuple[jax.Array | float, ...]) -> jax.Array:
        a, widths, eigenvalues = (jnp.asarray(f, source.dtype) for f in (coupling, ends.widths, transform.eigenvalues))
        share = jnp.stack([jnp.asarray(s, source.dtype) for s in shares])
        # The slope at an end involves the second point too: a smaller weight of the row keeps the system symmetric.
        less = nearest / (nearest + share * far)
        weights = widths * between(less, jnp.ones_like(widths[1:-1]))
        # Excess of the diagonal at the ends.
        taken = between(less * share * (near - far), jnp.zeros_like(widths[1:-1]))
        loss = weights.reshape(column) * eigenvalues + taken.reshape(column)
        fraction, inverse = eliminate_traced(weights.reshape(column) + coefficient * loss, coefficient * a)
        return transform.from_modes(substitute(transform.to_modes(source), weights, fraction, inverse))

    return solve


type Shares = Mapping[int, tuple[Share, Share]]
# Shares of the lower and the upper side, None for a traced share; None for an axis without such sides.
type Known = tuple[float | None, float | None] | None


def solver_between_sides(domain: Domain, axes: tuple[int, ...]) -> Callable[[jax.Array, jax.Array, Shares], jax.Array]:
    """Return the direct solver ``solve(source, coefficient, shares) -> change`` of `diffusion_solver` in a domain.

    ``shares`` are those of `simkit.flow.boundary.ghost_layers.side_shares` for every bounded implicit axis, except the
    own axis of a velocity component. Numbers enter tables that are computed once; traced shares are allowed on one
    axis.

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
        if share is None or np.ndim(share):
            what = "is not linear" if share is None else "varies along the side"
            raise UserError(
                f"{domain.place(axis, side).name} has a slope that {what}, which implicit friction and diffusion do "
                f"not support; leave {'xyz'[axis]} out of implicit"
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
