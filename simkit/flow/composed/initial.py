"""Initial velocity of a flow described as data, projected so that it is divergence-free and fits the sides."""

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
        components: formulas of velocity components, by index of the component.
        stream: formula of a stream function in place of components; or None.
        eddies: formula of the speed of random eddies; or None.
    """

    def __init__(self, settings: Settings, scope: Scope, places: Places) -> None:
        """Check the settings.

        Args:
            settings: settings of the start.
            scope: of formulas.
            places: of the domain.

        Raises:
            UserError: if settings contradict each other; names the key.
        """
        self._places = places
        dimension = len(places.axes)
        self.components: dict[int, Formula] = {}
        for i, name in enumerate(COMPONENTS):
            if settings[name] is None:
                continue
            if i >= dimension:
                raise settings.refuse(name, "is a velocity along z, and the flow is plane; remove it, or give axes.z")
            self.components[i] = scope.formula(settings[name], places.axes)
        self.stream: Formula | None = None
        if settings["stream_function"] is not None:
            if dimension == 3 or self.components:
                raise settings.refuse(
                    "stream_function",
                    "is given in space; give the components"
                    if dimension == 3
                    else "is given beside components; give one",
                )
            self.stream = scope.formula(settings["stream_function"], places.axes)
        self.eddies: Formula | None = None
        if settings["eddies"] is not None:
            kinds = places.domain.sides
            if dimension == 3 or kinds[0] is not None or kinds[1] is None:
                raise settings.refuse("eddies", "need a plane flow, periodic along x and bounded along y; remove them")
            self.eddies = scope.formula(settings["eddies"])
        open_sides = places.domain.open_sides()
        self._solve = pressure_solver(places.domain.grid, open_sides=open_sides) if self.needs_projection else None
        # For checks before a run: a hundred single operations take longer.
        self.compiled = jax.jit(self.__call__, static_argnums=2)

    @property
    def needs_projection(self) -> bool:
        """Whether the velocity of the formulas may have a divergence or differ from the boundary conditions."""
        domain = self._places.domain
        through_walls = self.stream is not None and bool(domain.bounded())
        return bool(self.components) or bool(domain.entrances()) or through_walls

    def said(self, params: Params) -> Velocity:
        """Return the velocity of the formulas, without eddies and before projection."""
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
        """Return the divergence-free initial velocity.

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
    """Return the velocity with zero normal component on impermeable sides."""
    components = list(velocity)
    for axis in places.domain.bounded():
        for side in (0, 1):
            kind = places.domain.side(axis, side)
            if not (kind.enters or kind.leaves or kind.gives_pressure):
                nothing = jnp.zeros_like(end(components[axis], axis, side))
                components[axis] = with_end(components[axis], nothing, axis, side)
    return tuple(components)
