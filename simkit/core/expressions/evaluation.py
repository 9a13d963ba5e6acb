"""Evaluation of checked expressions of arrays with named axes, as pure functions of named values."""

import ast
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.expressions import functions
from simkit.core.expressions.functions import lowest_point
from simkit.core.expressions.syntax import CONSTANTS, Syntax, dotted, entries_of, parse, refuse
from simkit.core.settings.tables import Table
from simkit.errors import UserError, nearest

FRAME = "frame"
# Key of `Frames.stored`, (frames,) booleans, among the values; no valid name of an expression.
STORED = "(stored)"


class UnnamedAxis(str):
    """An axis without a name in the simulation, which is never aligned with an axis of another array."""

    __slots__ = ()


class SpatialAxis(str):
    """A named axis of points in space.

    Attributes:
        points: coordinates, (n,); or None.
        widths: widths of the cells around the points, (n,), the weights of means; None where all are equal.
    """

    points: np.ndarray | None
    widths: np.ndarray | None

    def __new__(cls, name: str, points: np.ndarray | None, widths: np.ndarray | None = None) -> "SpatialAxis":
        """Return the name with the points and the widths of the cells around them."""
        axis = super().__new__(cls, name)
        axis.points = points
        axis.widths = None if widths is None else np.asarray(widths, float)
        return axis


def axes_of(name: str, count: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the axes of an array; without any, the names used in data sets, as `UnnamedAxis`."""
    return names if len(names) == count else tuple(UnnamedAxis(f"{name}_{number}") for number in range(count))


@dataclasses.dataclass(frozen=True)
class Named:
    """An array with named axes.

    Attributes:
        array: array with one axis per name; a Python float where the value is known when the program is compiled.
        axes: names of the axes.
    """

    array: Any
    axes: tuple[str, ...] = ()


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
                return self.combined(node, _OPERATIONS[type(op)], self.value(left), self.value(right))
            case ast.BoolOp(op=op, values=parts):
                combine = jnp.logical_and if isinstance(op, ast.And) else jnp.logical_or
                return self.combined(node, lambda *all_: _folded(combine, all_), *map(self.value, parts))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self.combined(node, lambda *all_: _compared(ops, all_), *map(self.value, (left, *others)))
            case ast.Call():
                return self.call(node)
        raise AssertionError(ast.dump(node))

    def entry(self, node: ast.Subscript, whole: Named) -> Named:
        """Return an entry of an array along its first axes, for every frame."""
        entries, axes = entries_of(node), [axis for axis in whole.axes if axis != FRAME]
        if len(entries) > len(axes):
            self.refuse(node, f"has {len(entries)} numbers, and the array has {len(axes)} axes; write at most as many")
        array, remaining = whole.array, list(whole.axes)
        for axis, number in zip(axes, entries, strict=False):
            position = remaining.index(axis)
            if number >= (length := jnp.shape(array)[position]):
                self.refuse(node, f"is beyond the {length} entries along '{axis}'; write a number up to {length - 1}")
            array = jnp.asarray(array)[(slice(None),) * position + (number,)]
            remaining.pop(position)
        return Named(array, tuple(remaining))

    def combined(self, node: ast.expr, function: Callable[..., Any], *parts: Named) -> Named:
        """Return a function of several values, their axes aligned by name."""
        axes = tuple(dict.fromkeys(axis for part in sorted(parts, key=lambda p: -len(p.axes)) for axis in part.axes))
        unnamed = next((axis for axis in axes if isinstance(axis, UnnamedAxis)), None)
        if unnamed is not None and all(len(part.axes) < len(axes) for part in parts):
            self.refuse(node, f"combines arrays, and '{unnamed}' is an axis without a name; name it in 'dimensions'")
        lengths: dict[str, int] = {}
        for part in parts:
            for axis, length in zip(part.axes, jnp.shape(part.array), strict=True):
                if lengths.setdefault(axis, length) != length:
                    self.refuse(node, f"combines {lengths[axis]} and {length} values along '{axis}'; give as many")
        try:
            return Named(function(*(aligned(part, axes) for part in parts)), axes)
        except (ZeroDivisionError, OverflowError, ValueError) as error:  # from arithmetic of Python floats
            self.refuse(node, f"has no value ({error}); change its numbers")

    def power(self, node: ast.expr, base: Named, exponent: Named) -> Named:
        is_integer = isinstance(exponent.array, float) and exponent.array.is_integer() and abs(exponent.array) <= 64
        if is_integer and not _known(base.array):
            return Named(functions.integer_power(int(exponent.array))(base.array), base.axes)
        return self.combined(node, _power, base, exponent)

    def call(self, node: ast.Call) -> Named:
        name = node.func.id  # type: ignore[attr-defined]
        if name == "interp":
            table = self.values.get(dotted(node.args[1]), Named(0.0)).array
            if not isinstance(table, Table):
                self.refuse(node, "has no table; formulas of a system take tables that it names")
            return self.combined(node, lambda x: functions.interpolated(table, x), self.value(node.args[0]))
        parts = [self.value(argument) for argument in node.args]
        options = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in functions.UNARY:
            return self.combined(node, functions.UNARY[name], parts[0])
        if name in _SEVERAL:
            return self.combined(node, _SEVERAL[name], *parts)
        if name in _EXTREMES and len(parts) > 1:
            if options:
                self.refuse(node, "takes an axis of one array only; leave the axis out")
            return self.combined(node, lambda *all_: _folded(_EXTREMES[name][0], all_), *parts)
        if name in _INTERPOLATIONS:
            part = parts[0]
            for axis, coordinate in options.items():
                part = self.at(node, part, str(axis), coordinate, _INTERPOLATIONS[name])
            return part
        if name in ("parabola_min", "parabola_min_at"):
            return self.lowest(node, parts[0], options.get("axis"))
        if name in _OVER_SPACE:
            return self.over_space(node, name, parts[0], options.get("axis"))
        if name == "at_time":
            return self.at_time(node, parts[0])
        if name == "time_integral":
            return self.integral(node, parts[0], options)
        return self.over_frames(node, name, parts[0], options.get("after"))

    def over_space(self, node: ast.expr, name: str, part: Named, option: ast.expr | None) -> Named:
        axes = [each for each in part.axes if each != FRAME]
        if option is not None:
            chosen = option.value  # type: ignore[attr-defined]
            if chosen not in axes:
                self.refuse(node, f"reduces along '{chosen}'; the array has {', '.join(axes) or 'no axis'}")
            axes = [each for each in axes if each == chosen]
        if not axes and name in ("rms", "norm"):
            return self.combined(node, functions.UNARY["abs"], part)
        if not axes:
            return part
        kept = tuple(each for each in part.axes if each not in axes)
        return Named(_OVER_SPACE[name](part.array, {part.axes.index(each): each for each in axes}), kept)

    def lowest(self, node: ast.expr, part: Named, option: ast.expr | None) -> Named:
        """Return the lowest point of every frame by parabolas: its value, or its coordinate along an axis."""
        axes = [each for each in part.axes if each != FRAME]
        lines = [each.points for each in axes if isinstance(each, SpatialAxis) and each.points is not None]
        if not axes or len(lines) < len(axes):
            bare = next((each for each in axes if getattr(each, "points", None) is None), None)
            self.refuse(node, "needs axes with coordinates; " + (f"'{bare}' has none" if bare else "there is no axis"))
        if (short := next((each for each in axes if len(each.points) < 3), None)) is not None:  # type: ignore[attr-defined]
            self.refuse(node, f"fits parabolas through three points; '{short}' has fewer")
        chosen = None if option is None else option.value  # type: ignore[attr-defined]
        if chosen is not None and chosen not in axes:
            self.refuse(node, f"needs the axis '{chosen}'; the array has {', '.join(axes)}")

        def point(f: jax.Array) -> jax.Array:
            value, coordinates = lowest_point(f, lines)
            return value if chosen is None else coordinates[axes.index(chosen)]

        array = _arrays(jnp.asarray(part.array), 0.0)[0]
        if FRAME not in part.axes:
            return Named(point(array))
        return Named(jax.vmap(point, part.axes.index(FRAME))(array), (FRAME,))

    def at(self, node: ast.expr, part: Named, axis: str, option: ast.expr, weights: Callable[..., jax.Array]) -> Named:
        """Return the interpolated value at a coordinate along an axis."""
        points, coordinate = self.values[axis], self.value(option)
        if axis not in part.axes or points.axes != (axis,):
            have = ", ".join(each for each in part.axes if each != FRAME and not isinstance(each, UnnamedAxis))
            self.refuse(node, f"needs the axis '{axis}'; the array has {have or 'no axis with coordinates'}")
        if axis in coordinate.axes:
            self.refuse(option, f"has one number for each {axis}; give one coordinate")
        is_known = _known(coordinate.array) and not isinstance(points.array, Tracer)
        if is_known:
            line = np.asarray(points.array)
            if not functions.is_within(line, np.asarray(coordinate.array)):
                self.refuse(
                    option, f"is beyond the values along {axis}, from {line[0]:g} to {line[-1]:g}; write one of these"
                )
        # Weights at a known coordinate are computed here and become constants of the compiled program.
        with jax.ensure_compile_time_eval() if is_known else contextlib.nullcontext():
            shares = weights(*(jnp.asarray(array) for array in _arrays(points.array, coordinate.array)))
        product = self.combined(node, jnp.multiply, part, Named(shares, (axis, *coordinate.axes)))
        return Named(jnp.sum(product.array, product.axes.index(axis)), tuple(a for a in product.axes if a != axis))

    def at_time(self, node: ast.Call, part: Named) -> Named:
        series, kept = self.series(node, part)
        times, moment = self.times(node, "is a value at a time"), self.moment(node.args[1])
        return Named(functions.value_at(series, times, moment), kept)

    def integral(self, node: ast.expr, part: Named, limits: Mapping[str | None, ast.expr]) -> Named:
        series, kept = self.series(node, part)
        ends = {str(key): self.moment(limit) for key, limit in limits.items()}
        return Named(functions.integral(series, self.times(node, "is an integral over time"), **ends), kept)

    def over_frames(self, node: ast.expr, name: str, part: Named, after: ast.expr | None) -> Named:
        series, kept = self.series(node, part)
        if name in ("final", "first"):
            return Named(series[-1 if name == "final" else 0], kept)
        stored = self.values.get(STORED)
        chosen = jnp.ones(series.shape[:1], bool) if stored is None else stored.array
        if after is not None:
            begin, times = self.moment(after), self.times(node, "has 'after'")
            interval = (times[-1] - times[0]) / jnp.sum(chosen)
            chosen = chosen & (times >= begin - functions.ROUNDING * interval)
        chosen = chosen.reshape(-1, *[1] * (series.ndim - 1))
        return Named(functions.REDUCTIONS[name](series, chosen), kept)

    def moment(self, node: ast.expr) -> Any:
        """Return a value that is one number."""
        if (value := self.value(node)).axes:
            self.refuse(node, "is not one number; reduce it to one, such as by mean(...)")
        return value.array

    def series(self, node: ast.expr, part: Named) -> tuple[jax.Array, tuple[str, ...]]:
        """Return a value with its frames first, and the names of its other axes."""
        if FRAME not in part.axes:
            self.refuse(node, "reduces frames, and its argument has none; give it a value that each frame has")
        kept = tuple(axis for axis in part.axes if axis != FRAME)
        return jnp.moveaxis(part.array, part.axes.index(FRAME), 0), kept

    def times(self, node: ast.expr, what: str) -> jax.Array:
        """Return the times of the frames."""
        if "time" not in self.values:
            self.refuse(node, f"{what}, and there is no 'time'; leave it out")
        if (time := self.values["time"]).axes != (FRAME,):
            self.refuse(node, f"{what}, and 'time' is not one number in each frame; leave it out")
        return time.array


def aligned(part: Named, axes: tuple[str, ...]) -> Any:
    """Return the array with the given axes in order, of length 1 where it lacks one; a scalar unchanged.

    Args:
        part: the array; its axes are among the given ones.
        axes: names of the axes of the result.
    """
    if not part.axes:
        return part.array
    order = sorted(range(len(part.axes)), key=lambda number: axes.index(part.axes[number]))
    array = jnp.transpose(part.array, order)
    return array.reshape([array.shape[order.index(part.axes.index(a))] if a in part.axes else 1 for a in axes])


def _real(part: Named) -> Named:
    """Return integers and booleans as floats, so that integers do not overflow and booleans add."""
    if _known(part.array) or jnp.issubdtype(part.array.dtype, jnp.floating):
        return part
    return Named(jnp.asarray(part.array, jnp.result_type(float)), part.axes)


def _known(*values: Any) -> bool:
    """Return whether all values are known when the program is compiled."""
    return all(isinstance(value, float) for value in values)


def _multiply(a: Any, b: Any) -> Any:
    return a * b if _known(a, b) else functions.multiply(*_arrays(a, b))


def _divide(a: Any, b: Any) -> Any:
    return a / b if _known(a, b) else functions.divide(*_arrays(a, b))


def _power(a: Any, b: Any) -> Any:
    if not _known(a, b):
        return functions.power(*_arrays(a, b))
    if isinstance(value := a**b, complex):
        raise ValueError("a root of a negative number")
    return value


def _arrays(*values: Any) -> tuple[Any, ...]:
    """Return values as arrays of one dtype, which numbers in the text do not widen."""
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
# Interpolation weights by name of the function.
_INTERPOLATIONS = {"at": functions.weights, "cubic_at": functions.cubic_weights}
_EXTREMES = {"max": (jnp.maximum, jnp.max), "min": (jnp.minimum, jnp.min)}
_SEVERAL = {
    "atan2": lambda y, x: functions.angle(*map(jnp.asarray, _arrays(y, x))),
    "hypot": lambda x, y: functions.UNARY["sqrt"](functions.square(jnp.asarray(x)) + functions.square(jnp.asarray(y))),
    "clip": lambda x, low, high: jnp.minimum(jnp.maximum(*_arrays(x, low)), high),
    "where": lambda condition, one, other: jnp.where(condition, *_arrays(one, other)),
}


def _mean(x: jax.Array, axes: Mapping[int, str]) -> jax.Array:
    """Return the mean along axes, weighted by the widths of cells; ``axes`` has names by axis number."""
    for number, axis in axes.items():
        if isinstance(axis, SpatialAxis) and axis.widths is not None:
            weight = jnp.asarray(axis.widths / axis.widths.mean(), x.dtype)
            x = x * weight.reshape(-1, *[1] * (x.ndim - number - 1))
    return jnp.mean(x, tuple(axes))


# Functions of an array and ``{axis number: name}`` of the axes to reduce.
_OVER_SPACE: dict[str, Callable[[jax.Array, Mapping[int, str]], jax.Array]] = {
    "mean": _mean,
    "sum": lambda x, axes: jnp.sum(x, tuple(axes)),
    "rms": lambda x, axes: functions.UNARY["sqrt"](_mean(functions.square(x), axes)),
    "norm": lambda x, axes: functions.UNARY["sqrt"](jnp.sum(functions.square(x), tuple(axes))),
    "max": lambda x, axes: jnp.max(x, tuple(axes)),
    "min": lambda x, axes: jnp.min(x, tuple(axes)),
}


@dataclasses.dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes:
        syntax: the checked syntax tree.
        where: file and key, for messages.
    """

    syntax: Syntax
    where: str

    def __call__(self, values: Mapping[str, Named | jax.Array | float]) -> Named:
        """Return its value; arrays are aligned by the names of their axes and broadcast along the others.

        Args:
            values: values of all its names; plain arrays are scalars without axes.

        Raises:
            UserError: that marks the column, if axes do not fit, or numbers in the text divide by zero.
        """
        named = {
            name: value if isinstance(value, Named) else Named(jnp.asarray(value)) for name, value in values.items()
        }
        for name in self.syntax.names:
            if name not in named:
                raise UserError(f"{self.where}: '{name}' is not known here", nearest(name, sorted(named)))
        return _Evaluation(self.syntax, named, self.where).value(self.syntax.tree)

    def of(self, tree: ast.expr, **changed: Any) -> "Expression":
        """Return the expression with another tree, and other attributes of its syntax."""
        return dataclasses.replace(self, syntax=dataclasses.replace(self.syntax, tree=tree, **changed))

    def refuse(self, node: ast.expr, message: str) -> NoReturn:
        """Refuse a part of it, with its column marked."""
        refuse(self.syntax.text, self.where, node, message)


def expression(
    text: str,
    where: str = "expression",
    known: Collection[str] | None = None,
    *,
    is_condition: bool = False,
    of_frames: bool = True,
) -> Expression:
    """Return the expression written in a text.

    Args:
        text: numbers, names, ``+ - * / **``, comparisons, ``and or not`` and functions, such as
            ``"where(r < 1, (1 - r)**2, 0)"``.
        where: file and key, for messages.
        known: names that it may contain; ``None`` checks them only when it is evaluated.
        is_condition: whether it is a condition, true or false, instead of a number.
        of_frames: whether it may reduce the frames of a run.

    Raises:
        UserError: that marks the column of a mistake.
    """
    return Expression(parse(text, where, known, is_condition=is_condition, of_frames=of_frames), where)


def constant(text: str, where: str) -> float:
    """Return the value of an expression without names, such as 200 for ``"2*100"``, in double precision.

    Raises:
        UserError: if it is not such an expression, or its value is not finite.
    """
    with jax.enable_x64(True):
        value = float(expression(text, where, known=())({}).array)
    if not jnp.isfinite(value):
        raise UserError(f"{where}: '{text}' is {value}; write a finite number")
    return value
