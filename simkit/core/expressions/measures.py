"""Objectives given by expressions of the observed arrays and diagnostics of a run."""

import ast
import copy
import dataclasses
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import FRAME, STORED, Named, axes_of
from simkit.core.expressions.expression import Expression, expression
from simkit.core.expressions.moment import axes_with_widths, coordinates_of
from simkit.core.expressions.names import FUNCTIONS
from simkit.core.expressions.squares import residuals_of
from simkit.core.expressions.syntax import Syntax, dotted, refuse
from simkit.core.simulation import Arrays, Simulation
from simkit.errors import UserError


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
        """Return residuals (m,) of which the number is the sum of squares, see `simkit.core.expressions.squares`.

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
        syntax = dataclasses.replace(formula.syntax, tree=tree, names=tuple(dict.fromkeys(names)), over_frames=True)
        return dataclasses.replace(formula, syntax=syntax)
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
        refuse(syntax.text, formula.where, tree, "is a constant; use an observed array or a diagnostic")
    final = ast.Call(func=ast.Name("final"), args=[tree], keywords=[])
    return dataclasses.replace(formula, syntax=dataclasses.replace(syntax, tree=ast.copy_location(final, tree)))


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
    observed, diagnosed = _shapes(simulation)
    axes = axes_with_widths(simulation)
    lines = coordinates_of(simulation, {axis for of in axes.values() for axis in of})
    made = measure(text, where, axes, {*observed, *diagnosed}, lines, definitions)
    if simulation.converges and simulation.equilibrium is not None:
        _refuse_series(made.formula.syntax, where)
    jax.eval_shape(made, observed, diagnosed)
    return made


def _refuse_series(syntax: Syntax, where: str) -> None:
    for node in ast.walk(syntax.tree):
        if isinstance(node, ast.Call) and (name := dotted(node.func)) != "final" and FUNCTIONS[name].over_frames:
            refuse(syntax.text, where, node, "has no meaning for a simulation that runs until it converges; use final")


def _shapes(simulation: Simulation) -> tuple[Arrays, Arrays]:
    """Return the shapes of two frames of a simulation, without computing them."""
    state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))

    def frames(state: object) -> tuple[Arrays, Arrays]:
        one = simulation.observe(state, simulation.params), simulation.diagnose(state, simulation.params)
        return jax.tree.map(lambda array: jnp.stack([array, array]), one)

    return jax.eval_shape(frames, state)
