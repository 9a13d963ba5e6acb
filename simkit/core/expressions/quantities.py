"""Quantities given by expressions of a simulation's parameters, quantities and coordinates."""

import dataclasses
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.expression import Expression, expression
from simkit.core.expressions.moment import Moment
from simkit.core.simulation import TAKEN, Arrays, Params, Quantity, Simulation, State
from simkit.errors import Mistakes, UserError


@dataclasses.dataclass(frozen=True)
class Expressed:
    """A quantity that is said by an expression.

    Attributes:
        text: of names that are diagnosed or observed, parameters, coordinates, and quantities before it.
        quantity: unit and meaning.
        where: file and key, for messages.
    """

    text: str
    quantity: Quantity
    where: str


def with_expressions(
    simulation: Simulation, said: Mapping[str, Expressed], mistakes: Mistakes | None = None
) -> Simulation:
    """Return the simulation, which also tells quantities that are said by expressions.

    Args:
        simulation: as it is.
        said: by name. One number per frame joins the diagnostics, an array what frames store.
        mistakes: where to keep what is wrong with any of them, which is then left out; ``None`` raises it.

    Raises:
        UserError: that marks the column of a mistake; if one reduces frames, of which there is only one; or if a name
            is that of a quantity or coordinate.
    """
    moment = Moment(simulation)
    kept = mistakes or Mistakes()
    expressions: dict[str, Expression] = {}
    axes: dict[str, tuple[str, ...]] = {}
    for name, one in said.items():
        with kept.kept():
            found = _checked(name, one, moment, expressions)
            axes[name] = _axes_of(name, moment, expressions | {name: found})
            expressions[name] = found
    if mistakes is None:
        kept.raise_if_any()

    def told(own: Callable[[State, Params], Arrays], names: list[str]) -> Callable[[State, Params], Arrays]:
        def tell(state: State, params: Params) -> Arrays:
            found = _values(names, moment, expressions, state, params)
            return own(state, params) | {name: jnp.asarray(found[name].array, jnp.result_type(float)) for name in names}

        return tell

    return dataclasses.replace(
        simulation,
        observe=told(simulation.observe, [name for name in axes if axes[name]]),
        diagnose=told(simulation.diagnose, [name for name in axes if not axes[name]]),
        dimensions={**simulation.dimensions, **{name: of for name, of in axes.items() if of}},
        quantities={**simulation.quantities, **{name: said[name].quantity for name in axes}},
    )


def _checked(name: str, one: Expressed, moment: Moment, before: Mapping[str, Expression]) -> Expression:
    if name in moment.quantities or name in moment.coordinates:
        raise UserError(f"{one.where}: '{name}' is there already; choose another name")
    if name in TAKEN:
        raise UserError(f"{one.where}: data sets have a '{name}' of their own; choose another name")
    found = expression(one.text, one.where, moment.known | set(before))
    if found.syntax.over_frames:
        raise UserError(f"{one.where}: '{one.text}' reduces frames, and a quantity is of one; make it an objective")
    return found


def _axes_of(name: str, moment: Moment, expressions: Mapping[str, Expression]) -> tuple[str, ...]:
    """Return the axes that a quantity has, by tracing it."""
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
    """Return expressed quantities, each evaluated once, and of what the simulation tells no more than they take."""
    wanted, ahead = dict.fromkeys(names), list(names)
    while ahead:
        if (name := ahead.pop()) in expressions:
            ahead += [each for each in expressions[name].syntax.names if each not in wanted]
            wanted |= dict.fromkeys(expressions[name].syntax.names)
    values = moment.values(state, params, [name for name in wanted if name not in expressions])
    for name, said in expressions.items():
        if name in wanted:
            values[name] = said({each: values[each] for each in said.syntax.names})
    return values
