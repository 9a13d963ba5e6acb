"""Expressions: checked text as a pure function of named values."""

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
        syntax: the checked syntax tree.
        where: file and key, for messages.
    """

    syntax: Syntax
    where: str

    def __call__(self, values: Mapping[str, Named | jax.Array | float]) -> Named:
        """Return its value.

        Args:
            values: values of all its names; plain arrays are scalars without axes.

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
    text: str, where: str = "expression", known: Collection[str] | None = None, *, is_condition: bool = False
) -> Expression:
    """Return the expression written in a text.

    Args:
        text: numbers, names, ``+ - * / **``, comparisons, ``and or not`` and functions, such as
            ``"where(r < 1, (1 - r)**2, 0)"``.
        where: file and key, for messages.
        known: names that it may contain; ``None`` checks them only when it is evaluated.
        is_condition: whether it is a condition, true or false, instead of a number.

    Raises:
        UserError: that marks the column of a mistake.
    """
    return Expression(parse(text, where, known, is_condition=is_condition), where)


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
