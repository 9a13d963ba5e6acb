"""Products, factorizations, systems of equations, convolutions and pools."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx import axis_maps
from simkit.export.onnx.convert import inline
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Equation


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
        mapped = axis_maps.product(graph, x, y.value.T, len(x.shape) - 1)
    elif x.value is not None and len(x.shape) == 2 == len(y.shape) and x.dtype.kind == "f":
        mapped = axis_maps.product(graph, y, x.value, 0)
    else:
        mapped = None
    if mapped is not None:
        return graph.reshape(mapped, shape)
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
        is_solved = (jnp.arange(size) < i) if lower else (jnp.arange(size) > i)
        rest = jnp.take(b, i, axis=-2) - jnp.einsum("...j,...jm->...m", jnp.where(is_solved, row, 0), x)
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


# Only type, and largest number of spatial dimensions, of onnxruntime's Conv kernel.
CONV_TYPE, CONV_DIMENSIONS = np.dtype(np.float32), 3


@primitive("conv_general_dilated")
def conv_general_dilated(graph: Graph, equation: Equation, x: Tensor, kernel: Tensor) -> Tensor:
    """Convolution: one Conv in single precision, else a contraction of the kernel with the stacked windows."""
    params = equation.params
    x_order, kernel_order, out_order = params["dimension_numbers"]
    strides, between, dilation = params["window_strides"], params["lhs_dilation"], params["rhs_dilation"]
    groups, kind = params["feature_group_count"], equation.out.dtype
    x = graph.transpose(graph.cast(x, kind), x_order)
    kernel = graph.transpose(graph.cast(kernel, kind), kernel_order)
    if params["batch_group_count"] > 1:
        # Groups along the batch, each with its own output features, become groups along the features.
        groups = params["batch_group_count"]
        batch, features, *space = x.shape
        apart = graph.reshape(x, (groups, batch // groups, features, *space))
        apart = graph.transpose(apart, (1, 0, *range(2, len(apart.shape))))
        x = graph.reshape(apart, (batch // groups, groups * features, *space))
    shape = [equation.out.shape[axis] for axis in out_order]
    padding, widths = list(params["padding"]), [(0, 0)] * len(strides)
    if min(*itertools.chain(*padding), 0) < 0 or max(between) > 1:
        padding, widths = widths, padding
    x = _padded(graph, x, 0, [(0, 0)] * 2 + widths, (1, 1, *between))
    size = kernel.shape[2:]
    if kind == CONV_TYPE and 1 <= len(strides) <= CONV_DIMENSIONS and math.prod((*shape, *kernel.shape)):
        pads = [low for low, _ in padding] + [high for _, high in padding]
        attributes = {"kernel_shape": size, "strides": strides, "dilations": dilation, "pads": pads, "group": groups}
        result = graph.op("Conv", [x, kernel], shape, kind, **attributes)
    else:
        x = _padded(graph, x, 0, [(0, 0)] * 2 + padding)

        def products(x: Any, kernel: Any) -> Any:

            each = jnp.stack(_windows(x, (1, 1, *size), (1, 1, *strides), (1, 1, *dilation)))
            each = each.reshape(each.shape[0], x.shape[0], groups, kernel.shape[1], -1)
            factors = kernel.reshape(groups, kernel.shape[0] // groups, kernel.shape[1], -1)
            return jnp.einsum("kngip,goik->ngop", each, factors).reshape(shape)

        result = inline(graph, products, x, kernel)[0]
    return graph.transpose(result, [int(axis) for axis in np.argsort(out_order)])


def _extreme(dtype: Any, largest: bool) -> Any:
    """Return the largest or smallest number of a type: the identity of a minimum or a maximum."""
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    return np.iinfo(dtype).max if largest else np.iinfo(dtype).min


# Reduction of a window: name of the binary function in jax.numpy, and ``dtype -> identity``.
_REDUCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "reduce_window_sum": ("add", lambda dtype: 0),
    "reduce_window_max": ("maximum", lambda dtype: _extreme(dtype, largest=False)),
    "reduce_window_min": ("minimum", lambda dtype: _extreme(dtype, largest=True)),
}


@primitive(*_REDUCTIONS)
def reduce_window(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Sums and extremes of moving windows, one axis after the other."""
    params = equation.params
    name, identity = _REDUCTIONS[equation.name]
    x = _padded(graph, x, identity(x.dtype), params["padding"], params["base_dilation"])

    def reduced(x: Any) -> Any:

        for axis, size in enumerate(params["window_dimensions"]):
            only = [1] * x.ndim
            window, strides, dilation = only.copy(), only.copy(), only.copy()
            window[axis], strides[axis] = size, params["window_strides"][axis]
            dilation[axis] = params["window_dilation"][axis]
            x = functools.reduce(getattr(jnp, name), _windows(x, window, strides, dilation))
        return x

    return inline(graph, reduced, x)[0]


@primitive("select_and_scatter_add")
def select_and_scatter_add(graph: Graph, equation: Equation, source: Tensor, x: Tensor) -> Tensor:
    """Cotangent of a maximum pool: each number is added at the first extreme of its window."""
    params = equation.params
    window, strides = params["window_dimensions"], params["window_strides"]
    lengths = [n + low + high for n, (low, high) in zip(x.shape, params["padding"], strict=True)]

    def scattered(source: Any, x: Any) -> Any:

        chosen, total = _chosen(x, window, strides), jnp.zeros(lengths, source.dtype)
        for offset, start in enumerate(itertools.product(*map(range, window))):
            part = jnp.where(chosen == offset, source, 0)
            ends = [
                length - first - (count - 1) * stride - 1
                for length, first, count, stride in zip(lengths, start, source.shape, strides, strict=True)
            ]
            steps = [(a, b, stride - 1) for a, b, stride in zip(start, ends, strides, strict=True)]
            total = total + lax.pad(part, jnp.zeros((), part.dtype), steps)
        return lax.pad(total, jnp.zeros((), total.dtype), [(-low, -high, 0) for low, high in params["padding"]])

    return inline(graph, scattered, source, _candidates(graph, equation, x))[0]


@primitive("select_and_gather_add")
def select_and_gather_add(graph: Graph, equation: Equation, tangent: Tensor, x: Tensor) -> Tensor:
    """Tangent of a maximum pool: that of the first extreme of each window."""
    params = equation.params
    window, strides = params["window_dimensions"], params["window_strides"]

    def gathered(tangent: Any, x: Any) -> Any:

        chosen = _chosen(x, window, strides)
        parts = enumerate(_windows(tangent, window, strides))
        return functools.reduce(lambda total, part: jnp.where(chosen == part[0], part[1], total), parts, 0)

    tangent = _padded(graph, tangent, 0, params["padding"])
    return inline(graph, gathered, tangent, _candidates(graph, equation, x))[0]


def _candidates(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """Return ``x``, negated for a minimum pool, padded by the identity of the maximum."""
    largest = equation.params["select_prim"].name == "ge"
    x = x if largest else graph.typed("Neg", [x], x.shape)
    return _padded(graph, x, _extreme(x.dtype, largest=False), equation.params["padding"])


def _chosen(x: Any, window: Sequence[int], strides: Sequence[int]) -> Any:
    """Return the flat index of the first largest element in each window."""
    return jnp.argmax(jnp.stack(_windows(x, window, strides)), axis=0)


def _windows(x: Any, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int] | None = None) -> list[Any]:
    """Return, for each offset within a window, the array of the elements at this offset in all windows."""
    widths: Sequence[int] = dilation or [1] * x.ndim
    counts = [
        (n - (size - 1) * width - 1) // stride + 1
        for n, size, stride, width in zip(x.shape, window, strides, widths, strict=True)
    ]
    parts = []
    for offset in itertools.product(*map(range, window)):
        starts = [at * width for at, width in zip(offset, widths, strict=True)]
        ends = [a + (count - 1) * stride + 1 for a, count, stride in zip(starts, counts, strides, strict=True)]
        parts.append(lax.slice(x, starts, ends, list(strides)))
    return parts


def _padded(
    graph: Graph,
    x: Tensor,
    value: Any,
    widths: Sequence[tuple[int, int]],
    dilation: Sequence[int] | None = None,
) -> Tensor:
    """Return an array with ``value`` around it and, where ``dilation`` is above 1, between its elements."""
    steps = [(low, high, apart - 1) for (low, high), apart in zip(widths, dilation or [1] * len(x.shape), strict=True)]
    return inline(graph, lambda x: lax.pad(x, np.asarray(value, x.dtype), steps), x)[0]
