"""An expression: its text, checked once, as a pure function of arrays by name."""

import dataclasses
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named, evaluate
from simkit.core.expressions.syntax import Syntax, parse
from simkit.errors import UserError, nearest


@dataclasses.dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes:
        syntax: its checked tree.
        where: file and key, for messages.
    """

    syntax: Syntax
    where: str

    def __call__(self, values: Mapping[str, Named | jax.Array | float]) -> Named:
        """Return its value.

        Args:
            values: of all names that it takes; plain arrays are numbers without axes.

        Raises:
            UserError: if axes do not fit.
        """
        named = {
            name: value if isinstance(value, Named) else Named(jnp.asarray(value)) for name, value in values.items()
        }
        for name in self.syntax.names:
            if name not in named:
                raise UserError(f"{self.where}: '{name}' is not known here{nearest(name, sorted(named))}")
        return evaluate(self.syntax, named, self.where)


def expression(
    text: str, where: str = "expression", known: Collection[str] | None = None, *, is_truth: bool = False
) -> Expression:
    """Return the expression that a text says.

    Args:
        text: numbers, names, ``+ - * / **``, comparisons, ``and or not`` and functions, such as
            ``"where(r < 1, (1 - r)**2, 0)"``.
        where: file and key, for messages.
        known: names that it may take; ``None`` leaves that open until it is evaluated.
        is_truth: whether it is a comparison, true or false, and not a number.

    Raises:
        UserError: that marks the column of a mistake.
    """
    return Expression(parse(text, where, known, is_truth=is_truth), where)


def constant(text: str, where: str) -> float:
    """Return the number that an expression without names is, such as 200 of ``"2*100"``, in double precision.

    Raises:
        UserError: if it is no such expression, or its value is not finite.
    """
    with jax.enable_x64(True):
        value = float(expression(text, where, known=())({}).array)
    if not jnp.isfinite(value):
        raise UserError(f"{where}: '{text}' is {value}; write a finite number")
    return value
