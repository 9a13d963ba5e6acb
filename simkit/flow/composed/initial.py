"""The velocity at the start of a flow that is told as data, without divergence and as the sides want it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, Scope, precision_of
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.flow.arrays import Velocity, end, with_end
from simkit.flow.boundary.domain import prescribe
from simkit.flow.boundary.side_velocity import velocity_on_sides
from simkit.flow.composed.places import COMPONENTS, Places
from simkit.flow.eddies import random_eddies
from simkit.flow.operators.differences import curl, divergence, gradient
from simkit.flow.solvers.pressure import pressure_solver


class InitialVelocity:
    """Formulas of the velocity at the start.

    Attributes:
        components: by component.
        stream: stream function in their place; or None.
        eddies: speed of random eddies; or None.
    """

    def __init__(self, told: Settings, scope: Scope, places: Places) -> None:
        """Check the settings.

        Args:
            told: settings of the start.
            scope: of formulas.
            places: of the domain.

        Raises:
            UserError: that names the key of what does not fit.
        """
        self._places = places
        dimension = len(places.axes)
        self.components: dict[int, Formula] = {}
        for i, name in enumerate(COMPONENTS):
            if told[name] is None:
                continue
            if i >= dimension:
                raise told.refuse(name, "is a velocity along z, and the flow is plane; remove it, or give axes.z")
            self.components[i] = scope.formula(told[name], places.axes)
        self.stream: Formula | None = None
        if told["stream_function"] is not None:
            if dimension == 3 or self.components:
                raise told.refuse(
                    "stream_function",
                    "is given in space; give the components"
                    if dimension == 3
                    else "is given beside components; give one",
                )
            self.stream = scope.formula(told["stream_function"], places.axes)
        self.eddies: Formula | None = None
        if told["eddies"] is not None:
            kinds = places.domain.sides
            if dimension == 3 or kinds[0] is not None or kinds[1] is None:
                raise told.refuse("eddies", "need a plane flow, periodic along x and bounded along y; leave them away")
            self.eddies = scope.formula(told["eddies"])
        open_sides = places.domain.open_sides()
        self._solve = pressure_solver(places.domain.grid, open_sides=open_sides) if self.needs_projection else None

    @property
    def needs_projection(self) -> bool:
        """Whether what is said may have a divergence, or not be what the sides want."""
        domain = self._places.domain
        through_walls = self.stream is not None and bool(domain.bounded())
        return bool(self.components) or bool(domain.entrances()) or through_walls

    def said(self, params: Params) -> Velocity:
        """Return the velocity as it is said, without eddies."""
        places, grid = self._places, self._places.domain.grid
        dtype = precision_of(params)
        if self.stream is not None:
            axes = zip(places.axes, grid.axes, strict=True)
            corners = {name: Named(jnp.asarray(axis.points, dtype), (name,)) for name, axis in axes}
            field = self.stream.on(places.axes, params, **corners)
            return curl(jnp.broadcast_to(field, [len(axis.points) for axis in grid.axes]), grid)
        found = []
        for i in range(grid.dimension):
            field = jnp.zeros((), dtype)
            if i in self.components:
                field = self.components[i].on(places.axes, params, **places.coordinates(i, params))
            found.append(jnp.broadcast_to(field, grid.shape(i)))
        return tuple(found)

    def __call__(self, params: Params, key: jax.Array, boundary: Callable[[Params, Any], Any] | None) -> Velocity:
        """Return the velocity without divergence.

        Args:
            params: parameters.
            key: random key of the eddies.
            boundary: velocity on the sides, ``(params, time) -> values``; or None.
        """
        domain = self._places.domain
        grid = domain.grid
        velocity = self.said(params)
        dtype = velocity[0].dtype
        if self.eddies is not None:
            size = self.eddies.number(params)
            velocity = tuple(f + size * eddy for f, eddy in zip(velocity, random_eddies(grid, key, dtype), strict=True))
        velocity = _closed(velocity, self._places)
        if self._solve is None:
            return velocity
        velocity = prescribe(velocity, velocity_on_sides(boundary, domain, params, jnp.zeros((), dtype)), domain)
        slopes = gradient(self._solve(divergence(velocity, grid)), grid, domain.open_sides())
        return jax.tree.map(jnp.subtract, velocity, slopes)


def _closed(velocity: Velocity, places: Places) -> Velocity:
    """Return the velocity with none through sides that let nothing pass."""
    components = list(velocity)
    for axis in places.domain.bounded():
        for side in (0, 1):
            kind = places.domain.side(axis, side)
            if not (kind.enters or kind.leaves or kind.gives_pressure):
                nothing = jnp.zeros_like(end(components[axis], axis, side))
                components[axis] = with_end(components[axis], nothing, axis, side)
    return tuple(components)
