"""Tables of pairs of particles, and energy, force and virial of a pair potential over them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.neighbors.neighbor_list import Excluded, NeighborList
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import Components, Space


class Pairs(NamedTuple):
    """Separations of pairs, each pair listed at both particles.

    Entry (i, k) holds the k-th candidate partner of particle i; the sum over the last axis is the total of particle i.

    Attributes:
        separation: vector from the partner to particle i, one (N, K) array per component.
        distance: length, (N, K); some positive number for entries that are no pair.
        inverse_distance: 1 / length, (N, K); zero for entries that are no pair and for coincident particles.
        is_pair: whether the entry is a pair, (N, K); false for a particle with itself.
        partner: index of the candidate, int32, (N, K).
    """

    separation: Components
    distance: jax.Array
    inverse_distance: jax.Array
    is_pair: jax.Array
    partner: jax.Array


def all_pairs(
    position: jax.Array, space: Space, cutoff: jax.Array | None = None, excluded: Excluded | None = None
) -> Pairs:
    """List every particle as a candidate partner of every other.

    Args:
        position: length, (N, d).
        space: the geometry.
        cutoff: scalar, length; partners further away are no pair. ``None`` for no cut-off.
        excluded: pairs that are none; ``None`` for none of them.

    Returns:
        Pairs with K = N. Derivatives are finite even if particles coincide.
    """
    partner = jnp.broadcast_to(jnp.arange(len(position), dtype=jnp.int32), (len(position),) * 2)
    return _pairs(tuple(x[:, None] - x[None, :] for x in _columns(position)), partner, space, cutoff, excluded)


def listed_pairs(position: jax.Array, space: Space, neighbors: NeighborList, cutoff: jax.Array | None = None) -> Pairs:
    """List the neighbors of every particle as its candidate partners.

    Meant for quantities computed once per frame; forces by `simkit.molecular.neighbors.pair_sums` are faster.

    Args:
        position: length, (N, d).
        space: the geometry.
        neighbors: current at these positions.
        cutoff: scalar, length; partners further away are no pair. ``None`` for all that are listed.

    Returns:
        Pairs with K the capacity of the list.
    """
    partner = neighbors.order[neighbors.index].T[neighbors.slot]
    return _pairs(tuple(x[:, None] - x[partner] for x in _columns(position)), partner, space, cutoff)


def _columns(position: jax.Array) -> Components:
    return tuple(position[:, axis] for axis in range(position.shape[1]))


def _pairs(
    difference: Components,
    partner: jax.Array,
    space: Space,
    cutoff: jax.Array | None,
    excluded: Excluded | None = None,
) -> Pairs:
    separation = space.separation(difference)
    squared = sum(component * component for component in separation)
    own = jnp.arange(len(partner), dtype=partner.dtype)[:, None]
    is_pair = partner != own
    if excluded is not None:
        is_pair = is_pair & ~excluded.are(own, partner, squared)
    # The square root has no derivative at zero, so zero is replaced in its argument and restored in its value. Pairs of
    # a particle with itself are masked by index, since fused multiply-add may give them a distance of a rounding.
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
    """Return half the pair energies of each particle, ``E_i = 1/2 sum_j U(r_ij)``.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: of the potential, scalars or (N, K).

    Returns:
        Energy, (N,); its sum is the total energy.
    """
    return jnp.where(pairs.is_pair, potential.energy(pairs.distance, **parameters), 0).sum(axis=1) / 2


def forces(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return the force on each particle, ``F_i = -sum_j U'(r_ij) (r_i - r_j) / r_ij``.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: of the potential, scalars or (N, K).

    Returns:
        Energy / length, (N, d).
    """
    # The inverse distance of entries that are no pair is zero, so no mask is needed.
    force_over_distance = potential.force(pairs.distance, **parameters) * pairs.inverse_distance
    return jnp.stack([(force_over_distance * component).sum(axis=1) for component in pairs.separation], axis=-1)


def virial(pairs: Pairs, potential: PairPotential, **parameters: jax.Array) -> jax.Array:
    """Return the virial tensor, ``W_ab = -sum_{i<j} U'(r_ij) r_a r_b / r_ij``.

    At rest the pressure is ``tr(W) / (d V)``, which is ``-dE/dV`` under a uniform scaling of all positions.

    Args:
        pairs: from `all_pairs`.
        potential: the pair potential.
        **parameters: of the potential, scalars or (N, K).

    Returns:
        Energy, (d, d), symmetric.
    """
    over_distance = potential.force(pairs.distance, **parameters) * pairs.inverse_distance
    return jnp.stack(
        [jnp.stack([(over_distance * a * b).sum() / 2 for b in pairs.separation]) for a in pairs.separation]
    )
