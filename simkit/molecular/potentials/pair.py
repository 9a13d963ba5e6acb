"""Interface of pair potentials, potentials from an energy function, and tables of pair parameters."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp


class PairPotential(NamedTuple):
    """A pair potential U(r); parameters broadcast against the distances, so each pair may have its own.

    Attributes:
        energy: ``(distance, **parameters) -> U``.
        force: ``(distance, **parameters) -> -dU/dr``, positive where the pair repels.
        force_over_distance: ``(squared_distance, **parameters) -> -U'(r) / r``, finite down to distance zero, if it
            needs no square root; otherwise ``None``.
        bond: ``(**parameters) -> (length, stiffness)``: the distance of the minimum and ``U''`` there; of a repulsion,
            its range and a typical ``U''`` within. Minimizers take their first step from it. ``None`` if unknown.
        reach: ``(**parameters) -> `` distance beyond which U is zero; ``None`` if it does not end by itself.
    """

    energy: Callable[..., jax.Array]
    force: Callable[..., jax.Array]
    force_over_distance: Callable[..., jax.Array] | None = None
    bond: Callable[..., tuple[jax.Array, jax.Array]] | None = None
    reach: Callable[..., jax.Array] | None = None


def pair_potential(energy: Callable[..., jax.Array]) -> PairPotential:
    """Return the pair potential of an energy function, with the force ``F(r) = -dU/dr`` by differentiation.

    Args:
        energy: ``(distance, **parameters) -> U``, elementwise, of `jax.numpy` functions. Energy and derivatives must be
            finite at every positive distance: entries that are no pair have some distance too, and the derivative of a
            masked NaN is NaN.
    """

    def force(distance: jax.Array, **parameters: jax.Array) -> jax.Array:
        # Forward mode: every energy depends on its own distance only, so one tangent of ones gives all slopes at once.
        distance = jnp.asarray(distance)
        slope = jax.jvp(lambda r: energy(r, **parameters), (distance,), (jnp.ones_like(distance),))[1]
        return -slope

    return PairPotential(energy=energy, force=force)


def per_pair(table: jax.Array, species: jax.Array) -> jax.Array:
    """Return a parameter of every pair, (N, N), from a table by species.

    Args:
        table: symmetric, (S, S); the parameter for species a with species b.
        species: species of each particle, (N,) integers in [0, S).
    """
    return table[species[:, None], species[None, :]]


def mean_diameter(diameter: jax.Array) -> jax.Array:
    """Return the contact distance of two spheres, ``(d_i + d_j) / 2``.

    Args:
        diameter: length, (N,).

    Returns:
        Length, (N, N).
    """
    return (diameter[:, None] + diameter[None, :]) / 2


def lorentz_berthelot(epsilon: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of pairs of unlike species by the Lorentz-Berthelot mixing rules.

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
