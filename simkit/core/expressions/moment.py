"""Values of the names in expressions at one state: quantities, parameters and coordinates."""

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.expressions.evaluation import Named, SpatialAxis, axes_of
from simkit.core.simulation import Params, Simulation, State

PARAMETER = "params."


class Moment:
    """Names that expressions of a simulation may contain, and their values at a state.

    A parameter with the name of a quantity is written ``params.NAME``. Parameters that are arrays are not available.

    Attributes:
        quantities: names of observed arrays and diagnostics.
        coordinates: coordinates along the axes of observed arrays, by name of the axis.
        parameters: paths of the scalar parameters.
        shapes: shapes of the state and of the parameters.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Trace the quantities of the simulation; nothing is computed."""
        self._functions = {"observed": simulation.observe, "diagnosed": simulation.diagnose}
        state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
        self._shapes = {
            kind: jax.eval_shape(function, state, simulation.params) for kind, function in self._functions.items()
        }
        names = axes_with_widths(simulation)
        self._axes = {
            name: axes_of(name, array.ndim, names.get(name, ())) for name, array in self._shapes["observed"].items()
        }
        self.shapes = state, jax.eval_shape(lambda params: params, simulation.params)
        self.quantities = tuple(name for arrays in self._shapes.values() for name in arrays)
        self.parameters = [name for name, value in paths.leaves(simulation.params).items() if jnp.ndim(value) == 0]
        self.coordinates = coordinates_of(simulation, {axis for axes in self._axes.values() for axis in axes})

    @property
    def known(self) -> set[str]:
        """All names that an expression may contain."""
        own = (*self.parameters, *(PARAMETER + name for name in self.parameters))
        return {*self.quantities, *own, *self.coordinates}

    def values(self, state: State, params: Params, names: Collection[str]) -> dict[str, Named]:
        """Return the values of names at a state, calling ``observe`` and ``diagnose`` only if needed.

        Args:
            state: state of the simulation.
            params: parameters of the simulation.
            names: names to evaluate.
        """
        values: dict[str, Named] = dict(self.coordinates)
        numbers = paths.leaves(params)
        for name in self.parameters:
            values[name] = values[PARAMETER + name] = Named(numbers[name])
        for kind, function in self._functions.items():
            if any(name in self._shapes[kind] for name in names):
                arrays, axes = function(state, params), self._axes if kind == "observed" else {}
                values |= {name: Named(array, axes.get(name, ())) for name, array in arrays.items()}
        return {name: values[name] for name in names if name in values}


def axes_with_widths(simulation: Simulation) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of observed arrays, as `SpatialAxis` where they have coordinates or widths.

    Args:
        simulation: a simulation; its ``coordinates`` may hold ``NAME_widths`` for the axis NAME of unequal cells.
    """
    coordinates = simulation.coordinates

    def axis(name: str) -> str:
        points = np.asarray(coordinates.get(name, ()))
        is_line = points.ndim == 1 and points.dtype.kind == "f" and len(points) > 0
        widths = coordinates.get(f"{name}_widths")
        return SpatialAxis(name, points if is_line else None, widths) if is_line or widths is not None else name

    return {name: tuple(map(axis, axes)) for name, axes in simulation.dimensions.items()}


def coordinates_of(simulation: Simulation, used: Collection[str]) -> dict[str, Named]:
    """Return the coordinates of the points along axes, by name of the axis, for the axes that have them.

    Args:
        simulation: simulation with the coordinates.
        used: names of the axes, as returned by `axes_with_widths`.
    """
    axes = {str(axis): axis for axis in used}
    arrays = {name: np.asarray(values) for name, values in simulation.coordinates.items() if name in used}
    return {
        name: Named(jnp.asarray(values, jnp.result_type(float)), (axes[name],))
        for name, values in arrays.items()
        if values.ndim == 1 and values.dtype.kind == "f"
    }
