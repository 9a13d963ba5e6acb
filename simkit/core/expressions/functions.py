"""Functions of expressions: arithmetic with finite derivatives, interpolation, minima, reductions over frames."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from simkit.core.settings.tables import Table

type Unary = Callable[[jax.Array], jax.Array]


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a * b``; zero where either factor is zero, even if the other is infinite or NaN."""
    a, b = jnp.broadcast_arrays(a, b)
    dtype = jnp.result_type(a, b)
    return _primitive().bind(a.astype(dtype), b.astype(dtype))


@functools.cache
def _primitive() -> Any:
    def plain(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where((a == 0) | (b == 0), jnp.zeros_like(a), a * b)

    def batched(factors: Any, axes: Any) -> Any:
        size = next(factor.shape[axis] for factor, axis in zip(factors, axes, strict=True) if axis is not None)
        with_batch = [
            jnp.broadcast_to(factor, (size, *factor.shape)) if axis is None else jnp.moveaxis(factor, axis, 0)
            for factor, axis in zip(factors, axes, strict=True)
        ]
        return primitive.bind(*with_batch), 0

    primitive = Primitive("product_or_zero")
    primitive.def_impl(jax.jit(plain))
    primitive.def_abstract_eval(lambda a, b: a)
    mlir.register_lowering(primitive, mlir.lower_fun(plain, multiple_results=False))
    batching.primitive_batchers[primitive] = batched
    ad.defbilinear(
        primitive,
        lambda cotangent, a, b: primitive.bind(cotangent, b),
        lambda cotangent, a, b: primitive.bind(a, cotangent),
    )
    return primitive


@jax.custom_jvp
def multiply(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a * b``."""
    return a * b


@multiply.defjvp
def _(values: Any, tangents: Any) -> Any:
    (a, b), (da, db) = map(jnp.asarray, values), tangents
    return a * b, product(da, b) + product(a, db)


@jax.custom_jvp
def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a / b``."""
    return a / b


@divide.defjvp
def _(values: Any, tangents: Any) -> Any:
    (a, b), (da, db) = map(jnp.asarray, values), tangents
    quotient, inverse = a / b, 1 / b
    # quotient * inverse instead of a / b**2 saves a division, which costs as much as the rest of a pair energy.
    return quotient, product(inverse, da) - product(quotient * inverse, db)


@jax.custom_jvp
def power(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """Return ``x ** exponent``."""
    return x**exponent


@power.defjvp
def _(values: Any, tangents: Any) -> Any:
    (x, exponent), (dx, dexponent) = map(jnp.asarray, values), tangents
    slope = product(exponent, x ** (exponent - 1))
    return x**exponent, product(slope, dx) + product(product(x**exponent, jnp.log(x)), dexponent)


@jax.custom_jvp
def angle(y: jax.Array, x: jax.Array) -> jax.Array:
    """Return the angle of the point ``(x, y)``."""
    return jnp.arctan2(y, x)


@angle.defjvp
def _(values: Any, tangents: Any) -> Any:
    (y, x), (dy, dx) = map(jnp.asarray, values), tangents
    return jnp.arctan2(y, x), product(x / (x**2 + y**2), dy) - product(y / (x**2 + y**2), dx)


@functools.cache
def integer_power(exponent: int) -> Unary:
    """Return ``x -> x ** exponent`` for an integer that is known when the program is compiled."""
    return _with_slope(
        lambda x: x**exponent, lambda x: exponent * x ** (exponent - 1) if exponent else jnp.zeros_like(x)
    )


def _with_slope(function: Unary, slope: Unary) -> Unary:
    wrapped = jax.custom_jvp(function)
    wrapped.defjvp(lambda values, tangents: (wrapped(*values), product(slope(jnp.asarray(values[0])), tangents[0])))
    return wrapped


UNARY: dict[str, Unary] = {
    "abs": _with_slope(jnp.abs, jnp.sign),
    "sign": _with_slope(jnp.sign, jnp.zeros_like),
    "sqrt": _with_slope(jnp.sqrt, lambda x: 0.5 / jnp.sqrt(x)),
    "exp": _with_slope(jnp.exp, jnp.exp),
    "log": _with_slope(jnp.log, lambda x: 1 / x),
    "log10": _with_slope(jnp.log10, lambda x: 1 / (x * math.log(10))),
    "sin": _with_slope(jnp.sin, jnp.cos),
    "cos": _with_slope(jnp.cos, lambda x: -jnp.sin(x)),
    "tan": _with_slope(jnp.tan, lambda x: 1 + jnp.tan(x) ** 2),
    "asin": _with_slope(jnp.arcsin, lambda x: 1 / jnp.sqrt(1 - x**2)),
    "acos": _with_slope(jnp.arccos, lambda x: -1 / jnp.sqrt(1 - x**2)),
    "atan": _with_slope(jnp.arctan, lambda x: 1 / (1 + x**2)),
    "sinh": _with_slope(jnp.sinh, jnp.cosh),
    "cosh": _with_slope(jnp.cosh, jnp.sinh),
    "tanh": _with_slope(jnp.tanh, lambda x: 1 - jnp.tanh(x) ** 2),
    "erf": _with_slope(jax.scipy.special.erf, lambda x: 2 / math.sqrt(math.pi) * jnp.exp(-(x**2))),
}
square = integer_power(2)

type Points = jax.Array | np.ndarray
# Round-off of a coordinate on the side of the outermost cell, as a fraction of the distance between points.
ROUNDING = 1e-3


def weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weights of the points of a line in linear interpolation.

    The outermost intervals are extrapolated by half their length, so that a field at cell centers has values up to the
    sides. Farther out the weights are NaN. The weight of a single point is 1.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates at which to interpolate, of any shape.

    Returns:
        Weights that sum to 1, (n, ...).
    """
    if len(points) == 1:
        return jnp.ones((1, *place.shape), place.dtype)
    left = jnp.clip(jnp.searchsorted(points, place) - 1, 0, len(points) - 2)
    part = (place - points[left]) / (points[left + 1] - points[left])
    part = where_defined(is_within(points, place), part)
    number = jnp.arange(len(points)).reshape(-1, *[1] * place.ndim)
    return jnp.where(number == left, 1 - part, 0) + jnp.where(number == left + 1, part, 0)


def cubic_weights(points: jax.Array, place: jax.Array) -> jax.Array:
    """Return the weights of the points of a line in cubic (Lagrange) interpolation through the four nearest points.

        w_i = product over the other three points j of (place - x_j)/(x_i - x_j)

    Two points are on either side, or the four outermost near an end; with fewer points the polynomial goes through all.
    Farther out than half an interval beyond the ends the weights are NaN.

    Args:
        points: increasing coordinates, (n,).
        place: coordinates at which to interpolate, of any shape.

    Returns:
        Weights that sum to 1, (n, ...).
    """
    count = min(4, len(points))
    first = jnp.clip(jnp.searchsorted(points, place) - count // 2, 0, len(points) - count)
    near = [points[first + k] for k in range(count)]
    number = jnp.arange(len(points)).reshape(-1, *[1] * place.ndim)
    inside = is_within(points, place)
    shares = jnp.zeros((len(points), *place.shape), place.dtype)
    for k, point in enumerate(near):
        weight = jnp.ones((), place.dtype)
        for other in near[:k] + near[k + 1 :]:
            weight = weight * (place - other) / (point - other)
        shares = shares + jnp.where(number == first + k, where_defined(inside, weight), 0)
    return shares


@functools.lru_cache(maxsize=256)
def _pieces(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a table, (n,), and the coefficients of the cubic from each to the next, (4, n - 1)."""
    x, y = np.array(table.x), np.array(table.y)
    if table.interpolation == "cubic":
        from scipy.interpolate import CubicSpline

        return x, CubicSpline(x, y).c
    return x, np.stack([np.zeros(len(x) - 1)] * 2 + [np.diff(y) / np.diff(x), y[:-1]])


def interpolated(table: Table, x: jax.Array | float) -> jax.Array:
    """Return a table at points, see `simkit.core.settings.tables.Table`; NaN where it has no value.

    Args:
        table: the table.
        x: points, of any shape.
    """
    x = jnp.asarray(x, jnp.result_type(float, x))
    points, coefficients = (jnp.asarray(each, x.dtype) for each in _pieces(table))
    low, high = points[0], points[-1]
    inside = jnp.where(x < low, low, jnp.where(x > high, high, x))
    piece = jnp.searchsorted(points, inside, side="right", method="scan_unrolled") - 1
    piece = jnp.clip(piece, 0, len(points) - 2)
    d = inside - points[piece]
    a, b, c, value = (each[piece] for each in coefficients)
    value = value + c * d if table.interpolation == "linear" else ((a * d + b) * d + c) * d + value
    if table.outside == "hold":
        return value
    margin = ROUNDING * (high - low) / len(table.x)
    is_defined = (x >= low - margin) & (x <= high + margin)
    return multiply(value, jnp.where(is_defined, jnp.ones((), x.dtype), jnp.nan))


def where_defined(is_defined: Points, value: jax.Array) -> jax.Array:
    """Return a value, or NaN with derivatives that are NaN too, by which an optimizer sees no stationary point.

    Args:
        is_defined: whether the value is defined, of its shape or a scalar.
        value: of any shape; what it is where it is not defined does not matter.
    """
    return value * jnp.where(is_defined, jnp.ones((), value.dtype), jnp.nan)


def is_within(points: Points, place: Points) -> Points:
    """Return whether coordinates lie on a line of points, or at most half an interval beyond its ends.

    Args:
        points: increasing coordinates, (n,); a single point allows any coordinate but NaN.
        place: coordinates, of any shape.
    """
    if len(points) == 1:
        return place == place
    margin = 0.5 + ROUNDING
    before, behind = margin * (points[1] - points[0]), margin * (points[-1] - points[-2])
    return (place >= points[0] - before) & (place <= points[-1] + behind)


def lowest_point(f: jax.Array, lines: Sequence[np.ndarray]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return value and coordinates of the minimum of a field, by parabolas through its lowest entry and its neighbors.

        f(x_k + s) = f_k + slope s + bend s^2,   s = -slope/(2 bend),   along each axis separately

    Exact for a sum of parabolas of one coordinate each. Where the lowest entry is at an end of an axis, the parabola
    goes through the three outermost entries, and the minimum lies within them. Where they do not curve upward, as on a
    constant field, the result is the lowest entry itself.

    Args:
        f: values, (n1, n2, ...), each axis of at least 3.
        lines: increasing coordinates along each axis, (n1,), (n2,), ...
    """
    lowest = jnp.unravel_index(jnp.argmin(f), f.shape)
    value, coordinates = f[lowest], []
    for axis, (k, line) in enumerate(zip(lowest, lines, strict=True)):
        first = jnp.clip(k - 1, 0, len(line) - 3)
        others = (*lowest[:axis], slice(None), *lowest[axis + 1 :])
        # Without the barrier, XLA (JAX 0.12.0) fuses the slices of two coordinates, and fails to compile them.
        a, b, c = jax.lax.optimization_barrier(jax.lax.dynamic_slice(f[others], (first,), (3,)))
        points = jnp.asarray(line, f.dtype)
        left, middle, right = jax.lax.dynamic_slice(points, (first,), (3,))
        below, above = (b - a) / (middle - left), (c - b) / (right - middle)
        bend = (above - below) / (right - left)
        x = points[k]
        # Slope of the parabola at the lowest entry, which is one of the three.
        slope = below + bend * ((x - left) + (x - middle))
        is_convex = bend > 0
        shift = jnp.where(is_convex, divide(-slope, jnp.where(is_convex, 2 * bend, 1)), 0)
        shift = jnp.clip(shift, left - x, right - x)
        coordinates.append(x + shift)
        value = value + shift * (slope + bend * shift)
    return value, tuple(coordinates)


def value_at(series: jax.Array, times: jax.Array, moment: jax.Array | float) -> jax.Array:
    """Return a series at a time, by the cubic through the four nearest frames; NaN beyond the first and last frame.

        sum over the frames i of x_i product over the others j of (t - t_j)/(t_i - t_j)

    Args:
        series: ``(frames, ...)``.
        times: ``(frames,)`` of the frames; those after a stop repeat that of the stop.
        moment: the time t, scalar.
    """
    count = min(4, len(times))
    first = jnp.clip(jnp.searchsorted(times, moment) - count // 2, 0, len(times) - count)
    near = [times[first + k] for k in range(count)]
    new = [jnp.asarray(True), *(later > earlier for earlier, later in itertools.pairwise(near))]
    total = jnp.zeros(series.shape[1:], series.dtype)
    for i, here in enumerate(near):
        weight = jnp.where(new[i], jnp.ones((), times.dtype), 0)
        for j, other in enumerate(near):
            apart = new[j] & (here != other)
            weight = weight * jnp.where(apart, (moment - other) / jnp.where(apart, here - other, 1), 1)
        total = total + weight * series[first + i]
    return where_defined(_is_within(times, moment), total)


def integral(
    series: jax.Array,
    times: jax.Array,
    after: jax.Array | float | None = None,
    before: jax.Array | float | None = None,
) -> jax.Array:
    """Return the integral of a series over time by the trapezoidal rule; NaN if it begins or ends beyond the frames.

    Args:
        series: ``(frames, ...)``.
        times: ``(frames,)`` of the frames; those after a stop repeat that of the stop.
        after: time at which it begins, scalar; by default that of the first frame.
        before: time at which it ends; by default that of the last frame.
    """
    lengths = jnp.diff(times)

    def part(moment: jax.Array | float) -> jax.Array:
        """Return the part of each interval that has passed at a time."""
        return jnp.where(lengths > 0, jnp.clip((moment - times[:-1]) / jnp.where(lengths > 0, lengths, 1), 0, 1), 0)

    begin = jnp.zeros_like(lengths) if after is None else part(after)
    end = jnp.ones_like(lengths) if before is None else part(before)
    # The mean over a part of an interval is the value in the middle of that part.
    weight, middle = (x.reshape(-1, *[1] * (series.ndim - 1)) for x in (lengths * (end - begin), (begin + end) / 2))
    total = jnp.sum(weight * (series[:-1] + middle * (series[1:] - series[:-1])), 0)
    for moment in (after, before):
        total = total if moment is None else where_defined(_is_within(times, moment), total)
    return total


def _is_within(times: jax.Array, moment: jax.Array | float) -> jax.Array:
    margin = ROUNDING * (times[-1] - times[0]) / max(len(times) - 1, 1)
    return (moment >= times[0] - margin) & (moment <= times[-1] + margin)


def _extreme(function: Callable[..., jax.Array], series: jax.Array, chosen: jax.Array, other: float) -> jax.Array:
    """Return the largest or smallest of the chosen values; NaN if none is chosen."""
    return where_defined(jnp.any(chosen), function(jnp.where(chosen, series, other), 0))


def _mean_of(series: jax.Array, chosen: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(chosen, series, 0), 0) / jnp.sum(chosen, 0)


# Functions of a series ``(frames, ...)`` and of which of its frames count.
REDUCTIONS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "time_mean": _mean_of,
    "time_sum": lambda series, chosen: jnp.sum(jnp.where(chosen, series, 0), 0),
    "time_rms": lambda series, chosen: UNARY["sqrt"](_mean_of(square(series), chosen)),
    "largest": lambda series, chosen: _extreme(jnp.max, series, chosen, -jnp.inf),
    "smallest": lambda series, chosen: _extreme(jnp.min, series, chosen, jnp.inf),
}
