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

from simkit.export.onnx.convert import inline
from simkit.export.onnx.elementary import formula
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
    result = graph.typed("MatMul", [x, y], (*members, *inner, math.prod(columns)))
    return graph.reshape(result, shape)


@formula("triangular_solve", elementwise=False)
def triangular_solve(a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, unit_diagonal: bool) -> Any:
    """Substitution, one row of unknowns per iteration (Golub and Van Loan, Matrix Computations, section 3.1)."""
    if transpose_a:
        a, lower = jnp.swapaxes(a, -1, -2), not lower
    if left_side:
        return substituted(a, b, lower, unit_diagonal)
    # x a = b is the transpose of a^T x^T = b^T.
    a, b = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2)
    return jnp.swapaxes(substituted(a, b, not lower, unit_diagonal), -1, -2)


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


@formula("cholesky", elementwise=False)
def cholesky(a: Any, *, symmetrize_input: bool = False) -> Any:
    """The lower factor of symmetric matrices, one column per iteration (Golub and Van Loan, 4.2); NaN if indefinite."""
    size = a.shape[-1]
    if a.size == 0:
        return a
    if symmetrize_input:
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


@formula("geqrf", elementwise=False)
def reflectors(a: Any) -> Any:
    """Householder reflectors ``1 - tau v v^T`` of matrices, with the signs of LAPACK (Golub and Van Loan, 5.2.1).

    Returns:
        The triangle R, below it the vectors without their leading ones, and ``tau``.
    """
    rows, columns = a.shape[-2:]
    count, place = min(rows, columns), jnp.arange(rows)

    def iteration(a: Any, k: Any) -> Any:
        column = jnp.take(a, k, axis=-1)
        head, tail = jnp.take(column, k, axis=-1), jnp.where(place > k, column, 0)
        size = jnp.maximum(jnp.abs(head), jnp.abs(tail).max(-1, initial=0))
        safe = jnp.where(size > 0, size, 1)
        norm = safe * jnp.sqrt((head / safe) ** 2 + ((tail / safe[..., None]) ** 2).sum(-1))
        is_done = (tail == 0).all(-1)
        end = jnp.where(is_done, head, jnp.where(head < 0, norm, -norm))
        tau = jnp.where(is_done, 0, (end - head) / jnp.where(is_done, 1, end))
        vector = jnp.where(place == k, 1, tail / jnp.where(is_done, 1, head - end)[..., None])
        below = _reflected(a, vector, tau, k)
        stored = jnp.where(place < k, column, jnp.where(place == k, end[..., None], vector))
        later = jnp.arange(columns) > k
        a = jnp.where(later, below, jnp.where(jnp.arange(columns) == k, stored[..., None], a))
        return a, tau

    a, tau = jax.lax.scan(iteration, a, jnp.arange(count))
    return a, jnp.moveaxis(tau, 0, -1)


def _reflected(a: Any, vector: Any, tau: Any, k: Any) -> Any:
    """Return ``(1 - tau v v^T) a`` from row and column k on; elsewhere it is ``a``, also beside NaN, as in LAPACK."""
    rows, columns = (jnp.arange(size) >= k for size in a.shape[-2:])
    product = jnp.einsum("...i,...ij->...j", vector, jnp.where(rows[:, None], a, 0))
    is_changed = rows[:, None] & columns & (tau != 0)[..., None, None]
    return jnp.where(is_changed, a - tau[..., None, None] * vector[..., None] * product[..., None, :], a)


@formula("householder_product", elementwise=False)
def householder_product(a: Any, tau: Any) -> Any:
    """The first columns of the product of reflectors that are stored as by `reflectors`."""
    place = jnp.arange(a.shape[-2])

    def iteration(q: Any, k: Any) -> Any:
        column = jnp.take(a, k, axis=-1)
        vector = jnp.where(place == k, 1, jnp.where(place > k, column, 0))
        return _reflected(q, vector, jnp.take(tau, k, axis=-1), k), None

    eye = jnp.broadcast_to(jnp.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
    return jax.lax.scan(iteration, eye, jnp.arange(tau.shape[-1]), reverse=True)[0]


# Most sweeps of Jacobi's methods, which converge in 5 to 10.
MOST_SWEEPS = 30


def _by_rotations(x: Any, symmetric: bool) -> tuple[Any, Any]:
    """Return matrices with their columns rotated in pairs until these are orthogonal, and the product of rotations.

    Each round rotates disjoint pairs, first halves with second halves, and reorders the columns such that all pairs
    meet in a sweep (Brent and Luk 1985, doi:10.1137/0906007). The angles are those of Golub and Van Loan, section 8.5.

    Args:
        x: matrices ``(..., m, n)``.
        symmetric: whether rows are rotated as well, so that the result is diagonal (Jacobi); without it columns become
            orthogonal (Hestenes 1958, doi:10.1137/0106005).
    """
    *batch, rows, size = x.shape
    if not size:
        return x, jnp.zeros((*batch, 0, 0), x.dtype)
    more = size % 2
    x = padded(x, 0, [(0, 0)] * len(batch) + [(0, more * symmetric), (0, more)])
    count, half = size + more, (size + more) // 2
    order = np.array([0, half, *range(1, half - 1), *range(half + 1, count), half - 1] if half > 1 else [0, 1])
    eps = jnp.finfo(x.dtype).eps
    diagonal = jnp.eye(count, dtype=x.dtype)

    def turned(x: Any, c: Any, s: Any) -> Any:
        first, second = x[..., :half], x[..., half:]
        return jnp.concatenate([c * first - s * second, s * first + c * second], -1)[..., order]

    def iteration(carry: Any, _: Any) -> Any:
        x, v, largest = carry
        if symmetric:
            own, joint = (x * diagonal).sum(-1), (x[..., :half, half:] * diagonal[:half, :half]).sum(-1)
            scale = jnp.abs(own).max(-1, keepdims=True)
        else:
            own, joint = (x * x).sum(-2), (x[..., :half] * x[..., half:]).sum(-2)
            scale = jnp.sqrt(own[..., :half]) * jnp.sqrt(own[..., half:])
        is_rotated = joint != 0
        ratio = (own[..., half:] - own[..., :half]) / jnp.where(is_rotated, 2 * joint, 1)
        tangent = jnp.where(ratio < 0, -1, 1) / (jnp.abs(ratio) + jnp.sqrt(1 + ratio * ratio))
        tangent = jnp.where(is_rotated, tangent, 0)
        c = 1 / jnp.sqrt(1 + tangent * tangent)
        c, s = c[..., None, :], (c * tangent)[..., None, :]
        x = turned(x, c, s)
        x = turned(jnp.swapaxes(x, -1, -2), c, s) if symmetric else x
        error = jnp.where(is_rotated, jnp.abs(joint) / jnp.where(scale > 0, scale, 1), 0).max(-1)
        return (x, turned(v, c, s), jnp.maximum(largest, error)), None

    def sweep(carry: Any) -> Any:
        turn, x, v, _ = carry
        (x, v, largest), _ = jax.lax.scan(iteration, (x, v, jnp.zeros(batch, x.dtype)), None, length=count - 1)
        return turn + 1, x, v, largest

    def is_unfinished(carry: Any) -> Any:
        return (carry[0] < MOST_SWEEPS) & (carry[3] > count * eps).any()

    start = jnp.zeros((), jnp.int32), x, jnp.broadcast_to(diagonal, (*batch, count, count)), jnp.ones(batch, x.dtype)
    _, x, v, largest = jax.lax.while_loop(is_unfinished, sweep, start)
    v = jnp.where((largest < jnp.sqrt(eps))[..., None, None], v, jnp.nan)
    return x[..., :rows, :size], v[..., :size, :size]


def _scaled(a: Any) -> tuple[Any, Any]:
    """Return matrices divided by their largest number, against overflow of squares, and this number ``(..., 1, 1)``."""
    size = jnp.abs(a).max((-1, -2), keepdims=True, initial=0)
    scale = jnp.where(size > 0, size, 1)
    return a / scale, scale


@formula("eigh", elementwise=False)
def eigh(a: Any, *, lower: bool) -> Any:
    """Eigenvectors and ascending eigenvalues of symmetric matrices, by Jacobi's method; NaN if it does not converge."""
    a = jnp.tril(a) if lower else jnp.swapaxes(jnp.triu(a), -1, -2)
    a, scale = _scaled(a + jnp.swapaxes(jnp.tril(a, -1), -1, -2))
    rotated, v = _by_rotations(a, symmetric=True)
    values = jnp.where(jnp.isnan(v).any((-1, -2))[..., None], jnp.nan, jnp.einsum("...ii->...i", rotated))
    order = jnp.argsort(values, axis=-1)
    values = jnp.take_along_axis(values, order, axis=-1) * scale[..., 0]
    return jnp.take_along_axis(v, order[..., None, :], axis=-1), values


@formula("svd", elementwise=False)
def svd(a: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    """Singular values in descending order, and vectors: Hestenes' method on the triangle of ``a = q r``.

    The columns of ``r v`` are orthogonal. Their reflectors give vectors that are orthogonal even where values are zero.
    """
    rows, columns = a.shape[-2:]
    if rows < columns:
        values, *vectors = svd(jnp.swapaxes(a, -1, -2), full_matrices=full_matrices, compute_uv=compute_uv)
        return [values, *(jnp.swapaxes(each, -1, -2) for each in reversed(vectors))]
    a, scale = _scaled(a)
    q, r = lax.linalg.qr(a, full_matrices=full_matrices)
    rotated, v = _by_rotations(r[..., :columns, :], symmetric=False)
    order = jnp.argsort(-(rotated * rotated).sum(-2), axis=-1)[..., None, :]
    rotated, v = (jnp.take_along_axis(each, order, axis=-1) for each in (rotated, v))
    left, upper = lax.linalg.qr(rotated)
    signed = jnp.where(jnp.isnan(v).any(-1), jnp.nan, jnp.einsum("...ii->...i", upper))
    values = jnp.abs(signed) * scale[..., 0]
    if not compute_uv:
        return [values]
    left = jnp.where(signed[..., None, :] < 0, -left, left)
    first = jnp.einsum("...ij,...jk->...ik", q[..., :columns], left)
    return [values, jnp.concatenate([first, q[..., columns:]], -1), jnp.swapaxes(v, -1, -2)]


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
    (x,) = inline(graph, lambda x: padded(x, 0, [(0, 0)] * 2 + widths, (1, 1, *between)), x)
    size = kernel.shape[2:]
    if kind == CONV_TYPE and 1 <= len(strides) <= CONV_DIMENSIONS and math.prod((*shape, *kernel.shape)):
        pads = [low for low, _ in padding] + [high for _, high in padding]
        attributes = {"kernel_shape": size, "strides": strides, "dilations": dilation, "pads": pads, "group": groups}
        result = graph.op("Conv", [x, kernel], shape, kind, **attributes)
    else:

        def products(x: Any, kernel: Any) -> Any:
            x = padded(x, 0, [(0, 0)] * 2 + padding)
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


# Reductions of windows by JAX's function of two arrays; the largest or smallest number is the identity of an extreme.
for _name, _combine, _identity in (
    ("sum", jnp.add, lambda dtype: 0),
    ("max", jnp.maximum, lambda dtype: _extreme(dtype, largest=False)),
    ("min", jnp.minimum, lambda dtype: _extreme(dtype, largest=True)),
):

    @formula(f"reduce_window_{_name}", elementwise=False)
    def reduce_window(
        x: Any,
        *,
        window_dimensions: Any,
        window_strides: Any,
        padding: Any,
        base_dilation: Any,
        window_dilation: Any,
        combine: Callable[..., Any] = _combine,
        identity: Callable[..., Any] = _identity,
    ) -> Any:
        """Sums and extremes of moving windows, one axis after the other."""
        x = padded(x, identity(x.dtype), padding, base_dilation)
        for axis, size in enumerate(window_dimensions):
            only = [1] * x.ndim
            window, strides, dilation = only.copy(), only.copy(), only.copy()
            window[axis], strides[axis], dilation[axis] = size, window_strides[axis], window_dilation[axis]
            x = functools.reduce(combine, _windows(x, window, strides, dilation))
        return x


@formula("select_and_scatter_add", elementwise=False)
def select_and_scatter_add(
    source: Any, x: Any, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """Cotangent of a maximum pool: each number is added at the first extreme of its window."""
    lengths = [n + low + high for n, (low, high) in zip(x.shape, padding, strict=True)]
    chosen = _chosen(x, select_prim, window_dimensions, window_strides, padding)
    total = jnp.zeros(lengths, source.dtype)
    for offset, start in enumerate(itertools.product(*map(range, window_dimensions))):
        ends = [
            length - first - (count - 1) * stride - 1
            for length, first, count, stride in zip(lengths, start, source.shape, window_strides, strict=True)
        ]
        part, widths = jnp.where(chosen == offset, source, 0), list(zip(start, ends, strict=True))
        total = total + padded(part, 0, widths, window_strides)
    return padded(total, 0, [(-low, -high) for low, high in padding])


@formula("select_and_gather_add", elementwise=False)
def select_and_gather_add(
    tangent: Any, x: Any, *, select_prim: Any, window_dimensions: Any, window_strides: Any, padding: Any
) -> Any:
    """Tangent of a maximum pool: that of the first extreme of each window."""
    chosen = _chosen(x, select_prim, window_dimensions, window_strides, padding)
    parts = enumerate(_windows(padded(tangent, 0, padding), window_dimensions, window_strides))
    return functools.reduce(lambda total, part: jnp.where(chosen == part[0], part[1], total), parts, 0)


def _chosen(x: Any, select_prim: Any, window: Sequence[int], strides: Sequence[int], padding: Any) -> Any:
    """Return the flat index of the first extreme in each window, the largest for ``ge``."""
    x = padded(x if select_prim.name == "ge" else -x, _extreme(x.dtype, largest=False), padding)
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


def padded(x: Any, value: Any, widths: Sequence[tuple[int, int]], dilation: Sequence[int] | None = None) -> Any:
    """Return an array with ``value`` around it and, where ``dilation`` is above 1, between its elements."""
    steps = [(low, high, apart - 1) for (low, high), apart in zip(widths, dilation or [1] * x.ndim, strict=True)]
    return lax.pad(x, np.asarray(value, x.dtype), steps)
