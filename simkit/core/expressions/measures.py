"""Expressions of a simulation's values: quantities, stop conditions, objectives, and sums of squares."""

import ast
import copy
import dataclasses
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import (
    FRAME,
    STORED,
    Expression,
    Named,
    SpatialAxis,
    axes_of,
    expression,
)
from simkit.core.expressions.syntax import CONSTANTS, FUNCTIONS, dotted, parse
from simkit.core.formulation import computed_once
from simkit.core.simulation import TAKEN, Arrays, Params, Quantity, Simulation, State
from simkit.core.status import Status, status_of, stops
from simkit.errors import Mistakes, UserError, untaken

PARAMETER = "params."


class Moment:
    """Names that expressions of a simulation may contain, and their values at a state.

    A parameter with the name of a quantity is written ``params.NAME``. Parameters that are arrays are not available.

    Attributes:
        quantities: names of observed arrays and diagnostics.
        axes: names of the axes of observed arrays, by name of the array.
        coordinates: coordinates along the axes of observed arrays, by name of the axis.
        parameters: paths of the scalar parameters.
        shapes: shapes of the state and of the parameters.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Trace the quantities of the simulation; nothing is computed."""
        self._functions = {"observed": simulation.observe, "diagnosed": simulation.diagnose}
        shapes = simulation.shapes
        self._shapes = {"observed": shapes.observed, "diagnosed": shapes.diagnosed}
        names = axes_with_widths(simulation)
        self.axes = {
            name: axes_of(name, array.ndim, names.get(name, ())) for name, array in self._shapes["observed"].items()
        }
        self.shapes = shapes.state, jax.eval_shape(lambda params: params, simulation.params)
        self.quantities = tuple(name for arrays in self._shapes.values() for name in arrays)
        self.parameters = [name for name, value in paths.leaves(simulation.params).items() if jnp.ndim(value) == 0]
        self.coordinates = coordinates_of(simulation, {axis for axes in self.axes.values() for axis in axes})

    @property
    def known(self) -> set[str]:
        """All names that an expression may contain."""
        parameters = (*self.parameters, *(PARAMETER + name for name in self.parameters))
        return {*self.quantities, *parameters, *self.coordinates}

    def values(
        self,
        state: State,
        params: Params,
        names: Collection[str],
        frame: Mapping[str, Arrays] = MappingProxyType({}),
    ) -> dict[str, Named]:
        """Return the values of names at a state, calling ``observe`` and ``diagnose`` only if needed.

        Args:
            state: state of the simulation.
            params: parameters of the simulation.
            names: names to evaluate.
            frame: results of ``observe`` and ``diagnose`` at the state, as ``"observed"`` and ``"diagnosed"``.
        """
        values: dict[str, Named] = dict(self.coordinates)
        numbers = paths.leaves(params)
        for name in self.parameters:
            values[name] = values[PARAMETER + name] = Named(numbers[name])
        for kind, function in self._functions.items():
            if any(name in self._shapes[kind] for name in names):
                arrays = frame[kind] if kind in frame else function(state, params)
                axes = self.axes if kind == "observed" else {}
                values |= {name: Named(array, axes.get(name, ())) for name, array in arrays.items()}
        return {name: values[name] for name in names if name in values}


def axes_with_widths(simulation: Simulation) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of observed arrays, as `SpatialAxis` where they have coordinates or widths.

    Args:
        simulation: a simulation; its ``coordinates`` may hold ``NAME_widths`` for the axis NAME of unequal cells.
    """
    coordinates = simulation.coordinates

    def axis(name: str) -> str:
        points = np.asarray(coordinates.get(name, ()))
        is_line = points.ndim == 1 and points.dtype.kind == "f" and len(points) > 0
        widths = coordinates.get(f"{name}_widths")
        return SpatialAxis(name, points if is_line else None, widths) if is_line or widths is not None else name

    return {name: tuple(map(axis, axes)) for name, axes in simulation.dimensions.items()}


def coordinates_of(simulation: Simulation, used: Collection[str]) -> dict[str, Named]:
    """Return the coordinates of the points along axes, by name of the axis, for the axes that have them.

    Args:
        simulation: simulation with the coordinates.
        used: names of the axes, as returned by `axes_with_widths`.
    """
    axes = {str(axis): axis for axis in used}
    arrays = {name: np.asarray(values) for name, values in simulation.coordinates.items() if name in used}
    return {
        name: Named(jnp.asarray(values, jnp.result_type(float)), (axes[name],))
        for name, values in arrays.items()
        if values.ndim == 1 and values.dtype.kind == "f"
    }


@dataclasses.dataclass(frozen=True)
class ExpressedQuantity:
    """A quantity defined by an expression.

    Attributes:
        text: expression of observed arrays, diagnostics, parameters, coordinates, and quantities defined before it.
        quantity: unit and meaning.
        where: file and key, for messages.
    """

    text: str
    quantity: Quantity
    where: str


def with_expressions(
    simulation: Simulation, quantities: Mapping[str, ExpressedQuantity], mistakes: Mistakes | None = None
) -> Simulation:
    """Return the simulation with further quantities defined by expressions.

    Args:
        simulation: the simulation without them.
        quantities: definitions by name. Scalars are added to the diagnostics, arrays to the frames.
        mistakes: collects the mistakes of definitions, which are then skipped; ``None`` raises them.

    Raises:
        UserError: that marks the column of a mistake; if an expression reduces frames; or if a name is already used by
            a quantity or coordinate.
    """
    moment = Moment(simulation)
    kept = mistakes or Mistakes()
    expressions: dict[str, Expression] = {}
    axes: dict[str, tuple[str, ...]] = {}
    for number, (name, definition) in enumerate(quantities.items()):
        with kept.kept(f"quantities.{name}"):
            wrong = set(list(quantities)[:number]) - set(expressions)
            if not wrong.isdisjoint(parse(definition.text, definition.where).names):
                continue  # It cannot be checked; the wrong one is refused.
            formula = _checked(name, definition, moment, expressions)
            axes[name] = _axes_of(name, moment, expressions | {name: formula})
            expressions[name] = formula
    if mistakes is None:
        kept.raise_if_any()

    def joined(kind: str, arrays_of: Callable[..., Arrays], names: list[str]) -> Callable[[State, Params], Arrays]:
        def function(state: State, params: Params) -> Arrays:
            arrays = arrays_of(state, params)
            if not names:
                return arrays
            # Without the barrier, programs that share parts of a formula with other code would round it differently.
            arrays, params = computed_once((arrays, params))
            values = _values(names, moment, expressions, state, params, {kind: arrays})
            return arrays | {name: jnp.asarray(values[name].array, jnp.result_type(float)) for name in names}

        return function

    return dataclasses.replace(
        simulation,
        observe=joined("observed", simulation.observe, [name for name in axes if axes[name]]),
        diagnose=joined("diagnosed", simulation.diagnose, [name for name in axes if not axes[name]]),
        dimensions={**simulation.dimensions, **{name: of for name, of in axes.items() if of}},
        quantities={**simulation.quantities, **{name: quantities[name].quantity for name in axes}},
    )


def _checked(name: str, quantity: ExpressedQuantity, moment: Moment, before: Mapping[str, Expression]) -> Expression:
    untaken(name, {*moment.quantities, *moment.coordinates, *TAKEN}, quantity.where)
    return expression(quantity.text, quantity.where, moment.known | set(before), of_frames=False)


def _axes_of(name: str, moment: Moment, expressions: Mapping[str, Expression]) -> tuple[str, ...]:
    """Return the axes of a quantity, by tracing it."""
    axes: list[tuple[str, ...]] = []

    def traced(state: State, params: Params) -> jax.Array:
        value = _values([name], moment, expressions, state, params)[name]
        axes.append(value.axes)
        return jnp.asarray(value.array)

    jax.eval_shape(traced, *moment.shapes)
    return tuple(str(axis) for axis in axes[-1])


def _values(
    names: list[str],
    moment: Moment,
    expressions: Mapping[str, Expression],
    state: State,
    params: Params,
    frame: Mapping[str, Arrays] = MappingProxyType({}),
) -> dict[str, Named]:
    """Return expressed quantities and all values that they depend on, each evaluated once."""
    needed, pending = dict.fromkeys(names), list(names)
    while pending:
        if (name := pending.pop()) in expressions:
            pending += [each for each in expressions[name].syntax.names if each not in needed]
            needed |= dict.fromkeys(expressions[name].syntax.names)
    values = moment.values(state, params, [name for name in needed if name not in expressions], frame)
    for name, formula in expressions.items():
        if name in needed:
            values[name] = formula({each: values[each] for each in formula.syntax.names})
    return values


def stopped_when(simulation: Simulation, text: str, where: str) -> Simulation:
    """Return the simulation with the status ``STOPPED`` once a condition holds.

    The condition is evaluated after every step. Derivatives are those of the steps taken; they do not include the
    change of the time at which it stops.

    Args:
        simulation: one that runs a fixed number of steps.
        text: a comparison of quantities, parameters and coordinates, such as ``"height < 0 and time > 1"``.
        where: file and key, for messages.

    Raises:
        UserError: that marks the column of a mistake; if the condition is an array; or if the simulation runs until it
            converges.
    """
    if simulation.converges:
        raise UserError(f"{where}: the simulation runs until it converges, and needs no condition; leave it out")
    moment, status_alone = Moment(simulation), status_of(simulation)
    condition = expression(text, where, moment.known, is_condition=True, of_frames=False)

    def status(state: State, params: Params) -> jax.Array:
        code = status_alone(state, params)
        holds = condition(moment.values(state, params, condition.syntax.names))
        if holds.axes:
            raise UserError(f"{where}: '{text}' is one for each {' and '.join(holds.axes)}; reduce it by max or min")
        return jnp.where(jnp.asarray(holds.array) & ~stops(code), jnp.int32(Status.STOPPED), code)

    jax.eval_shape(status, *moment.shapes)
    return dataclasses.replace(simulation, status=status)


# Reductions that are linear in their argument, with weights that are not negative.
_LINEAR = ("mean", "sum", "time_mean", "time_sum")
# Roots of means and sums of squares, and the reduction whose root they are.
_ROOTS = {"rms": "mean", "norm": "sum", "time_rms": "time_mean"}
_ALLOWED = "write sums, means and positive multiples of squares by **2, such as time_mean((x - 1)**2) + 0.1*final(y)**2"


def residuals_of(formula: Expression) -> Callable[[Mapping[str, Named]], jax.Array]:
    """Return ``values -> (m,)``, residuals r of an expression that is a sum of squares: its value is sum(r**2).

    The squares x_i^2 enter linearly, f = sum_i w_i x_i^2, so that the weights are w = df/d(x^2), and r = sqrt(w) x.

    Args:
        formula: made of squares by ``+``, positive constant factors, and means and sums over points and frames. The
            square of ``rms``, ``norm`` or ``time_rms`` is the mean or sum of squares that it is.

    Raises:
        UserError: that marks the part that is not a sum of squares.
    """
    squares: list[ast.expr] = []
    outer = _Decomposition(formula, squares).linear(formula.syntax.tree)

    def residuals(values: Mapping[str, Named]) -> jax.Array:
        root_values = [formula.of(root)(values) for root in squares]
        roots = [jnp.asarray(root.array) for root in root_values]

        def total(squared: list[jax.Array]) -> jax.Array:
            more = {_name(i): Named(s, root.axes) for i, (s, root) in enumerate(zip(squared, root_values, strict=True))}
            return jnp.asarray(formula.of(outer)({**values, **more}).array)

        value, transpose = jax.vjp(total, [root**2 for root in roots])
        (weights,) = transpose(jnp.ones_like(value))
        # Constant; where a frame is not counted, the slope of the root of 0 would be NaN.
        weights = jax.lax.stop_gradient(weights)
        return jnp.concatenate([(jnp.sqrt(w) * x).ravel() for w, x in zip(weights, roots, strict=True)])

    return residuals


def _name(number: int) -> str:
    """Return the name that stands for a square; no valid name of an expression."""
    return f"(square {number})"


class _Decomposition:
    """Division of an expression into squares and a linear function of them."""

    def __init__(self, formula: Expression, squares: list[ast.expr]) -> None:
        self.formula, self.squares = formula, squares

    def linear(self, node: ast.expr, at: ast.expr | None = None) -> ast.expr:
        """Return a node with each square replaced by a name, and collect the roots of the squares.

        Args:
            node: part of the expression.
            at: ``final`` or ``first`` around the node, which is applied to the roots instead; otherwise ``None``.
        """
        match node:
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return ast.copy_location(ast.BinOp(self.linear(left, at), ast.Add(), self.linear(right, at)), node)
            case ast.BinOp(op=ast.Mult(), left=left, right=right) if self.is_positive(left):
                return ast.copy_location(ast.BinOp(left, ast.Mult(), self.linear(right, at)), node)
            case ast.BinOp(op=ast.Mult() | ast.Div() as op, left=left, right=right) if self.is_positive(right):
                return ast.copy_location(ast.BinOp(self.linear(left, at), op, right), node)
            case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=power)) if power in (2, 4, 6, 8):
                return self.square(node, base, int(power) // 2, at)
            case ast.Call(func=ast.Name(id="final" | "first") as end, args=[argument]):
                return self.linear(argument, end)
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _LINEAR:
                return ast.copy_location(ast.Call(node.func, [self.linear(argument, at)], node.keywords), node)
            case ast.Call(func=ast.Name(id=name)) if name in _ROOTS:
                self.formula.refuse(node, "is the root of a sum of squares; square it: append **2")
        self.formula.refuse(node, f"is not a sum of squares; {_ALLOWED}")

    def square(self, node: ast.expr, base: ast.expr, power: int, at: ast.expr | None) -> ast.expr:
        match base:
            case ast.Call(func=ast.Name(id="final" | "first") as end, args=[argument]) if at is None:
                return self.square(node, argument, power, end)
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _ROOTS and power == 1:
                inner = ast.copy_location(ast.BinOp(argument, ast.Pow(), ast.Constant(2)), node)
                function = ast.copy_location(ast.Name(_ROOTS[name]), node)
                return ast.copy_location(ast.Call(function, [self.linear(inner, at)], base.keywords), node)
        root = base if power == 1 else ast.copy_location(ast.BinOp(base, ast.Pow(), ast.Constant(power)), node)
        self.squares.append(root if at is None else ast.copy_location(ast.Call(at, [root], []), node))
        return ast.copy_location(ast.Name(_name(len(self.squares) - 1)), node)

    def is_positive(self, node: ast.expr) -> bool:
        """Return whether a node is a positive constant."""
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if names & set(self.formula.syntax.names) or not names <= set(CONSTANTS):
            return False
        if any(isinstance(part, ast.Call | ast.Attribute | ast.Subscript) for part in ast.walk(node)):
            return False
        return float(self.formula.of(node, names=())({}).array) > 0


@dataclasses.dataclass(frozen=True, eq=False)
class ExpressedMeasure:
    """An objective given by an expression, ``(frames, diagnostics, stored=None) -> number``.

    Attributes:
        formula: the expression, which reduces frames.
        axes: names of the axes of observed arrays, by name of the array.
        points: coordinates of the points along axes, by name of the axis.
    """

    formula: Expression
    axes: Mapping[str, tuple[str, ...]]
    points: Mapping[str, Named]

    def __call__(self, frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
        """Return the number.

        Raises:
            UserError: if axes do not fit, or the value is not one number.
        """
        value = self.formula(self._named(frames, diagnostics, stored))
        if value.axes:
            remedy = "final(...) or time_mean(...)" if FRAME in value.axes else "mean(...), max(...) or rms(...)"
            text = self.formula.syntax.text
            raise UserError(
                f"{self.formula.where}: '{text}' has one number for each {' and '.join(value.axes)}; reduce it by "
                f"{remedy}"
            )
        return jnp.asarray(value.array)

    def residuals(self, frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
        """Return residuals (m,) of which the number is the sum of squares, see `simkit.core.expressions.measures`.

        Raises:
            UserError: if the expression is not a sum of squares.
        """
        return residuals_of(self.formula)(self._named(frames, diagnostics, stored))

    def _named(self, frames: Arrays, diagnostics: Arrays, stored: jax.Array | None) -> dict[str, Named]:
        named = dict(self.points)
        for name, array in frames.items():
            named[name] = Named(array, (FRAME, *axes_of(name, array.ndim - 1, self.axes.get(name, ()))))
        for name, array in diagnostics.items():
            named[name] = Named(array, (FRAME, *axes_of(name, array.ndim - 1, ())))
        return named if stored is None else named | {STORED: Named(stored, (FRAME,))}


def measure(
    text: str,
    where: str,
    axes: Mapping[str, tuple[str, ...]],
    known: Collection[str],
    coordinates: Mapping[str, Named] | None = None,
    definitions: Mapping[str, str] | None = None,
) -> ExpressedMeasure:
    """Return an objective from an expression that reduces frames.

    Args:
        text: such as ``"time_mean(lift_coefficient**2, after=20)"``; without a reduction of frames, of the last frame.
        where: file and key, for messages.
        axes: names of the axes of observed arrays, by name of the array.
        known: names of all observed arrays and diagnostics.
        coordinates: coordinates of the points along axes, by name of the axis.
        definitions: expressions of other objectives by name, which it may contain; a quantity of the same name hides
            one.

    Raises:
        UserError: if it is not an expression of these, or an objective is defined by itself.
    """
    points = {name: line for name, line in (coordinates or {}).items() if name not in known}
    others = {name: of for name, of in (definitions or {}).items() if name not in known and name not in points}
    return ExpressedMeasure(_complete(text, where, {*known, *points}, others), axes, points)


def _complete(text: str, where: str, known: Collection[str], definitions: Mapping[str, str]) -> Expression:
    """Return an expression of frames only: definitions inserted, and reduced to the last frame if it is not reduced."""
    formula = expression(text, where, {*known, *definitions})
    if used := [name for name in formula.syntax.names if name in definitions]:
        parts = {}
        for name in used:
            # Without the name itself, so that an objective cannot be defined by itself.
            others = {other: of for other, of in definitions.items() if other != name}
            parts[name] = _complete(definitions[name], f"objectives.{name}", known, others)
        tree = _Inserted({name: part.syntax.tree for name, part in parts.items()}).visit(formula.syntax.tree)
        names = [name for name in formula.syntax.names if name not in used]
        names += [name for part in parts.values() for name in part.syntax.names]
        return formula.of(tree, names=tuple(dict.fromkeys(names)), over_frames=True)
    return formula if formula.syntax.over_frames else _of_last_frame(formula)


class _Inserted(ast.NodeTransformer):
    """Replacement of names by trees, all at the column of the name, which messages mark."""

    def __init__(self, trees: Mapping[str, ast.expr]) -> None:
        self.trees = trees

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.trees:
            return node
        tree = copy.deepcopy(self.trees[node.id])
        for part in ast.walk(tree):
            if isinstance(part, ast.expr):
                ast.copy_location(part, node)
        return tree


def _of_last_frame(formula: Expression) -> Expression:
    syntax, tree = formula.syntax, formula.syntax.tree
    if not syntax.names:
        formula.refuse(tree, "is a constant; use an observed array or a diagnostic")
    return formula.of(ast.copy_location(ast.Call(func=ast.Name("final"), args=[tree], keywords=[]), tree))


def measure_of(
    simulation: Simulation, text: str, where: str, definitions: Mapping[str, str] | None = None
) -> ExpressedMeasure:
    """Return `measure` of the observed arrays and diagnostics of a simulation.

    Args:
        simulation: the simulation.
        text: as for `measure`.
        where: file and key, for messages.
        definitions: as for `measure`.

    Raises:
        UserError: if the text is not an expression of these, or its value is not one number; or if it reduces frames of
            a simulation that converges, which has its last frame only.
    """
    moment = Moment(simulation)
    made = measure(text, where, moment.axes, moment.quantities, moment.coordinates, definitions)
    if simulation.converges and simulation.equilibrium is not None:
        for node in ast.walk(made.formula.syntax.tree):
            if isinstance(node, ast.Call) and (name := dotted(node.func)) != "final" and FUNCTIONS[name].over_frames:
                remedy = "has no meaning for a simulation that runs until it converges; use final"
                made.formula.refuse(node, remedy)
    two_frames = jax.tree.map(lambda array: jax.ShapeDtypeStruct((2, *array.shape), array.dtype), simulation.shapes[1:])
    jax.eval_shape(made, *two_frames)
    return made
