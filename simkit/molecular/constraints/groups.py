"""Groups of particles that rigid bonds join, by their centers of mass: what a barostat moves and a pressure counts."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.molecular.constraints.constraints import Constraints


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Groups of particles by their centers of mass: rigid molecules, and particles alone.

    The center of a group with frozen particles is that of these, as of infinitely heavy ones.

    Attributes:
        table: members of each group, (M, G); N where there is none.
        weights: masses, (N,).
    """

    table: np.ndarray
    weights: jax.Array

    @classmethod
    def of(cls, constraints: Constraints, mass: jax.Array, frozen: np.ndarray | None) -> "Groups":
        """Return the groups of particles of masses (N,)."""
        table = constraints.groups(len(mass))
        if frozen is not None:
            is_held = np.append(frozen, False)
            held = np.zeros(len(mass) + 1, bool)
            held[table] = is_held[table].any(axis=0)
            mass = jnp.where(jnp.asarray(held[:-1]), jnp.asarray(frozen, mass.dtype), mass)
        return cls(table, mass)

    @functools.cached_property
    def of_particle(self) -> np.ndarray:
        """Group of each particle, (N,)."""
        index = np.zeros(len(self.weights) + 1, np.int32)
        index[self.table] = np.arange(self.table.shape[1])
        return index[:-1]

    def mobile(self, frozen: np.ndarray | None) -> int:
        """Return the number of groups without frozen particles."""
        return self.table.shape[1] - (0 if frozen is None else len(np.unique(self.of_particle[frozen])))

    def masses(self) -> jax.Array:
        """Return the total of the weights, (G, 1)."""
        return self._sums(self.weights[:, None])

    def centers(self, vectors: jax.Array) -> jax.Array:
        """Return the weighted means of vectors (N, d), (G, d)."""
        return self._sums(self.weights[:, None] * vectors) / self.masses()

    def around(self, position: jax.Array) -> jax.Array:
        """Return positions relative to the centers, (N, d)."""
        return position - self.centers(position)[jnp.asarray(self.of_particle)]

    def stress(self, stress: jax.Array, position: jax.Array, force: jax.Array, volume: jax.Array) -> jax.Array:
        """Return the stress for a strain of the centers alone, (d, d), which forces within groups do not enter.

        Args:
            stress: for a strain of all particles, (d, d).
            position: (N, d).
            force: (N, d).
            volume: of the cell.
        """
        return stress + precise_product(self.around(position).T, force) / volume

    def carried(self, vectors: jax.Array, centers: jax.Array) -> jax.Array:
        """Return vectors (N, d), those of each group shifted alike so that their means become these, (G, d)."""
        return vectors + (centers - self.centers(vectors))[jnp.asarray(self.of_particle)]

    def _sums(self, values: jax.Array) -> jax.Array:
        padded = jnp.concatenate([values, jnp.zeros_like(values[:1])])
        return padded.at[jnp.asarray(self.table)].get(mode="promise_in_bounds").sum(axis=0)
