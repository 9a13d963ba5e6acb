"""Virtual sites: particles without motion of their own, each at a weighted mean of the places of its parents.

The energy is that with every site in its place, ``x_s = sum_k w_k x_k``; of the force on a site its parents get the
shares w_k, and none is left on it. Lists are built and stresses taken with the sites in their places, which a strain of
the parents moves alike.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from simkit.molecular import spaces
from simkit.molecular.bonded.terms import terms_of_atoms
from simkit.molecular.interactions.interaction import Interaction, viewed
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class VirtualSites:
    """Sites at weighted means of other particles.

    Attributes:
        sites: particle of each site, (M,).
        parents: particles of which its place is a mean, (M, K).
        weights: of the parents, (M, K); the sum of each row is 1.
    """

    sites: np.ndarray
    parents: np.ndarray
    weights: np.ndarray

    def mask(self, count: int) -> np.ndarray:
        """Return which of so many particles are sites, (N,) booleans."""
        return np.isin(np.arange(count), self.sites)

    def placed(self, position: jax.Array, cell: Cell) -> jax.Array:
        """Return positions with the sites in their places, next to the nearest images of the parents, (N, d).

        Args:
            position: (N, d); those of sites are not looked at.
            cell: as for `simkit.molecular.spaces.of_cell`.
        """
        space, parents = spaces.of_cell(cell, position.shape[1]), position[jnp.asarray(self.parents)]
        away = spaces.displacement(space, parents, parents[:, :1])
        weights = jnp.asarray(self.weights, position.dtype)[..., None]
        return position.at[jnp.asarray(self.sites)].set(parents[:, 0] + jnp.sum(weights * away, axis=1))

    def spread(self, force: jax.Array) -> jax.Array:
        """Return the forces on particles, (N, d), with those on sites moved to their parents."""
        shares = jnp.asarray(self.weights.T, force.dtype)[..., None] * force[jnp.asarray(self.sites)]
        shares = jnp.concatenate([shares.reshape(-1, force.shape[1]), jnp.zeros((1, force.shape[1]), force.dtype)])
        # Each particle gathers what it gets, so that no two sites write to one place.
        received = shares[jnp.asarray(terms_of_atoms(self.parents, len(force)))].sum(axis=0)
        return jnp.where(jnp.asarray(self.mask(len(force)))[:, None], 0, force + received)

    def interaction(self, interaction: Interaction) -> Interaction:
        """Return an interaction with the sites in their places."""
        return viewed(
            interaction,
            # Without particles where the size of a cell alone is asked for.
            lambda position, cell, params: (self.placed(position, cell) if len(position) else position, cell, params),
            force=lambda vectors, count: self.spread(vectors),
        )
