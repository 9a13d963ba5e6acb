"""Pair potentials: their interface, potentials made from an energy, and parameters that depend on the pair."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class PairPotential(NamedTuple):
    """A pair potential U(r); parameters broadcast against the distances, so each pair may have its own.

    Attributes:
        energy: ``(distance, **parameters) -> U``.
        force: ``(distance, **parameters) -> -dU/dr``, positive where the pair repels.
        force_over_distance: ``(squared_distance, **parameters) -> -U'(r) / r``, finite down to distance zero, where
            that saves the square root; ``None`` where it does not.
    """

    energy: Callable[..., jax.Array]
    force: Callable[..., jax.Array]
    force_over_distance: Callable[..., jax.Array] | None = None


def pair_potential(energy: Callable[..., jax.Array]) -> PairPotential:
    """Return the pair potential of a given energy; the force follows by differentiation.

    ``F(r) = -dU/dr``.

    Args:
        energy: ``(distance, **parameters) -> U``, built from `jax.numpy` element by element. It must be finite, with
            finite derivatives, at every positive distance: entries that are no pair hold some distance too, and a
            NaN there survives masking when it is differentiated.
    """

    def force(distance: jax.Array, **parameters: jax.Array) -> jax.Array:
        # Forward mode: every energy depends on its own distance only, so one tangent of ones gives all slopes at once.
        distance = jnp.asarray(distance)
        slope = jax.jvp(lambda r: energy(r, **parameters), (distance,), (jnp.ones_like(distance),))[1]
        return -slope

    return PairPotential(energy=energy, force=force)


def per_pair(table: jax.Array, species: jax.Array) -> jax.Array:
    """Look up a parameter that depends on the two species of a pair.

    Args:
        table: symmetric, (S, S); the parameter for species a with species b.
        species: species of each particle, (N,) integers in [0, S).

    Returns:
        The parameter of every pair, (N, N).
    """
    return table[species[:, None], species[None, :]]


def mean_diameter(diameter: jax.Array) -> jax.Array:
    """Return the distance at which two spheres touch, ``(d_i + d_j) / 2``.

    Args:
        diameter: length, (N,).

    Returns:
        Length, (N, N).
    """
    return (diameter[:, None] + diameter[None, :]) / 2


def lorentz_berthelot(epsilon: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of unlike pairs from those of like ones.

    ``epsilon_ab = sqrt(epsilon_a epsilon_b)`` and ``sigma_ab = (sigma_a + sigma_b) / 2``.

    Args:
        epsilon: energy of each species, (S,), positive (the square root has no derivative at zero).
        sigma: length of each species, (S,).

    Returns:
        The tables ``epsilon_ab`` and ``sigma_ab``, both (S, S).

    Reference: Lorentz, Ann. Phys. 248, 127 (1881), doi:10.1002/andp.18812480110; Berthelot, C. R. Acad. Sci. 126,
    1703 (1898).
    """
    return jnp.sqrt(epsilon[:, None] * epsilon[None, :]), (sigma[:, None] + sigma[None, :]) / 2
