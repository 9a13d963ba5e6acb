"""The equations that a relaxed configuration solves, for its implicit derivative."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.relaxation.zero_modes import onto, unopposed
from simkit.molecular.spaces import Cell

# Round-off, in units of the rounding unit times the largest coordinate, that two programs may place a start apart.
SAME = 100

type Loose = Callable[[jax.Array, Cell, Params, Any], jax.Array]


@dataclasses.dataclass(frozen=True)
class Solution:
    """Equations of mechanical equilibrium, with motions that no force opposes held fixed.

    Attributes:
        landscape: whose forces vanish.
        loose: ``(position, cell, params, neighbors) -> (N,)`` booleans, particles that nothing holds; ``None``: there
            are none.
        start: ``(params, key) -> position``, which frozen particles follow.
    """

    landscape: Landscape
    loose: Loose | None
    start: Callable[[Params, jax.Array], jax.Array]

    def residual(self, coordinates: jax.Array, params: Params) -> jax.Array:
        """Return minus the force, with a constraint on every motion that no force opposes, and on no other.

        The constraint is zero, but not its derivative.

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
        stays = self.stays(position, deformed, given, neighbors)

        def force(moved: jax.Array) -> jax.Array:
            if landscape.frozen is not None:
                moved = jnp.where(landscape.frozen[:, None], fixed[:count], moved)
            return landscape.evaluate(jnp.concatenate([moved, fixed[count:]]), given, neighbors)[1][:count]

        # A body turns as a whole in a cell that is far larger, but not one that strains the cell.
        among = None if stays is None else ~stays
        motions = unopposed(force, fixed[:count], rotations=not landscape.relax_cell, among=among)
        grip = onto(motions, held[:count])
        carried = self.carried(fixed[:count], params)
        if stays is not None:
            particles = jnp.where(stays[:, None], fixed[:count] + carried, coordinates[:count])
            coordinates = jnp.concatenate([particles, coordinates[count:]])
        pull = landscape.evaluate(coordinates, params, neighbors)[1]
        if stays is not None:
            grip = jnp.where(stays[:, None], held[:count] - carried, grip)
            pull = jnp.concatenate([jnp.where(stays[:, None], 0, pull[:count]), pull[count:]])
        if landscape.relax_cell:
            strain = held[-dimension:]
            grip = jnp.concatenate([grip, strain - landscape.deformable(params).free(strain)])
        return landscape.scale(given).stiffness * grip - pull

    def stays(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array | None:
        """Return which particles no force moves, (N,) booleans: loose or frozen; ``None``: there can be none.

        Args:
            position: (N, d).
            cell: as for `simkit.molecular.spaces.of_cell`.
            params: parameters.
            neighbors: of the interaction, for these positions.
        """
        frozen = None if self.landscape.frozen is None else jnp.asarray(self.landscape.frozen)
        if self.loose is None:
            return frozen
        loose = self.loose(position, cell, params, neighbors)
        return loose if frozen is None else loose | frozen

    def carried(self, position: jax.Array, params: Params) -> jax.Array:
        """Return how far the params carry frozen particles, (N, d): zero, but not its derivative.

        It is NaN where their start depends on the random key, which is not known here.

        Args:
            position: (N, d).
            params: parameters.
        """
        frozen = self.landscape.frozen
        if frozen is None:
            return jnp.zeros_like(position)
        start = self.start(params, jax.random.key(0))
        found = jax.lax.stop_gradient(start)
        near = jnp.abs(found - position) <= SAME * jnp.finfo(position.dtype).eps * jnp.abs(position).max()
        # As a factor, so that a derivative is NaN too.
        known = jnp.where((near | ~frozen[:, None]).all(), 1, jnp.nan).astype(position.dtype)
        return jnp.where(frozen[:, None], known * (start - found), 0)
