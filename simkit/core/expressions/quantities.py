"""Quantities of a simulation that are said by expressions of its parameters, its quantities and its coordinates."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import Named, axes_of
from simkit.core.expressions.expression import expression
from simkit.core.simulation import Params, Quantity, Simulation, State
from simkit.errors import UserError

PARAMETER = "params."


def with_expression(simulation: Simulation, name: str, text: str, quantity: Quantity, where: str) -> Simulation:
    """Return the simulation, which also tells a quantity that is said by an expression.

    Args:
        simulation: as it is.
        name: of the quantity. One number per frame joins the diagnostics, an array what frames store.
        text: of names that are diagnosed or observed, parameters, and coordinates. A parameter that has the name of a
            quantity, too, is ``params.NAME``.
        quantity: unit and meaning.
        where: file and key, for messages.

    Raises:
        UserError: that marks the column of a mistake; if it reduces frames, of which there is only one; or if the name
            is that of a quantity or coordinate.
    """
    state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    observed = jax.eval_shape(simulation.observe, state, simulation.params)
    axes = {each: axes_of(each, array.ndim, simulation.dimensions.get(each, ())) for each, array in observed.items()}
    diagnosed = jax.eval_shape(simulation.diagnose, state, simulation.params)
    parameters = [each for each, value in paths.leaves(simulation.params).items() if jnp.ndim(value) == 0]
    coordinates = _coordinates(simulation, axes)
    known = {*observed, *diagnosed, *parameters, *coordinates, *(PARAMETER + each for each in parameters)}
    if name in known - set(parameters):
        raise UserError(f"{where}: '{name}' is there already; choose another name")
    said = expression(text, where, known)
    if said.syntax.over_frames:
        raise UserError(f"{where}: '{text}' reduces frames, and a quantity is of one; make it an objective")
    # Only what it takes is computed: one quantity after another would trace all of those before it again.
    needs = [any(each in table for each in said.syntax.names) for table in (observed, diagnosed)]
    tells = (simulation.observe, simulation.diagnose)
    found: list[tuple[str, ...]] = []

    def function(state: State, params: Params) -> jax.Array:
        values: dict[str, Named] = dict(coordinates)
        numbers = paths.leaves(params)
        for each in parameters:
            values[each] = values[PARAMETER + each] = Named(numbers[each])
        seen, told = (f(state, params) if need else {} for f, need in zip(tells, needs, strict=True))
        values |= {each: Named(array, axes[each]) for each, array in seen.items()}
        values |= {each: Named(array) for each, array in told.items()}
        value = said({each: values[each] for each in said.syntax.names})
        found.append(value.axes)
        return jnp.asarray(value.array, jnp.result_type(float))

    added = simulation.with_quantities(**{name: function})
    return dataclasses.replace(
        added,
        dimensions={**simulation.dimensions, name: found[-1]} if found[-1] else simulation.dimensions,
        quantities={**simulation.quantities, name: quantity},
    )


def _coordinates(simulation: Simulation, axes: Mapping[str, tuple[str, ...]]) -> dict[str, Named]:
    """Return the coordinates that are numbers along an axis of something observed."""
    used = {axis for names in axes.values() for axis in names}
    arrays = {name: np.asarray(values) for name, values in simulation.coordinates.items() if name in used}
    return {
        name: Named(jnp.asarray(values, jnp.result_type(float)), (name,))
        for name, values in arrays.items()
        if values.ndim == 1 and values.dtype.kind == "f"
    }
