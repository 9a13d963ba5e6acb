"""The implicit viscous term, solved directly."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.flow.solvers.modes import OpenEnds, SecondDifference, Transform, symmetric_weights
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
