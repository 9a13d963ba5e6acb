"""Convolutions and pooling: sums of products, extremes and choices over moving windows."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from simkit.export.onnx.convert import inline
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive

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
        known = {"kernel_shape": size, "strides": strides, "dilations": dilation, "pads": pads, "group": groups}
        result = graph.op("Conv", [x, kernel], shape, kind, **known)
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
