"""Values of one state by the names in expressions: quantities, parameters and coordinates."""

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import Named, Spaced, axes_of
from simkit.core.simulation import Params, Simulation, State

PARAMETER = "params."


class Moment:
    """What expressions of a simulation may take, and its values at a state.

    A parameter that has the name of a quantity, too, is ``params.NAME``; those that are arrays are not taken.

    Attributes:
        quantities: names that are observed or diagnosed.
        coordinates: those that are numbers along an axis of something observed.
        parameters: names of the parameters that are one number.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Trace what the simulation tells; nothing is computed."""
        self._tells = {"observed": simulation.observe, "diagnosed": simulation.diagnose}
        state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
        self._shapes = {kind: jax.eval_shape(tell, state, simulation.params) for kind, tell in self._tells.items()}
        names = axes_with_widths(simulation)
        self._axes = {
            name: axes_of(name, array.ndim, names.get(name, ())) for name, array in self._shapes["observed"].items()
        }
        self.shapes = state, jax.eval_shape(lambda params: params, simulation.params)
        self.quantities = tuple(name for told in self._shapes.values() for name in told)
        self.parameters = [name for name, value in paths.leaves(simulation.params).items() if jnp.ndim(value) == 0]
        self.coordinates = coordinates_of(simulation, {axis for axes in self._axes.values() for axis in axes})

    @property
    def known(self) -> set[str]:
        """All names that an expression may take."""
        own = (*self.parameters, *(PARAMETER + name for name in self.parameters))
        return {*self.quantities, *own, *self.coordinates}

    def values(self, state: State, params: Params, names: Collection[str]) -> dict[str, Named]:
        """Return the values of some names at a state; what none of them needs is not computed.

        Args:
            state: of the simulation.
            params: its parameters.
            names: which.
        """
        values: dict[str, Named] = dict(self.coordinates)
        numbers = paths.leaves(params)
        for name in self.parameters:
            values[name] = values[PARAMETER + name] = Named(numbers[name])
        for kind, tell in self._tells.items():
            if any(name in self._shapes[kind] for name in names):
                told, axes = tell(state, params), self._axes if kind == "observed" else {}
                values |= {name: Named(array, axes.get(name, ())) for name, array in told.items()}
        return {name: values[name] for name in names if name in values}


def axes_with_widths(simulation: Simulation) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of observed arrays, with the points of those that have coordinates.

    Args:
        simulation: whose ``coordinates`` may hold ``NAME_widths`` for the axis NAME of unequal cells.
    """
    found = simulation.coordinates

    def axis(name: str) -> str:
        points = np.asarray(found.get(name, ()))
        is_line = points.ndim == 1 and points.dtype.kind == "f" and len(points) > 0
        widths = found.get(f"{name}_widths")
        return Spaced(name, points if is_line else None, widths) if is_line or widths is not None else name

    return {name: tuple(map(axis, axes)) for name, axes in simulation.dimensions.items()}


def coordinates_of(simulation: Simulation, used: Collection[str]) -> dict[str, Named]:
    """Return the coordinates of the points along axes that have them, by the names of the axes.

    Args:
        simulation: whose coordinates.
        used: names of the axes, as `axes_with_widths` gives them.
    """
    axes = {str(axis): axis for axis in used}
    arrays = {name: np.asarray(values) for name, values in simulation.coordinates.items() if name in used}
    return {
        name: Named(jnp.asarray(values, jnp.result_type(float)), (axes[name],))
        for name, values in arrays.items()
        if values.ndim == 1 and values.dtype.kind == "f"
    }
