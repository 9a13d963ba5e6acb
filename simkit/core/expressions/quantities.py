"""Quantities defined by expressions of a simulation's parameters, quantities and coordinates."""

import dataclasses
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.expression import Expression, expression
from simkit.core.expressions.moment import Moment
from simkit.core.expressions.syntax import parse
from simkit.core.simulation import TAKEN, Arrays, Params, Quantity, Simulation, State
from simkit.errors import Mistakes, UserError


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
    for number, (name, one) in enumerate(quantities.items()):
        with kept.kept(f"quantities.{name}"):
            wrong = set(list(quantities)[:number]) - set(expressions)
            if not wrong.isdisjoint(parse(one.text, one.where).names):
                continue  # It cannot be checked; the wrong one is refused.
            found = _checked(name, one, moment, expressions)
            axes[name] = _axes_of(name, moment, expressions | {name: found})
            expressions[name] = found
    if mistakes is None:
        kept.raise_if_any()

    def joined(own: Callable[[State, Params], Arrays], names: list[str]) -> Callable[[State, Params], Arrays]:
        def function(state: State, params: Params) -> Arrays:
            found = _values(names, moment, expressions, state, params)
            return own(state, params) | {name: jnp.asarray(found[name].array, jnp.result_type(float)) for name in names}

        return function

    return dataclasses.replace(
        simulation,
        observe=joined(simulation.observe, [name for name in axes if axes[name]]),
        diagnose=joined(simulation.diagnose, [name for name in axes if not axes[name]]),
        dimensions={**simulation.dimensions, **{name: of for name, of in axes.items() if of}},
        quantities={**simulation.quantities, **{name: quantities[name].quantity for name in axes}},
    )


def _checked(name: str, one: ExpressedQuantity, moment: Moment, before: Mapping[str, Expression]) -> Expression:
    if name in moment.quantities or name in moment.coordinates:
        raise UserError(f"{one.where}: '{name}' is already a quantity or coordinate; choose another name")
    if name in TAKEN:
        raise UserError(f"{one.where}: '{name}' is a name used by data sets; choose another name")
    found = expression(one.text, one.where, moment.known | set(before))
    if found.syntax.over_frames:
        raise UserError(f"{one.where}: '{one.text}' reduces frames, and a quantity has one; make it an objective")
    return found


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
    names: list[str], moment: Moment, expressions: Mapping[str, Expression], state: State, params: Params
) -> dict[str, Named]:
    """Return expressed quantities and all values that they depend on, each evaluated once."""
    needed, pending = dict.fromkeys(names), list(names)
    while pending:
        if (name := pending.pop()) in expressions:
            pending += [each for each in expressions[name].syntax.names if each not in needed]
            needed |= dict.fromkeys(expressions[name].syntax.names)
    values = moment.values(state, params, [name for name in needed if name not in expressions])
    for name, formula in expressions.items():
        if name in needed:
            values[name] = formula({each: values[each] for each in formula.syntax.names})
    return values
