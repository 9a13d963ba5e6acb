"""Tersoff potential of silicon and similar materials: pair energies whose attraction is weakened by further bonds.

The energy of an atom is a function of the separations of its neighbors. The slopes by these are the forces that it
exerts; the force on it is their sum less what its neighbors exert, found in their columns of the list, so that there
are no scattered sums.
"""

import math

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_shape
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import arguments, formula, number, whole
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, ManyBody
from simkit.molecular.neighbors import neighbor_list
from simkit.molecular.neighbors.neighbor_list import NeighborList, Within
from simkit.molecular.spaces import Cell, Components

# Energy in eV, length in angstrom; the values of 1989.
SILICON_OF_TERSOFF = {
    "repulsion": 1830.8,
    "attraction": 471.18,
    "repulsion_decay": 2.4799,
    "attraction_decay": 1.7322,
    "beta": 1.1e-6,
    "n": 0.78734,
    "c": 1.0039e5,
    "d": 16.217,
    "h": -0.59825,
    "inner": 2.7,
    "outer": 3.0,
}
_UNITS = {
    "repulsion": ("A, strength of the repulsion", "energy"),
    "attraction": ("B, strength of the attraction", "energy"),
    "repulsion_decay": ("lambda, inverse range of the repulsion", "1 / length"),
    "attraction_decay": ("mu, inverse range of the attraction", "1 / length"),
    "beta": ("weight of further bonds", "1"),
    "n": ("exponent of their weight", "1"),
    "c": ("strength of the dependence on angles", "1"),
    "d": ("width of the dependence on angles", "1"),
    "h": ("cosine of the best angle", "1"),
    "inner": ("R, distance at which bonds begin to end", "length"),
    "outer": ("S, distance at which they have ended", "length"),
}
_PAIRS = "which has a range of its own and acts between all particles"


@part(
    values={name: formula(doc, SILICON_OF_TERSOFF[name], unit=unit) for name, (doc, unit) in _UNITS.items()},
    excludes=dict.fromkeys(("between", "cutoff", "ending", "switch_on", "tail", "method", "skin", "one_four"), _PAIRS),
)
def many_body() -> ManyBody:
    """Return the Tersoff interaction as scenario files name it; values left out are those of silicon."""

    def reach(*, outer: jax.Array, **others: jax.Array) -> jax.Array:
        del others
        return outer

    return ManyBody(tersoff(), reach, lambda **values: diamond_bond(values), dimensions=(3,))


def diamond_bond(params: Params) -> tuple[jax.Array, jax.Array]:
    """Return length and stiffness of a bond in the diamond structure, whose energy per atom is that of two bonds."""
    order = bond_order(3 * _of_angle(jnp.asarray(-1 / 3), params), params)
    repulsion, attraction = params["repulsion"], order * params["attraction"]
    fast, slow = params["repulsion_decay"], params["attraction_decay"]
    length = jnp.log(fast * repulsion / (slow * attraction)) / (fast - slow)
    stiffness = fast**2 * repulsion * jnp.exp(-fast * length) - slow**2 * attraction * jnp.exp(-slow * length)
    return length, stiffness


@arguments(
    capacity=whole("neighbors per particle that the list can hold", low=1),
    skin=number("skin of the list, in units of the cut-off", bounds=POSITIVE),
)
def tersoff(*, capacity: int = 16, skin: float = 0.1) -> Interaction:
    """Return the Tersoff interaction of one species in three dimensions.

    ``E = 1/2 sum_{i != j} f(r_ij) (A exp(-lambda r_ij) - b_ij B exp(-mu r_ij))`` with
    ``b_ij = (1 + (beta zeta_ij)^n)^(-1 / (2 n))``, ``zeta_ij = sum_{k != i, j} f(r_ik) g(theta_ijk)`` and
    ``g = 1 + c^2 / d^2 - c^2 / (d^2 + (h - cos theta)^2)``. f falls from 1 at R to 0 at S as half a cosine.

    Parameters read: ``repulsion`` A and ``attraction`` B, energy; ``repulsion_decay`` lambda and ``attraction_decay``
    mu, 1 / length; ``beta``, ``n``, ``c``, ``d``, ``h``; ``inner`` R and ``outer`` S, length. The values of silicon are
    the defaults of `molecular.system`.

    Only nearest images interact: half the smallest width of the cell must exceed S. In a smaller cell energy, force and
    stress are NaN. Memory is that of the pairs of bonds of all atoms.

    Args:
        capacity: neighbors per particle within cut-off and skin that the list can hold. Runs enlarge it when needed.
        skin: of the list beyond the cut-off, in units of the cut-off.

    Example:
        >>> from simkit.molecular.interactions.tersoff import SILICON_OF_TERSOFF
        >>> crystal = molecular.structures.diamond((2, 2, 2), spacing=2.3521)
        >>> acts, params = molecular.interactions.tersoff(), {k: jnp.asarray(v) for k, v in SILICON_OF_TERSOFF.items()}
        >>> at = crystal.position, crystal.cell, params
        >>> print(f"{acts.energy(*at, acts.prepare(*at)) / 64:.2f} eV")
        -4.63 eV

    Reference: Tersoff, Phys. Rev. B 37, 6991 (1988), doi:10.1103/PhysRevB.37.6991, and 39, 5566 (1989),
    doi:10.1103/PhysRevB.39.5566.
    """
    within = Within(lambda params: params["outer"], skin, capacity)

    def prepare(position: jax.Array, cell: Cell, params: Params) -> NeighborList:
        check_shape("position", position, "three coordinates of each particle", (None, 3))
        return within.prepare(position, cell, params)

    def energy(position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList) -> jax.Array:
        apart, is_used = _separations(position, cell, neighbors)
        return within.valid_or_nan(_energies(apart, is_used, params).sum(), cell, params, neighbors)

    def force(position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList) -> jax.Array:
        apart, is_used = _separations(position, cell, neighbors)
        slopes = jax.grad(lambda apart: _energies(apart, is_used, params).sum())(apart)
        partner = _place_in_list_of_neighbor(neighbors)
        exerted = [slope.sum(axis=0) for slope in slopes]
        received = [
            jnp.where(is_used, slope.ravel().at[partner].get(mode="promise_in_bounds"), 0).sum(axis=0)
            for slope in slopes
        ]
        columns = [theirs - own for own, theirs in zip(exerted, received, strict=True)]
        value = neighbor_list.to_particles(neighbors, jnp.stack(columns, axis=-1))
        return within.valid_or_nan(value, cell, params, neighbors)

    def stress(position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList) -> jax.Array:
        volume = spaces.volume_of(cell, 3)
        apart, is_used = _separations(position, cell, neighbors)
        slopes = jax.grad(lambda apart: _energies(apart, is_used, params).sum())(apart)
        tensor = jnp.stack([jnp.stack([(a * g).sum() for g in slopes]) for a in apart])
        return within.valid_or_nan((tensor + tensor.T) / (2 * volume), cell, params, neighbors)

    return Interaction(
        prepare=prepare,
        refresh=within.refresh,
        energy=energy,
        force=force,
        stress=stress,
        sized_like=lambda neighbors: tersoff(capacity=neighbors.capacity, skin=skin),
        is_translation_invariant=True,
        fits=within.fits,
    )


def _separations(position: jax.Array, cell: Cell, neighbors: NeighborList) -> tuple[Components, jax.Array]:
    """Return the vectors from each neighbor to the particle of each slot, (K, N) each, and which entries are used."""
    columns = [neighbor_list.to_slots(neighbors, position[:, axis]) for axis in range(3)]
    index = neighbors.index
    difference = tuple(x - x.at[index].get(mode="promise_in_bounds") for x in columns)
    is_used = index != jnp.arange(index.shape[1], dtype=index.dtype)
    return spaces.of_cell(cell, 3).separation(difference), is_used


def _place_in_list_of_neighbor(neighbors: NeighborList) -> jax.Array:
    """Return where the column of each neighbor has the particle itself, as a flat index of the list, (K, N)."""
    index = neighbors.index
    slots = jnp.arange(index.shape[1], dtype=index.dtype)
    lists = index.at[:, index].get(mode="promise_in_bounds")
    row = jnp.argmax(lists == slots, axis=0).astype(index.dtype)
    return row * index.shape[1] + index


def _energies(apart: Components, is_used: jax.Array, params: Params) -> jax.Array:
    """Return the energy of each atom, half of its bonds as it orders them, (N,)."""
    inner, outer = params["inner"], params["outer"]
    squared = sum(x * x for x in apart)
    is_bond = is_used & (squared < outer**2)
    # Any finite distance for unused entries; coincident particles have no direction.
    r = jnp.sqrt(jnp.maximum(jnp.where(is_bond, squared, outer**2), 1e-12 * outer**2))
    share = jnp.clip((r - inner) / (outer - inner), 0, 1)
    weight = jnp.where(is_bond, (1 + jnp.cos(math.pi * share)) / 2, 0)
    unit = tuple(x / r for x in apart)
    x, y, z = (u[:, None] * u[None] for u in unit)
    cosine = x + y + z
    is_other = ~jnp.eye(len(r), dtype=bool)[:, :, None]
    zeta = jnp.where(is_other, weight[None] * _of_angle(cosine, params), 0).sum(axis=1)
    attraction = bond_order(zeta, params) * params["attraction"] * jnp.exp(-params["attraction_decay"] * r)
    repulsion = params["repulsion"] * jnp.exp(-params["repulsion_decay"] * r)
    return (weight * (repulsion - attraction)).sum(axis=0) / 2


def _of_angle(cosine: jax.Array, params: Params) -> jax.Array:
    # The difference of fractions over one denominator, since rounding would take it all in float32.
    c, d, off = params["c"], params["d"], (params["h"] - cosine) ** 2
    return 1 + (c / d) ** 2 * off / (d**2 + off)


def bond_order(zeta: jax.Array, params: Params) -> jax.Array:
    """Return ``b = (1 + (beta zeta)^n)^(-1 / (2 n))``, 1 without further bonds, where its slope is not finite.

    Args:
        zeta: weight of further bonds, of any shape.
        params: of the interaction.
    """
    has_others = zeta > 0
    inside = params["beta"] * jnp.where(has_others, zeta, 1)
    return jnp.where(has_others, (1 + inside ** params["n"]) ** (-1 / (2 * params["n"])), 1)
