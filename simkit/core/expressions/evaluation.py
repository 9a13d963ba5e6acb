"""Evaluation of a checked expression: arrays with named axes in, an array with named axes out."""

import ast
import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.expressions import arithmetic, interpolation
from simkit.core.expressions.lowest_point import lowest_point
from simkit.core.expressions.names import CONSTANTS
from simkit.core.expressions.syntax import Syntax, dotted, entries_of, refuse

FRAME = "frame"
# Value of an evaluation that no name in a text can ask for: which frames a run stores, see `Frames.stored`.
STORED = "(stored)"


class Unnamed(str):
    """An axis that the simulation gives no name: whose places match those of no other array, as far as is known."""

    __slots__ = ()


class Spaced(str):
    """An axis of points in space.

    Attributes:
        points: their coordinates, (n,); or None.
        widths: of the cells around them, (n,), by which means are weighed; None where all are equal.
    """

    points: np.ndarray | None
    widths: np.ndarray | None

    def __new__(cls, name: str, points: np.ndarray | None, widths: np.ndarray | None = None) -> "Spaced":
        """Return the name, with the points and the widths of the cells around them."""
        axis = super().__new__(cls, name)
        axis.points = points
        axis.widths = None if widths is None else np.asarray(widths, float)
        return axis


def axes_of(name: str, count: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the axes of an array; without any, those that data sets give them."""
    return names if len(names) == count else tuple(Unnamed(f"{name}_{place}") for place in range(count))


@dataclasses.dataclass(frozen=True)
class Named:
    """An array whose axes have names.

    Attributes:
        array: with one axis per name; a Python float where the value is known when the program is compiled.
        axes: their names.
    """

    array: Any
    axes: tuple[str, ...] = ()


def evaluate(syntax: Syntax, values: Mapping[str, Named], where: str) -> Named:
    """Return the value of an expression; axes of the same name are taken together, others span their product.

    Args:
        syntax: of `simkit.core.expressions.syntax.parse`.
        values: of all its names.
        where: file and key, for messages.

    Raises:
        UserError: that marks the column, where axes do not fit, or what is known beforehand divides by zero.
    """
    return _Evaluation(syntax, values, where).value(syntax.tree)


class _Evaluation:
    def __init__(self, syntax: Syntax, values: Mapping[str, Named], where: str) -> None:
        self.syntax, self.values, self.where = syntax, values, where

    def refuse(self, node: ast.expr, message: str) -> NoReturn:
        refuse(self.syntax.text, self.where, node, message)

    def value(self, node: ast.expr) -> Named:
        match node:
            case ast.Constant(value=int() | float() as number):
                return Named(float(number))
            case ast.Name() | ast.Attribute():
                name = dotted(node)
                return _real(self.values[name]) if name in self.values else Named(CONSTANTS[name])
            case ast.Subscript(value=array):
                return self.entry(node, self.value(array))
            case ast.UnaryOp(op=op, operand=operand):
                inner = self.value(operand)
                if isinstance(op, ast.Not):
                    return Named(~inner.array, inner.axes)
                return Named(-inner.array, inner.axes) if isinstance(op, ast.USub) else inner
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self.power(node, self.value(left), self.value(right))
            case ast.BinOp(op=op, left=left, right=right):
                return self.together(node, _OPERATIONS[type(op)], self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=parts):
                joined = jnp.logical_and if isinstance(op, ast.And) else jnp.logical_or
                return self.together(node, lambda *all_: _folded(joined, all_), *map(self.value, parts))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.together(node, lambda *all_: _compared(ops, all_), *map(self.value, (left, *others)))
            case ast.Call():
                return self.call(node)
        raise AssertionError(ast.dump(node))

    def entry(self, node: ast.Subscript, whole: Named) -> Named:
        """Return an entry of an array along its first axes, for every frame."""
        entries, axes = entries_of(node), [axis for axis in whole.axes if axis != FRAME]
        if len(entries) > len(axes):
            self.refuse(node, f"has {len(entries)} numbers, and the array has {len(axes)} axes; write at most as many")
        array, left = whole.array, list(whole.axes)
        for axis, number in zip(axes, entries, strict=False):
            place = left.index(axis)
            if number >= (length := jnp.shape(array)[place]):
                self.refuse(node, f"is beyond the {length} entries along '{axis}'; write a number up to {length - 1}")
            array = jnp.asarray(array)[(slice(None),) * place + (number,)]
            left.pop(place)
        return Named(array, tuple(left))

    def together(self, node: ast.expr, function: Callable[..., Any], *parts: Named) -> Named:
        """Return a function of several values, their axes aligned by name."""
        axes = tuple(dict.fromkeys(axis for part in sorted(parts, key=lambda p: -len(p.axes)) for axis in part.axes))
        unnamed = next((axis for axis in axes if isinstance(axis, Unnamed)), None)
        if unnamed is not None and all(len(part.axes) < len(axes) for part in parts):
            self.refuse(node, f"joins arrays of which '{unnamed}' is an axis without a name; name it in 'dimensions'")
        lengths: dict[str, int] = {}
        for part in parts:
            for axis, length in zip(part.axes, jnp.shape(part.array), strict=True):
                if lengths.setdefault(axis, length) != length:
                    self.refuse(node, f"joins {lengths[axis]} and {length} values along '{axis}'; they must be as many")
        try:
            return Named(function(*(aligned(part, axes) for part in parts)), axes)
        except (ZeroDivisionError, OverflowError, ValueError) as error:  # of Python's floats
            self.refuse(node, f"has no value ({error}); change its numbers")

    def power(self, node: ast.expr, base: Named, exponent: Named) -> Named:
        whole = isinstance(exponent.array, float) and exponent.array.is_integer() and abs(exponent.array) <= 64
        if whole and not _known(base.array):
            return Named(arithmetic.integer_power(int(exponent.array))(base.array), base.axes)
        return self.together(node, _power, base, exponent)

    def call(self, node: ast.Call) -> Named:
        name = node.func.id  # type: ignore[attr-defined]
        parts = [self.value(argument) for argument in node.args]
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in arithmetic.UNARY:
            return self.together(node, arithmetic.UNARY[name], parts[0])
        if name in _SEVERAL:
            return self.together(node, _SEVERAL[name], *parts)
        if name in _EXTREMES and len(parts) > 1:
            if options:
                self.refuse(node, "takes an axis of one array only")
            return self.together(node, lambda *all_: _folded(_EXTREMES[name][0], all_), *parts)
        if name in _BETWEEN:
            part = parts[0]
            for axis, place in options.items():
                part = self.at(node, part, str(axis), place, _BETWEEN[name])
            return part
        if name in ("parabola_min", "parabola_min_at"):
            return self.lowest(node, parts[0], options.get("axis"))
        if name in _OVER_SPACE:
            return self.over_space(node, name, parts[0], options.get("axis"))
        return self.over_frames(node, name, parts[0], options.get("after"))

    def over_space(self, node: ast.expr, name: str, part: Named, said: ast.expr | None) -> Named:
        axes = [each for each in part.axes if each != FRAME]
        if said is not None:
            wanted = said.value  # type: ignore[attr-defined]
            if wanted not in axes:
                have = f"it has {', '.join(axes)}" if axes else "it has no axis"
                self.refuse(node, f"reduces along '{wanted}': {have}")
            axes = [each for each in axes if each == wanted]
        if not axes and name in ("rms", "norm"):
            return self.together(node, arithmetic.UNARY["abs"], part)
        if not axes:
            return part
        kept = tuple(each for each in part.axes if each not in axes)
        return Named(_OVER_SPACE[name](part.array, {part.axes.index(each): each for each in axes}), kept)

    def lowest(self, node: ast.expr, part: Named, said: ast.expr | None) -> Named:
        """Return the smallest value of every frame, or where it is along an axis."""
        axes = [each for each in part.axes if each != FRAME]
        lines = [each.points for each in axes if isinstance(each, Spaced) and each.points is not None]
        if not axes or len(lines) < len(axes):
            bare = next((each for each in axes if getattr(each, "points", None) is None), None)
            self.refuse(node, "looks along axes: " + (f"'{bare}' has no coordinates" if bare else "there are none"))
        if (short := next((each for each in axes if len(each.points) < 3), None)) is not None:  # type: ignore[attr-defined]
            self.refuse(node, f"puts parabolas through three points, and '{short}' has fewer")
        wanted = None if said is None else said.value  # type: ignore[attr-defined]
        if wanted is not None and wanted not in axes:
            self.refuse(node, f"asks for a place along '{wanted}': it has {', '.join(axes)}")

        def found(f: jax.Array) -> jax.Array:
            value, places = lowest_point(f, lines)
            return value if wanted is None else places[axes.index(wanted)]

        array = _arrays(jnp.asarray(part.array), 0.0)[0]
        if FRAME not in part.axes:
            return Named(found(array))
        return Named(jax.vmap(found, part.axes.index(FRAME))(array), (FRAME,))

    def at(self, node: ast.expr, part: Named, axis: str, said: ast.expr, weights: Callable[..., jax.Array]) -> Named:
        points, place = self.values[axis], self.value(said)
        if axis not in part.axes or points.axes != (axis,):
            have = ", ".join(each for each in part.axes if each != FRAME and not isinstance(each, Unnamed))
            self.refuse(node, f"asks for a place along '{axis}': it has {have or 'no axis with coordinates'}")
        if axis in place.axes:
            self.refuse(said, f"has one place for each {axis}; give one place")
        is_known = _known(place.array) and not isinstance(points.array, Tracer)
        if is_known:
            known = np.asarray(points.array)
            if not interpolation.is_within(known, np.asarray(place.array)):
                self.refuse(said, f"is beyond the values along {axis}, from {known[0]:g} to {known[-1]:g}")
        # Weights that are known are constants: the program neither compiles nor computes how they are found.
        with jax.ensure_compile_time_eval() if is_known else contextlib.nullcontext():
            found = weights(*(jnp.asarray(array) for array in _arrays(points.array, place.array)))
        product = self.together(node, jnp.multiply, part, Named(found, (axis, *place.axes)))
        return Named(jnp.sum(product.array, product.axes.index(axis)), tuple(a for a in product.axes if a != axis))

    def over_frames(self, node: ast.expr, name: str, part: Named, after: ast.expr | None) -> Named:
        if FRAME not in part.axes:
            self.refuse(node, "reduces frames, and what it is given has none")
        place = part.axes.index(FRAME)
        series = jnp.moveaxis(part.array, place, 0)
        kept = tuple(axis for axis in part.axes if axis != FRAME)
        if name in ("final", "first"):
            return Named(series[-1 if name == "final" else 0], kept)
        stored = self.values.get(STORED)
        chosen = jnp.ones(series.shape[:1], bool) if stored is None else stored.array
        if after is not None:
            if "time" not in self.values:
                self.refuse(node, "begins after a time, and there is no 'time'; leave 'after' out")
            begin, time = self.value(after), self.values["time"]
            if begin.axes:
                self.refuse(after, "is not one number")
            if time.axes != (FRAME,):
                self.refuse(node, "begins after a time, and 'time' is not one number in each frame")
            between = (time.array[-1] - time.array[0]) / jnp.sum(chosen)
            chosen = chosen & (time.array >= begin.array - _ROUNDING * between)
        chosen = chosen.reshape(-1, *[1] * (series.ndim - 1))
        return Named(_OVER_FRAMES[name](series, chosen), kept)


# Of the time between frames, by which a sum of time steps may fall short of a frame's time.
_ROUNDING = 1e-3


def aligned(part: Named, axes: tuple[str, ...]) -> Any:
    """Return the array with axes in the given order, of length 1 where it has none; a number as it is.

    Args:
        part: the array; its axes are among the given ones.
        axes: names of the axes wanted.
    """
    if not part.axes:
        return part.array
    order = sorted(range(len(part.axes)), key=lambda place: axes.index(part.axes[place]))
    array = jnp.transpose(part.array, order)
    return array.reshape([array.shape[order.index(part.axes.index(a))] if a in part.axes else 1 for a in axes])


def _real(part: Named) -> Named:
    """Return counts and flags as real numbers, so that none overflows, and two flags have a sum."""
    if _known(part.array) or jnp.issubdtype(part.array.dtype, jnp.floating):
        return part
    return Named(jnp.asarray(part.array, jnp.result_type(float)), part.axes)


def _known(*values: Any) -> bool:
    """Whether all values are known when the program is compiled."""
    return all(isinstance(value, float) for value in values)


def _multiply(a: Any, b: Any) -> Any:
    return a * b if _known(a, b) else arithmetic.multiply(*_arrays(a, b))


def _divide(a: Any, b: Any) -> Any:
    return a / b if _known(a, b) else arithmetic.divide(*_arrays(a, b))


def _power(a: Any, b: Any) -> Any:
    if not _known(a, b):
        return arithmetic.power(*_arrays(a, b))
    if isinstance(value := a**b, complex):
        raise ValueError("a root of a negative number")
    return value


def _arrays(*values: Any) -> tuple[Any, ...]:
    """Return values as arrays of one type, which numbers in the text do not widen."""
    dtype = jnp.result_type(*values)
    return values if _known(*values) else tuple(jnp.asarray(value, dtype) for value in values)


def _folded(function: Callable[[Any, Any], Any], values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


_COMPARISONS = {
    ast.Lt: jnp.less,
    ast.LtE: jnp.less_equal,
    ast.Gt: jnp.greater,
    ast.GtE: jnp.greater_equal,
    ast.Eq: jnp.equal,
    ast.NotEq: jnp.not_equal,
}


def _compared(operators: list[ast.cmpop], values: tuple[Any, ...]) -> Any:
    pairs = zip(operators, values[:-1], values[1:], strict=True)
    return _folded(jnp.logical_and, tuple(_COMPARISONS[type(op)](a, b) for op, a, b in pairs))


_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: _multiply,
    ast.Div: _divide,
}
# By name of the function: weights of the points of a line in the value at a place.
_BETWEEN = {"at": interpolation.weights, "cubic_at": interpolation.cubic_weights}
_EXTREMES = {"max": (jnp.maximum, jnp.max), "min": (jnp.minimum, jnp.min)}
_SEVERAL = {
    "atan2": lambda y, x: arithmetic.angle(*map(jnp.asarray, _arrays(y, x))),
    "hypot": lambda x, y: arithmetic.UNARY["sqrt"](
        arithmetic.square(jnp.asarray(x)) + arithmetic.square(jnp.asarray(y))
    ),
    "clip": lambda x, low, high: jnp.minimum(jnp.maximum(*_arrays(x, low)), high),
    "where": lambda condition, one, other: jnp.where(condition, *_arrays(one, other)),
}


def _mean(x: jax.Array, axes: Mapping[int, str]) -> jax.Array:
    """Return the mean along axes, given by their places, of which unequal cells count by their size."""
    for place, axis in axes.items():
        if isinstance(axis, Spaced) and axis.widths is not None:
            share = jnp.asarray(axis.widths / axis.widths.mean(), x.dtype)
            x = x * share.reshape(-1, *[1] * (x.ndim - place - 1))
    return jnp.mean(x, tuple(axes))


# Of an array, and the names of axes by their places.
_OVER_SPACE: dict[str, Callable[[jax.Array, Mapping[int, str]], jax.Array]] = {
    "mean": _mean,
    "sum": lambda x, axes: jnp.sum(x, tuple(axes)),
    "rms": lambda x, axes: arithmetic.UNARY["sqrt"](_mean(arithmetic.square(x), axes)),
    "norm": lambda x, axes: arithmetic.UNARY["sqrt"](jnp.sum(arithmetic.square(x), tuple(axes))),
    "max": lambda x, axes: jnp.max(x, tuple(axes)),
    "min": lambda x, axes: jnp.min(x, tuple(axes)),
}


def _extreme(function: Callable[..., jax.Array], series: jax.Array, chosen: jax.Array, other: float) -> jax.Array:
    """Return the largest or smallest of the chosen; of none of them, NaN."""
    return jnp.where(jnp.any(chosen), function(jnp.where(chosen, series, other), 0), jnp.nan)


def _mean_of(series: jax.Array, chosen: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(chosen, series, 0), 0) / jnp.sum(chosen, 0)


_OVER_FRAMES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "time_mean": _mean_of,
    "time_rms": lambda series, chosen: arithmetic.UNARY["sqrt"](_mean_of(arithmetic.square(series), chosen)),
    "largest": lambda series, chosen: _extreme(jnp.max, series, chosen, -jnp.inf),
    "smallest": lambda series, chosen: _extreme(jnp.min, series, chosen, jnp.inf),
}
