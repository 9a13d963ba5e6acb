"""Formulas of a system: expressions of its parameters, derived values, and names such as coordinates."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import Named, aligned
from simkit.core.expressions.expression import Expression, expression
from simkit.core.expressions.names import CONSTANTS, FUNCTIONS
from simkit.core.expressions.syntax import parse
from simkit.core.settings import Said
from simkit.core.simulation import Params
from simkit.errors import Mistakes, UserError, one_line


@dataclasses.dataclass(frozen=True)
class Scope:
    """What every formula of a system may take.

    Attributes:
        parameters: paths of parameters that are one number.
        derived: further values by name, each of parameters, of those before it, and of names that only some places
            know, such as the time.
    """

    parameters: tuple[str, ...]
    derived: Mapping[str, "Formula"] = dataclasses.field(default_factory=dict)

    def refuse_unknown(self, settings: Any, names: Collection[str]) -> None:
        """Refuse names in formulas that are known nowhere, those of all formulas together.

        Args:
            settings: a tree of tables and lists with formulas.
            names: known in some places, besides parameters and derived values.

        Raises:
            UserError: that marks the first; `UserError.others` has all that follow.
        """
        known, mistakes = {*self.parameters, *self.derived, *names}, Mistakes()

        def look(value: Any) -> None:
            if isinstance(value, Mapping):
                value = tuple(value.values())
            if isinstance(value, tuple | list):
                for inner in value:
                    look(inner)
            elif isinstance(value, Said):
                with mistakes.kept():
                    _refuse_names(value, known)

        look(settings)
        mistakes.raise_if_any()

    def formula(self, said: Said, names: Collection[str] = ()) -> "Formula":
        """Return a formula.

        Args:
            said: its text, and where it stands.
            names: what it may take besides parameters and derived values: coordinates, the time, quantities.

        Raises:
            UserError: that marks the column of a name that is not known, or tells through which derived value it is
                taken.
        """
        known = {*self.parameters, *self.derived, *names}
        found = expression(said.text, said.where, known)
        if found.syntax.over_frames:
            raise UserError(f"{said.where}: '{said.text}' reduces the frames of a run, and there is only one moment")
        taken: dict[str, None] = {}
        for name in found.syntax.names:
            if name in names or name not in self.derived:
                taken[name] = None
                continue
            for inner in self.derived[name].taken:
                if inner not in names and inner not in self.parameters:
                    raise UserError(
                        f"{said.where}: '{name}' is derived of '{inner}', which is not known here; "
                        f"known: {', '.join(names) or 'parameters only'}"
                    )
                taken[inner] = None
        return Formula(found, self, tuple(taken))


def _refuse_names(said: Said, known: Collection[str]) -> None:
    """Raise if a formula or a condition has a name that is not known; all else is left to where it is used."""
    for is_truth in (False, True):
        try:
            parse(said.text, said.where, is_truth=is_truth)
        except UserError:
            continue
        parse(said.text, said.where, known, is_truth=is_truth)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula of a system, as a pure function of its parameters and of what its place adds.

    Attributes:
        expression: the checked expression.
        scope: what it may take anywhere.
        taken: names of parameters, and of what its place adds, that it depends on, also through derived values.
    """

    expression: Expression
    scope: Scope
    taken: tuple[str, ...]

    def takes(self, *names: str) -> bool:
        """Return whether it depends on any of some names."""
        return any(name in self.taken for name in names)

    @property
    def where(self) -> str:
        """Where it stands, for messages."""
        return self.expression.where

    def __call__(self, params: Params, **given: Named | jax.Array | float) -> Named:
        """Return its value.

        Args:
            params: parameters.
            **given: what its place adds, by name; plain arrays are numbers without axes.

        Raises:
            UserError: if axes do not fit.
        """
        return self.of(params, given)

    def of(self, params: Params, given: Mapping[str, Named | jax.Array | float]) -> Named:
        """Return its value; as when it is called, with what its place adds in one mapping."""
        numbers = paths.leaves(params)
        values: dict[str, Named | jax.Array | float] = {}
        for name in self.expression.syntax.names:
            if name in given:
                values[name] = given[name]
            elif name in self.scope.derived:
                values[name] = self.scope.derived[name].of(params, given)
            else:
                values[name] = numbers[name]
        return self.expression(values)

    def number(self, params: Params, **given: Named | jax.Array | float) -> jax.Array:
        """Return its value as one number.

        Raises:
            UserError: if it is more than one.
        """
        value = self.of(params, given)
        if value.axes:
            raise UserError(f"{self.where}: one number is wanted, and there is one for each {' and '.join(value.axes)}")
        return jnp.asarray(value.array, precision_of(params))

    def on(self, axes: tuple[str, ...], params: Params, **given: Named | jax.Array | float) -> jax.Array:
        """Return its value as an array with the given axes, of length 1 where it is the same along one.

        Args:
            axes: names of the axes, in order.
            params: parameters.
            **given: what its place adds; coordinates as `Named`.

        Raises:
            UserError: if it has another axis.
        """
        value = self.of(params, given)
        if other := [axis for axis in value.axes if axis not in axes]:
            raise UserError(f"{self.where}: has one number for each {other[0]}; only {' and '.join(axes)} are wanted")
        array = jnp.asarray(value.array, precision_of(params))
        return aligned(Named(array, value.axes), axes) if value.axes else array.reshape([1] * len(axes))


def scope(parameters: Params, derived: Mapping[str, Said] | None = None, names: Collection[str] = ()) -> Scope:
    """Return what the formulas of a system may take.

    Args:
        parameters: the system's, those that are one number count.
        derived: expressions of further values by name; each may take those before it.
        names: what they may take besides: names that some places know, such as coordinates and the time.

    Raises:
        UserError: if a derived value has a name that is taken, or is no expression of what there is.
    """
    single = tuple(name for name, value in paths.leaves(parameters).items() if _is_number(value))
    for name in single:
        if name in FUNCTIONS or name in CONSTANTS or name in names:
            what = "a function" if name in FUNCTIONS else "a constant" if name in CONSTANTS else "another value"
            raise UserError(f"parameter '{name}' has the name of {what} of formulas; choose another name")
    found = Scope(single)
    for name, said in (derived or {}).items():
        if name in found.parameters or name in FUNCTIONS or name in CONSTANTS or name in names:
            raise UserError(f"{said.where}: the name '{name}' is taken; choose another")
        found = Scope(single, {**found.derived, name: found.formula(said, names)})
    return found


def refuse_non_finite(formula: Formula, value: jax.Array | Named) -> None:
    """Refuse a formula whose value at the start of a run is not finite everywhere.

    Args:
        formula: for the message.
        value: what it gave, not traced.

    Raises:
        UserError: if a number is not finite; tells where.
    """
    array = np.asarray(value.array if isinstance(value, Named) else value)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = f" at the place {[int(k) for k in wrong[0]]} of {list(array.shape)}" if array.ndim else ""
        raise UserError(
            f"{formula.where}: '{one_line(formula.expression.syntax.text, 80)}' is {array[tuple(wrong[0])]}{place} at "
            "the start; change it, or the parameters it takes"
        )


def refuse_negative(formula: Formula, value: jax.Array | Named) -> None:
    """Refuse a formula whose value at the start of a run is not finite, or below zero, somewhere.

    Args:
        formula: for the message.
        value: what it gave, not traced.

    Raises:
        UserError: if a number is not finite or negative.
    """
    refuse_non_finite(formula, value)
    smallest = float(np.min(np.asarray(value.array if isinstance(value, Named) else value), initial=0.0))
    if smallest < 0:
        raise UserError(
            f"{formula.where}: '{one_line(formula.expression.syntax.text, 80)}' is {smallest:g} at the start; choose "
            "one that is nowhere below zero"
        )


def precision_of(params: Params) -> Any:
    """Return the precision of parameters, in which formulas are evaluated; the working precision without any."""
    return jnp.result_type(*(paths.leaves(params).values() or (float,)))


def _is_number(value: Any) -> bool:
    value = getattr(value, "default", value)
    return not isinstance(value, list | tuple) and np.ndim(value) == 0
