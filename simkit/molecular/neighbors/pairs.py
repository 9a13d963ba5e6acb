"""Sums over pairs of particles: energy, force and virial of any pair potential."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Components, Space


class Pairs(NamedTuple):
    """Separations of pairs, each pair listed from both its ends.

    Entry (i, k) holds the k-th candidate partner of particle i; summing over the last axis gives particle i's total.

    Attributes:
        separation: vector from the partner to particle i, one (N, K) array per component.
        distance: length, (N, K); some positive number where there is no pair.
        inverse_distance: 1 / length, (N, K); zero where there is no pair, or no direction because the two coincide.
        is_pair: whether the entry is a pair at all, (N, K); a particle is no partner of itself.
        partner: number of the candidate, (N, K) integers.
    """

    separation: Components
    distance: jax.Array
    inverse_distance: jax.Array
    is_pair: jax.Array
    partner: jax.Array


def all_pairs(position: jax.Array, space: Space, cutoff: jax.Array | None = None) -> Pairs:
    """List every particle as a candidate partner of every other.

    Args:
        position: length, (N, d).
        space: the geometry.
        cutoff: scalar, length; partners further away are no pair. ``None`` leaves none out.

    Returns:
        Pairs with K = N. Derivatives are finite even where particles coincide.
    """
    partner = jnp.broadcast_to(jnp.arange(len(position), dtype=jnp.int32), (len(position),) * 2)
    return _pairs(tuple(x[:, None] - x[None, :] for x in _columns(position)), partner, space, cutoff)


def listed_pairs(position: jax.Array, space: Space, neighbors: NeighborList) -> Pairs:
    """List the neighbors of every particle as its candidate partners.

    Good for what is asked once per frame; `simkit.molecular.neighbors.pair_sums` is the faster way to forces.

    Args:
        position: length, (N, d).
        space: the geometry.
        neighbors: current at these positions.

    Returns:
        Pairs with K the capacity of the list.
    """
    partner = neighbors.order[neighbors.index].T[neighbors.slot]
    return _pairs(tuple(x[:, None] - x[partner] for x in _columns(position)), partner, space, None)


def _columns(position: jax.Array) -> Components:
    return tuple(position[:, axis] for axis in range(position.shape[1]))


def _pairs(difference: Components, partner: jax.Array, space: Space, cutoff: jax.Array | None) -> Pairs:
    separation = space.nearest_image(difference)
    squared = sum(component * component for component in separation)
    is_pair = partner != jnp.arange(len(partner), dtype=partner.dtype)[:, None]
    # The square root has no derivative at zero: keep zero out of it, then put the value back. A particle's distance to
    # itself must be masked by index: positions computed on the fly differ by a rounding under fused multiply-add.
    if cutoff is not None:
        is_pair = is_pair & (squared < cutoff * cutoff)
    apart = is_pair & (squared > 0)
    length = jnp.sqrt(jnp.where(apart, squared, 1 if cutoff is None else cutoff * cutoff))
    return Pairs(
        separation=separation,
        distance=jnp.where(apart | ~is_pair, length, 0),
        inverse_distance=jnp.where(apart, 1 / length, 0),
        is_pair=is_pair,
        partner=partner,
    )


def energy_per_particle(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return each particle's half of its pair energies, ``E_i = 1/2 sum_j U(r_ij)``.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: the potential's parameters, scalars or (N, K).

    Returns:
        Energy, (N,); its sum is the total energy.
    """
    return jnp.where(pairs.is_pair, potential.energy(pairs.distance, **parameters), 0).sum(axis=1) / 2


def forces(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return the force on each particle, ``F_i = -sum_j U'(r_ij) (r_i - r_j) / r_ij``.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: the potential's parameters, scalars or (N, K).

    Returns:
        Energy / length, (N, d).
    """
    # The inverse distance is zero where there is no pair, so no mask is needed.
    force_over_distance = potential.force(pairs.distance, **parameters) * pairs.inverse_distance
    return jnp.stack([(force_over_distance * component).sum(axis=1) for component in pairs.separation], axis=-1)


def virial(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return the internal virial, ``W = -sum_{i<j} r_ij U'(r_ij)``.

    At rest the pressure is ``W / (d V)``, which is ``-dE/dV`` under a uniform scaling of all positions.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: the potential's parameters, scalars or (N, K).

    Returns:
        Energy, scalar; positive where the particles repel.
    """
    magnitude = jnp.where(pairs.is_pair, potential.force(pairs.distance, **parameters), 0)
    return (magnitude * pairs.distance).sum() / 2


def virial_tensor(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return the virial tensor, ``W_ab = -sum_{i<j} U'(r_ij) r_a r_b / r_ij``, whose trace is `virial`.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: the potential's parameters, scalars or (N, K).

    Returns:
        Energy, (d, d), symmetric.
    """
    over_distance = potential.force(pairs.distance, **parameters) * pairs.inverse_distance
    return jnp.stack(
        [jnp.stack([(over_distance * a * b).sum() / 2 for b in pairs.separation]) for a in pairs.separation]
    )
