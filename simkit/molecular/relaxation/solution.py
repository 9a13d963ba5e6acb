"""The equations that a relaxed configuration solves, for its implicit derivative."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.relaxation.zero_modes import onto, unopposed
from simkit.molecular.spaces import Cell

type Loose = Callable[[jax.Array, Cell, Params], jax.Array]


@dataclasses.dataclass(frozen=True)
class Solution:
    """Mechanical equilibrium, in which what no force opposes is held where it is.

    Attributes:
        landscape: whose forces vanish.
        loose: ``(position, cell, params) -> (N,)`` booleans, particles that nothing holds; ``None``: there are none.
    """

    landscape: Landscape
    loose: Loose | None

    def residual(self, coordinates: jax.Array, params: Params) -> jax.Array:
        """Return minus the force, with a grip on every motion that no force opposes, and on no other.

        The grip is zero, but not its derivative.

        Args:
            coordinates: as for `Landscape.arrangement`.
            params: parameters.
        """
        landscape = self.landscape
        fixed, given = jax.lax.stop_gradient((coordinates, params))
        held, dimension = coordinates - fixed, coordinates.shape[1]
        position, deformed = landscape.arrangement(fixed, given)
        count = len(position)
        neighbors = landscape.interaction.prepare(position, deformed, given)
        is_loose = None if self.loose is None else self.loose(position, deformed, given)

        def force(moved: jax.Array) -> jax.Array:
            return landscape.evaluate(jnp.concatenate([moved, fixed[count:]]), given, neighbors)[1][:count]

        # A body turns as a whole in a cell that is far larger, but not one that strains the cell.
        among = None if is_loose is None else ~is_loose
        motions = unopposed(force, fixed[:count], rotations=not landscape.relax_cell, among=among)
        grip = onto(motions, held[:count])
        if is_loose is not None:
            particles = jnp.where(is_loose[:, None], fixed[:count], coordinates[:count])
            coordinates = jnp.concatenate([particles, coordinates[count:]])
        pull = landscape.evaluate(coordinates, params, neighbors)[1]
        if is_loose is not None:
            grip = jnp.where(is_loose[:, None], held[:count], grip)
            pull = jnp.concatenate([jnp.where(is_loose[:, None], 0, pull[:count]), pull[count:]])
        if landscape.relax_cell:
            strain = held[-dimension:]
            grip = jnp.concatenate([grip, strain - landscape.deformable(params).free(strain)])
        return landscape.scale(given).stiffness * grip - pull
