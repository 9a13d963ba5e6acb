"""Objectives given by expressions of the observed arrays and diagnostics of a run."""

import ast
import dataclasses
from collections.abc import Callable, Collection, Mapping

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import FRAME, STORED, Named, axes_of
from simkit.core.expressions.expression import Expression, expression
from simkit.core.expressions.moment import axes_with_widths, coordinates_of
from simkit.core.expressions.names import FUNCTIONS
from simkit.core.expressions.syntax import Syntax, dotted, parse, refuse
from simkit.core.simulation import Arrays, Simulation
from simkit.errors import UserError


def measure(
    text: str,
    where: str,
    axes: Mapping[str, tuple[str, ...]],
    known: Collection[str],
    coordinates: Mapping[str, Named] | None = None,
) -> Callable[..., jax.Array]:
    """Return an objective, ``(frames, diagnostics, stored=None) -> number``, from an expression that reduces frames.

    Args:
        text: such as ``"time_mean(lift_coefficient**2, after=20)"``; without a reduction of frames, of the last frame.
        where: file and key, for messages.
        axes: names of the axes of observed arrays, by name of the array.
        known: names of all observed arrays and diagnostics.
        coordinates: coordinates of the points along axes, by name of the axis.

    Raises:
        UserError: if it is not an expression of these, or its value is not one number.
    """
    points = {name: line for name, line in (coordinates or {}).items() if name not in known}
    formula = expression(text, where, {*known, *points})
    formula = formula if formula.syntax.over_frames else _of_last_frame(formula)

    def measured(frames: Arrays, diagnostics: Arrays, stored: jax.Array | None = None) -> jax.Array:
        named = points | {
            name: Named(array, (FRAME, *axes_of(name, array.ndim - 1, axes.get(name, ()))))
            for name, array in frames.items()
        }
        named |= {
            name: Named(array, (FRAME, *axes_of(name, array.ndim - 1, ()))) for name, array in diagnostics.items()
        }
        value = formula(named | ({} if stored is None else {STORED: Named(stored, (FRAME,))}))
        if value.axes:
            remedy = "final(...) or time_mean(...)" if FRAME in value.axes else "mean(...), max(...) or rms(...)"
            raise UserError(
                f"{where}: '{text}' has one number for each {' and '.join(value.axes)}; reduce it by {remedy}"
            )
        return jnp.asarray(value.array)

    return measured


def _of_last_frame(formula: Expression) -> Expression:
    syntax, tree = formula.syntax, formula.syntax.tree
    if not syntax.names:
        refuse(syntax.text, formula.where, tree, "is a constant; use an observed array or a diagnostic")
    final = ast.Call(func=ast.Name("final"), args=[tree], keywords=[])
    return dataclasses.replace(formula, syntax=dataclasses.replace(syntax, tree=ast.copy_location(final, tree)))


def measure_of(simulation: Simulation, text: str, where: str) -> Callable[[Arrays, Arrays], jax.Array]:
    """Return `measure` of the observed arrays and diagnostics of a simulation.

    Raises:
        UserError: if the text is not an expression of these, or its value is not one number; or if it reduces frames of
            a simulation that converges, which has its last frame only.
    """
    observed, diagnosed = _shapes(simulation)
    axes = axes_with_widths(simulation)
    lines = coordinates_of(simulation, {axis for of in axes.values() for axis in of})
    made = measure(text, where, axes, {*observed, *diagnosed}, lines)
    if simulation.converges and simulation.equilibrium is not None:
        _refuse_series(parse(text, where), where)
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
