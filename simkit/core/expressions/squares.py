"""Expressions that are sums of squares, and their residuals."""

import ast
import dataclasses
from collections.abc import Callable, Mapping
from typing import NoReturn

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named, evaluate
from simkit.core.expressions.expression import Expression
from simkit.core.expressions.names import CONSTANTS
from simkit.core.expressions.syntax import refuse

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

    def part(tree: ast.expr) -> Expression:
        return dataclasses.replace(formula, syntax=dataclasses.replace(formula.syntax, tree=tree))

    def residuals(values: Mapping[str, Named]) -> jax.Array:
        found = [evaluate(part(root).syntax, values, formula.where) for root in squares]
        roots = [jnp.asarray(root.array) for root in found]

        def total(squared: list[jax.Array]) -> jax.Array:
            more = {_name(i): Named(s, root.axes) for i, (s, root) in enumerate(zip(squared, found, strict=True))}
            return jnp.asarray(evaluate(part(outer).syntax, {**values, **more}, formula.where).array)

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
                self.refuse(node, "is the root of a sum of squares; square it: append **2")
        self.refuse(node, f"is not a sum of squares; {_ALLOWED}")

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
        value = evaluate(dataclasses.replace(self.formula.syntax, tree=node), {}, self.formula.where).array
        return float(value) > 0

    def refuse(self, node: ast.expr, message: str) -> NoReturn:
        refuse(self.formula.syntax.text, self.formula.where, node, message)
