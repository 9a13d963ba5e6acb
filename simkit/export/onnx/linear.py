"""Linear algebra: products of arrays, triangular and tridiagonal solves, Cholesky and LU factors."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.export.onnx import axis_maps
from simkit.export.onnx.convert import inline
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive


@primitive("dot_general")
def dot_general(graph: Graph, equation: Equation, x: Tensor, y: Tensor) -> Tensor:
    """Sums of products over contracted axes, as one MatMul or elementwise product."""
    (x_terms, y_terms), (x_batch, y_batch) = equation.params["dimension_numbers"]
    kind = equation.out.dtype
    x, y = graph.cast(x, kind), graph.cast(y, kind)
    return product(graph, x, y, (x_terms, y_terms), (x_batch, y_batch))


def product(graph: Graph, x: Tensor, y: Tensor, terms: Any, batch: Any) -> Tensor:
    """Return the sums of products over contracted axes, ``(batch..., other axes of x..., other axes of y...)``.

    Args:
        graph: under construction.
        x: first factor.
        y: second factor.
        terms: contracted axes of x, and those of y.
        batch: batch axes of x, and those of y.
    """
    x_rows = [axis for axis in range(len(x.shape)) if axis not in (*terms[0], *batch[0])]
    y_rows = [axis for axis in range(len(y.shape)) if axis not in (*terms[1], *batch[1])]
    members = [x.shape[axis] for axis in batch[0]]
    rows, columns = [x.shape[axis] for axis in x_rows], [y.shape[axis] for axis in y_rows]
    count = math.prod(x.shape[axis] for axis in terms[0])
    shape = (*members, *rows, *columns)
    if math.prod(shape) == 0 or count == 0:
        return graph.expand(graph.constant(0, x.dtype), shape)
    if count == 1:
        x = graph.reshape(graph.transpose(x, [*batch[0], *x_rows, *terms[0]]), (*members, *rows, *[1] * len(columns)))
        y = graph.reshape(graph.transpose(y, [*batch[1], *y_rows, *terms[1]]), (*members, *[1] * len(rows), *columns))
        return graph.elementwise("Mul", x, y)
    # MatMul takes several row axes of x as a batch, so that they need no Reshape.
    stacked = not members and len(terms[0]) == 1
    inner = rows if stacked else [math.prod(rows)]
    x = graph.reshape(graph.transpose(x, [*batch[0], *x_rows, *terms[0]]), (*members, *inner, count))
    y = graph.reshape(graph.transpose(y, [*batch[1], *terms[1], *y_rows]), (*members, count, math.prod(columns)))
    if y.value is not None and len(y.shape) == 2 and x.dtype.kind == "f":
        found = axis_maps.product(graph, x, y.value.T, len(x.shape) - 1)
    elif x.value is not None and len(x.shape) == 2 == len(y.shape) and x.dtype.kind == "f":
        found = axis_maps.product(graph, y, x.value, 0)
    else:
        found = None
    if found is not None:
        return graph.reshape(found, shape)
    result = graph.typed("MatMul", [x, y], (*members, *inner, math.prod(columns)))
    return graph.reshape(result, shape)


@primitive("triangular_solve")
def triangular_solve(graph: Graph, equation: Equation, a: Tensor, b: Tensor) -> Tensor:
    """Substitution, one row of unknowns per iteration (Golub and Van Loan, Matrix Computations, section 3.1)."""
    params = equation.params

    def solve(a: Any, b: Any) -> Any:

        if params["conjugate_a"]:
            a = jnp.conj(a)
        lower, unit = params["lower"], params["unit_diagonal"]
        if params["transpose_a"]:
            a, lower = jnp.swapaxes(a, -1, -2), not lower
        if not params["left_side"]:
            # x a = b is the transpose of a^T x^T = b^T.
            a, b, lower = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), not lower
        x = substituted(a, b, lower, unit)
        return x if params["left_side"] else jnp.swapaxes(x, -1, -2)

    return inline(graph, solve, a, b)[0]


def substituted(a: Any, b: Any, lower: bool, unit: bool) -> Any:
    """Return the solution of triangular systems ``a x = b``.

    Args:
        a: matrices ``(..., n, n)``, of which one triangle is read.
        b: right sides ``(..., n, m)``.
        lower: whether it is the lower triangle.
        unit: whether the diagonal is taken to be one.
    """
    size = a.shape[-1]
    if b.size == 0:
        return b

    def iteration(x: Any, i: Any) -> Any:
        i = i if lower else size - 1 - i
        row = jnp.take(a, i, axis=-2)
        known = (jnp.arange(size) < i) if lower else (jnp.arange(size) > i)
        rest = jnp.take(b, i, axis=-2) - jnp.einsum("...j,...jm->...m", jnp.where(known, row, 0), x)
        solved = rest if unit else rest / jnp.take(row, i, axis=-1)[..., None]
        is_row = (jnp.arange(size) == i)[:, None]
        return jnp.where(is_row, solved[..., None, :], x), None

    return jax.lax.scan(iteration, jnp.zeros_like(b), jnp.arange(size))[0]


@primitive("cholesky")
def cholesky(graph: Graph, equation: Equation, a: Tensor) -> Tensor:
    """The lower factor of symmetric matrices, one column per iteration (Golub and Van Loan, 4.2); NaN if indefinite."""

    def factor(a: Any) -> Any:

        size = a.shape[-1]
        if a.size == 0:
            return a
        if equation.params.get("symmetrize_input", False):
            a = (a + jnp.swapaxes(a, -1, -2)) / 2

        def iteration(factor: Any, j: Any) -> Any:
            row = jnp.take(factor, j, axis=-2)
            column = jnp.take(a, j, axis=-1) - jnp.einsum("...ij,...j->...i", factor, row)
            column = column / jnp.sqrt(jnp.take(column, j, axis=-1))[..., None]
            column = jnp.where(jnp.arange(size) >= j, column, 0)
            return jnp.where(jnp.arange(size) == j, column[..., None], factor), None

        result = jax.lax.scan(iteration, jnp.zeros_like(a), jnp.arange(size))[0]
        fails = jnp.isnan(result).any((-1, -2), keepdims=True)
        return jnp.where(fails & jnp.tril(jnp.ones((size, size), bool)), jnp.nan, result)

    return inline(graph, factor, a)[0]


@primitive("lu")
def lu(graph: Graph, equation: Equation, a: Tensor) -> list[Tensor]:
    """LU factors with partial pivoting, one column per iteration (Golub and Van Loan, section 3.4).

    Returns:
        Both factors in one matrix, the pivot row of each column, and the resulting permutation of rows.
    """

    def factor(a: Any) -> Any:

        rows, columns = a.shape[-2:]

        def iteration(carry: Any, j: Any) -> Any:
            a, order = carry
            candidates = jnp.where(jnp.arange(rows) >= j, jnp.abs(jnp.take(a, j, axis=-1)), -1)
            pivot = jnp.argmax(candidates, axis=-1).astype(jnp.int32)
            row = jnp.arange(rows, dtype=jnp.int32)
            swapped = jnp.where(row == j, pivot[..., None], jnp.where(row == pivot[..., None], j, row))
            a = jnp.take_along_axis(a, swapped[..., None], axis=-2)
            order = jnp.take_along_axis(order, swapped, axis=-1)
            top = jnp.take(a, j, axis=-2)
            diagonal = jnp.take(top, j, axis=-1)[..., None]
            column = jnp.take(a, j, axis=-1)
            multiplier = jnp.where(row > j, jnp.where(diagonal == 0, column, column / diagonal), 0)
            right = jnp.where(jnp.arange(columns) > j, top, 0)
            a = a - multiplier[..., :, None] * right[..., None, :]
            below = (row > j)[:, None] & (jnp.arange(columns) == j)
            return (jnp.where(below, multiplier[..., None], a), order), pivot

        order = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32), a.shape[:-1])
        (a, order), pivots = jax.lax.scan(iteration, (a, order), jnp.arange(min(rows, columns), dtype=jnp.int32))
        return a, jnp.moveaxis(pivots, 0, -1), order

    return inline(graph, factor, a)


@primitive("lu_pivots_to_permutation")
def lu_pivots_to_permutation(graph: Graph, equation: Equation, pivots: Tensor) -> Tensor:
    """The permutation of a sequence of row exchanges."""
    size = equation.params["permutation_size"]

    def permutation(pivots: Any) -> Any:

        row = jnp.arange(size, dtype=jnp.int32)

        def iteration(order: Any, exchange: Any) -> Any:
            j, pivot = exchange
            other = pivot[..., None]
            swapped = jnp.where(row == j, other, jnp.where(row == other, j, row))
            return jnp.take_along_axis(order, swapped, axis=-1), None

        start = jnp.broadcast_to(row, (*pivots.shape[:-1], size))
        exchanges = jnp.arange(pivots.shape[-1], dtype=jnp.int32), jnp.moveaxis(pivots, -1, 0)
        return jax.lax.scan(iteration, start, exchanges)[0]

    return inline(graph, permutation, pivots)[0]


@primitive("tridiagonal_solve")
def tridiagonal_solve(graph: Graph, equation: Equation, low: Tensor, main: Tensor, high: Tensor, b: Tensor) -> Tensor:
    """The Thomas algorithm, two Scans (Golub and Van Loan, section 4.3): diagonals ``(..., n)``, b ``(..., n, m)``."""

    def solve(low: Any, main: Any, high: Any, b: Any) -> Any:

        first = [jnp.moveaxis(each, -1, 0) for each in (low, main, high)]
        b = jnp.moveaxis(b, -2, 0)

        def down(carry: Any, row: Any) -> Any:
            ratio, right = carry
            low, main, high, b = row
            pivot = main - low * ratio
            ratio, right = high / pivot, (b - low[..., None] * right) / pivot[..., None]
            return (ratio, right), (ratio, right)

        def up(x: Any, row: Any) -> Any:
            ratio, right = row
            x = right - ratio[..., None] * x
            return x, x

        start = jnp.zeros_like(first[0][0]), jnp.zeros_like(b[0])
        first[0], first[2] = first[0].at[0].set(0), first[2].at[-1].set(0)
        _, rows = jax.lax.scan(down, start, (*first, b))
        return jnp.moveaxis(jax.lax.scan(up, start[1], rows, reverse=True)[1], 0, -2)

    return inline(graph, solve, low, main, high, b)[0]


def matrix(graph: Graph, values: np.ndarray, like: Tensor) -> Tensor:
    """Return a constant matrix in the type of a tensor."""
    return graph.constant(np.asarray(values, like.dtype))


def contracted(graph: Graph, x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return ``sum_j x[..., j, ...] y[j, k]``, with k in place of j."""
    last = len(x.shape) - 1
    moved: Sequence[int] = [a for a in range(last + 1) if a != axis] + [axis]
    result = product(graph, graph.transpose(x, moved), y, ((last,), (0,)), ((), ()))
    back = [moved.index(a) for a in range(last + 1)]
    return graph.transpose(result, back)
