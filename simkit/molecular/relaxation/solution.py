"""Equations of mechanical equilibrium of a relaxed configuration, for its implicit derivative."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.relaxation.zero_modes import gathered, projection, zero_modes
from simkit.molecular.spaces import Cell

# Largest difference between the starts of two programs that counts as round-off, in units of the rounding unit times
# the largest coordinate.
SAME = 100

type Rattlers = Callable[[jax.Array, Cell, Params, Any], jax.Array]


@dataclasses.dataclass(frozen=True)
class Solution:
    """Equations of mechanical equilibrium, with zero modes constrained.

    Attributes:
        landscape: energy or enthalpy, stationary at the solution.
        rattlers: ``(position, cell, params, neighbors) -> (N,)`` booleans, particles with too few contacts to be held;
            ``None`` if there are none.
        start: ``(params, key) -> position``, of the frozen particles.
    """

    landscape: Landscape
    rattlers: Rattlers | None
    start: Callable[[Params, jax.Array], jax.Array]

    def residual(self, coordinates: jax.Array, params: Params) -> jax.Array:
        """Return minus the force, plus a constraint on every zero mode.

        The value of the constraint is zero, its derivative is not.

        Args:
            coordinates: as for `Landscape.arrangement`.
            params: parameters.
        """
        landscape = self.landscape
        fixed, given = jax.lax.stop_gradient((coordinates, params))
        displacement, dimension = coordinates - fixed, coordinates.shape[1]
        position, deformed = landscape.arrangement(fixed, given)
        count = len(position)
        neighbors = landscape.interaction.prepare(position, deformed, given)
        immobile = self.immobile(position, deformed, given, neighbors)

        def force(moved: jax.Array) -> jax.Array:
            if landscape.frozen is not None:
                moved = jnp.where(landscape.frozen[:, None], fixed[:count], moved)
            return landscape.evaluate(jnp.concatenate([moved, fixed[count:]]), given, neighbors)[1][:count]

        # A cluster rotates freely in a constant cell far larger than itself, but not in a relaxing cell.
        among = None if immobile is None else ~immobile
        together = gathered(spaces.of_cell(deformed, dimension), position, among)
        motions = zero_modes(force, fixed[:count], rotations=not landscape.relax_cell, among=among, images=together)
        constraint = projection(motions, displacement[:count])
        dragged = self.frozen_displacement(fixed[:count], params)
        if immobile is not None:
            particles = jnp.where(immobile[:, None], fixed[:count] + dragged, coordinates[:count])
            coordinates = jnp.concatenate([particles, coordinates[count:]])
        forces = landscape.evaluate(coordinates, params, neighbors)[1]
        if immobile is not None:
            constraint = jnp.where(immobile[:, None], displacement[:count] - dragged, constraint)
            forces = jnp.concatenate([jnp.where(immobile[:, None], 0, forces[:count]), forces[count:]])
        if landscape.relax_cell:
            strain = displacement[-dimension:]
            constraint = jnp.concatenate([constraint, strain - landscape.deformable(params).free(strain)])
        return landscape.scale(given).stiffness * constraint - forces

    def immobile(self, position: jax.Array, cell: Cell, params: Params, neighbors: Any) -> jax.Array | None:
        """Return the mask of rattlers and frozen particles, (N,) booleans; ``None`` if there can be none.

        Args:
            position: (N, d).
            cell: as for `simkit.molecular.spaces.of_cell`.
            params: parameters.
            neighbors: of the interaction, for these positions.
        """
        frozen = None if self.landscape.frozen is None else jnp.asarray(self.landscape.frozen)
        if self.rattlers is None:
            return frozen
        rattlers = self.rattlers(position, cell, params, neighbors)
        return rattlers if frozen is None else rattlers | frozen

    def frozen_displacement(self, position: jax.Array, params: Params) -> jax.Array:
        """Return the displacement of frozen particles with the params, (N, d): zero, but not its derivative.

        It is NaN if their start depends on the random key, which is not stored.

        Args:
            position: (N, d).
            params: parameters.
        """
        frozen = self.landscape.frozen
        if frozen is None:
            return jnp.zeros_like(position)
        start = self.start(params, jax.random.key(0))
        value = jax.lax.stop_gradient(start)
        is_same = jnp.abs(value - position) <= SAME * jnp.finfo(position.dtype).eps * jnp.abs(position).max()
        # As a factor, so that the derivative is NaN too.
        valid = jnp.where((is_same | ~frozen[:, None]).all(), 1, jnp.nan).astype(position.dtype)
        return jnp.where(frozen[:, None], valid * (start - value), 0)
