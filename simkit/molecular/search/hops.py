"""Moves of basin hopping, and the Metropolis criterion for accepting them."""

import jax
import jax.numpy as jnp

# Ratio of the energies of the most weakly and the most strongly bound atom, below which the former is moved. A surface
# atom of a compact cluster has half the energy of the innermost; an adatom less.
WEAKLY_BOUND = 0.5


def hop(
    position: jax.Array, energies: jax.Array, uniform: jax.Array, *, step: jax.Array, container: jax.Array
) -> jax.Array:
    """Return a cluster with its atoms displaced at random.

    Every atom moves by up to ``step`` along each axis. The most weakly bound one, if its energy is less than half that
    of the most strongly bound, moves instead to a random direction at the distance of the outermost atom. Atoms outside
    the container are moved back to its wall, so that none evaporates.

    Args:
        position: length, (N, 3).
        energies: share of each atom in the energy of the cluster, (N,).
        uniform: uniform random numbers in [0, 1), (N + 1, 3).
        step: length.
        container: radius of the container around the center of the cluster, length.

    Returns:
        Positions around the origin, (N, 3).

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n.
    """
    arm = position - position.mean(axis=0)
    displaced = arm + step * (2 * uniform[:-1] - 1)
    surface = jnp.sqrt(jnp.sum(arm**2, axis=1).max()) * _direction(uniform[-1, 0], uniform[-1, 1])
    weakest = jnp.argmax(energies)
    is_moved = (jnp.arange(len(position)) == weakest) & (energies[weakest] > WEAKLY_BOUND * energies.min())
    moved = jnp.where(is_moved[:, None], surface, displaced)
    distance = jnp.sqrt(jnp.sum(moved**2, axis=1, keepdims=True))
    return moved * jnp.minimum(1, container / jnp.where(distance > 0, distance, 1))


def _direction(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a unit vector, uniform on the sphere for uniform a and b in [0, 1)."""
    along, around = 2 * a - 1, 2 * jnp.pi * b
    across = jnp.sqrt(1 - along**2)
    return jnp.stack([across * jnp.cos(around), across * jnp.sin(around), along])


def is_within(position: jax.Array, container: jax.Array) -> jax.Array:
    """Return whether all atoms are inside the container around the center of the cluster.

    Args:
        position: length, (N, 3).
        container: radius, length.
    """
    arm = position - position.mean(axis=0)
    return jnp.sum(arm**2, axis=1).max() <= container**2


def accepts(change: jax.Array, thermal_energy: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return whether a change of energy is accepted, with the Metropolis probability ``min(1, exp(-change / T))``.

    Args:
        change: energy of the new minimum less that of the old one.
        thermal_energy: T, energy; at zero no increase is accepted.
        uniform: uniform random number in [0, 1).

    Reference: Metropolis et al., J. Chem. Phys. 21, 1087 (1953), doi:10.1063/1.1699114.
    """
    # The logarithm of a number in (0, 1] is finite, and T = 0 needs no case of its own.
    return change <= -thermal_energy * jnp.log(1 - uniform)
