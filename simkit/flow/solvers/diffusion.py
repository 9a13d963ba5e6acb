"""Implicit friction and diffusion, solved directly, also between sides whose coefficients are traced."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError
from simkit.flow.boundary.domain import Domain
from simkit.flow.boundary.ghost_layers import Share
from simkit.flow.operators.diffusion import second_difference, second_difference_at_centers
from simkit.flow.solvers.modes import BatchedModes, OpenEnds, Periodic, SecondDifference, Transform, symmetric_weights
from simkit.flow.solvers.pressure import Method, fastest_solver
from simkit.flow.solvers.tridiagonal import eliminate_traced, substitute

type Matrices = Sequence[SecondDifference | OpenEnds | None]
type Solver = Callable[..., list[jax.Array]]


def diffusion_solver(matrices: Sequence[Matrices], method: Method | None = None) -> Solver:
    """Return the direct solver of the implicit viscous term of some arrays, ``solve(sources, coefficient, shares)``.

        change - coefficient (L_1 + L_2 + ...) change = source

    with the second difference ``L_i`` along axis i. ``coefficient`` (viscosity times time, unit h^2, not negative) is a
    traced value. A single bounded axis costs two passes over the array, each a transpose and a recurrence.
    ``shares`` are for each array those of the two sides of the axis with `OpenEnds`; unused if there is none. The
    result is the list of changes.

    Args:
        matrices: of each array, the second difference along each axis: `Periodic`; for a bounded axis an ``(n, n)``
            tridiagonal matrix with positive off-diagonal entries, or for one axis `OpenEnds`, which is solved by
            elimination with either method; None for an axis along which there is none.
        method: as for `pressure_solver`; ``"modes"`` solves for all arrays at once.
    """

    def solver(chosen: Method) -> Solver:
        closed = [[m for m in row if not isinstance(m, OpenEnds)] for row in matrices]
        is_bounded = any(isinstance(m, np.ndarray) for row in closed for m in row)
        if sum(map(len, closed)) == sum(map(len, matrices)) and (chosen == "modes" or not is_bounded):
            return _by_modes(BatchedModes(closed))
        solvers = [_eliminating(row) for row in matrices]

        def solve(sources: Sequence[jax.Array], coefficient: jax.Array, shares: Sequence[Any]) -> list[jax.Array]:
            each = zip(solvers, sources, shares, strict=True)
            return [by_elimination(source, coefficient, share) for by_elimination, source, share in each]

        return solve

    return fastest_solver(solver, method)


def _by_modes(modes: BatchedModes) -> Solver:
    def solve(sources: Sequence[jax.Array], coefficient: jax.Array, shares: object) -> list[jax.Array]:
        return modes.filtered(sources, lambda eigenvalues: 1 / (1 + coefficient * eigenvalues))

    return solve


def _eliminating(matrices: Matrices) -> Callable[..., jax.Array]:
    """Return the solver for one array, by elimination along an axis of open ends, or else the longest bounded one."""
    closed = [None if isinstance(matrix, OpenEnds) else matrix for matrix in matrices]
    for i, ends in enumerate(matrices):
        if isinstance(ends, OpenEnds):
            return _by_elimination_between(Transform(closed, first=i), ends)
    bounded = {i: matrix for i, matrix in enumerate(closed) if isinstance(matrix, np.ndarray)}
    along = max(bounded, key=lambda i: len(bounded[i]))
    others = [None if i == along else matrix for i, matrix in enumerate(closed)]
    return _by_elimination(Transform(others, first=along), bounded[along])


def _by_elimination(transform: Transform, matrix: np.ndarray) -> Callable[..., jax.Array]:
    weights = symmetric_weights(matrix)
    coupling = weights[:-1] * np.diag(matrix, 1)
    # Excess of the diagonal over the couplings: at a wall at rest, and from the eigenvalues of the other axes.
    column = [-1] + [1] * (transform.eigenvalues.ndim - 1)
    loss = weights.reshape(column) * (transform.eigenvalues - matrix.sum(axis=1).reshape(column))

    def solve(source: jax.Array, coefficient: jax.Array, shares: object) -> jax.Array:
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


def solver_between_sides(domain: Domain, axes: tuple[int, ...]) -> Callable[..., list[jax.Array]]:
    """Return the direct solver ``solve(sources, coefficient, shares) -> changes`` of `diffusion_solver` in a domain.

    ``shares`` are for each source those of `simkit.flow.boundary.ghost_layers.side_shares` for every bounded implicit
    axis, except the own axis of a velocity component. Numbers enter tables that are computed once; traced shares are
    allowed on one axis.

    Args:
        domain: the domain.
        axes: implicit axes.

    Raises:
        UserError: when called, for sides that implicit friction does not support.
    """

    @functools.cache
    def tables(closed: tuple[tuple[Known, ...], ...]) -> Callable[..., list[jax.Array]]:
        return diffusion_solver(
            [[_matrix(domain, i, pair) if i in axes else None for i, pair in enumerate(pairs)] for pairs in closed]
        )

    def solve(sources: Sequence[jax.Array], coefficient: jax.Array, shares: Sequence[Shares]) -> list[jax.Array]:
        known = tuple(
            tuple(_known(domain, i, each[i]) if i in each else None for i in range(domain.grid.dimension))
            for each in shares
        )
        traced = [[i for i, pair in enumerate(pairs) if pair is not None and None in pair] for pairs in known]
        for several in traced:
            if len(several) > 1:
                raise UserError(
                    f"sides of the axes {' and '.join('xyz'[i] for i in several)} depend on parameters, and implicit "
                    "friction and diffusion support one such axis; leave the others out of implicit, or give numbers"
                )
        ends = [each[several[0]] if several else None for each, several in zip(shares, traced, strict=True)]
        return tables(known)(sources, coefficient, ends)

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
