"""Tersoff potential of silicon and similar materials: pair energies whose attraction is weakened by further bonds.

The energy of an atom is a function of the separations of its neighbors. The slopes by these are the forces that it
exerts; the force on it is their sum less what its neighbors exert, found in their columns of the list, so that there
are no scattered sums.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_shape
from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.settings import arguments, formula, number, whole
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, ManyBody, Quantities
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
# Values of three atoms, where there are several species; the others are those of pairs.
SHARED = ("m", "gamma", "excess_decay", "c", "d", "h", "inner", "outer")
OF_PAIR = "_of_pair"
# Exponents beyond which a longer bond no longer weakens a shorter one any further, as in LAMMPS.
STEEPEST = 69.0776


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
def tersoff(*, species: Sequence[int] | None = None, capacity: int = 16, skin: float = 0.1) -> Interaction:
    """Return the Tersoff interaction in three dimensions, of one species or of several.

    ``E = 1/2 sum_{i != j} f(r_ij) (A exp(-lambda r_ij) - b_ij B exp(-mu r_ij))`` with
    ``b_ij = (1 + (beta zeta_ij)^n)^(-1 / (2 n))``, ``zeta_ij = sum_{k != i, j} f(r_ik) g(theta_ijk)`` and
    ``g = 1 + c^2 / d^2 - c^2 / (d^2 + (h - cos theta)^2)``. f falls from 1 at R to 0 at S as half a cosine.

    Parameters read: ``repulsion`` A and ``attraction`` B, energy; ``repulsion_decay`` lambda and ``attraction_decay``
    mu, 1 / length; ``beta``, ``n``, ``c``, ``d``, ``h``; ``inner`` R and ``outer`` S, length. The values of silicon are
    the defaults of `molecular.system`. With species they are tables, as `parse_tersoff` reads them of a file of LAMMPS.

    Only nearest images interact: half the smallest width of the cell must exceed S. In a smaller cell energy, force and
    stress are NaN. Memory is that of the pairs of bonds of all atoms.

    Args:
        species: of each particle, integers in [0, S); ``None`` for one species.
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
    within, kinds = Within(_reach, skin, capacity), None if species is None else np.asarray(species, np.int32)

    def prepare(position: jax.Array, cell: Cell, params: Params) -> NeighborList:
        check_shape("position", position, "three coordinates of each particle", (None, 3))
        return within.prepare(position, cell, params)

    def together(
        names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: NeighborList
    ) -> tuple[jax.Array, ...]:
        volume = spaces.volume_of(cell, 3) if "stress" in names else 1.0
        apart, is_used = _separations(position, cell, neighbors)
        of_pair, of_three = (params, params) if kinds is None else _of_species(params, kinds, neighbors)

        def total(apart: Components) -> jax.Array:
            return _energies(apart, is_used, of_pair, of_three, _reach(params)).sum()

        results = dict[str, jax.Array]()
        if names == ("energy",):
            results["energy"] = total(apart)
        else:
            results["energy"], slopes = jax.value_and_grad(total)(apart)
            if "force" in names:
                results["force"] = _forces(slopes, is_used, neighbors)
            if "stress" in names:
                tensor = jnp.stack([jnp.stack([(a * g).sum() for g in slopes]) for a in apart])
                results["stress"] = (tensor + tensor.T) / (2 * volume)
        return tuple(within.valid_or_nan(results[name], cell, params, neighbors) for name in names)

    return Interaction(
        prepare=prepare,
        refresh=within.refresh,
        energy=lambda *moment: together(("energy",), *moment)[0],
        force=lambda *moment: together(("force",), *moment)[0],
        stress=lambda *moment: together(("stress",), *moment)[0],
        sized_like=lambda neighbors: tersoff(species=species, capacity=neighbors.capacity, skin=skin),
        is_translation_invariant=True,
        fits=within.fits,
        together=together,
    )


def _separations(position: jax.Array, cell: Cell, neighbors: NeighborList) -> tuple[Components, jax.Array]:
    """Return the vectors from each neighbor to the particle of each slot, (K, N) each, and which entries are used."""
    columns = [neighbor_list.to_slots(neighbors, position[:, axis]) for axis in range(3)]
    index = neighbors.index
    difference = tuple(x - x.at[index].get(mode="promise_in_bounds") for x in columns)
    is_used = index != jnp.arange(index.shape[1], dtype=index.dtype)
    return spaces.of_cell(cell, 3).separation(difference), is_used


def _forces(slopes: Components, is_used: jax.Array, neighbors: NeighborList) -> jax.Array:
    """Return the forces, (N, 3), from the derivatives of the energy by the separations, (K, N) each."""
    partner = _place_in_list_of_neighbor(neighbors)
    columns = [
        jnp.where(is_used, slope.ravel().at[partner].get(mode="promise_in_bounds"), 0).sum(axis=0) - slope.sum(axis=0)
        for slope in slopes
    ]
    return neighbor_list.to_particles(neighbors, jnp.stack(columns, axis=-1))


def _place_in_list_of_neighbor(neighbors: NeighborList) -> jax.Array:
    """Return where the column of each neighbor has the particle itself, as a flat index of the list, (K, N)."""
    index = neighbors.index
    slots = jnp.arange(index.shape[1], dtype=index.dtype)
    lists = index.at[:, index].get(mode="promise_in_bounds")
    row = jnp.argmax(lists == slots, axis=0).astype(index.dtype)
    return row * index.shape[1] + index


def _reach(params: Params) -> jax.Array:
    """Return the distance beyond which no two atoms are bonded."""
    ends = [jnp.max(jnp.asarray(params[name])) for name in ("outer", f"outer{OF_PAIR}") if name in params]
    return jnp.max(jnp.stack(ends))


def _of_species(params: Params, kinds: np.ndarray, neighbors: NeighborList) -> tuple[Params, Params]:
    """Return the values of each bond, (K, N), and of each two bonds of an atom, (K, K, N)."""
    here = neighbor_list.to_slots(neighbors, jnp.asarray(kinds))
    there = here.at[neighbors.index].get(mode="promise_in_bounds")
    of_three = {name: params[name][here, there[:, None], there[None]] for name in SHARED}
    pairs = (name for name in params if name not in SHARED)
    return {name.removesuffix(OF_PAIR): params[name][here, there] for name in pairs}, of_three


def _energies(apart: Components, is_used: jax.Array, of_pair: Params, of_three: Params, reach: jax.Array) -> jax.Array:
    """Return the energy of each atom, half of its bonds as it orders them, (N,)."""
    squared = sum(x * x for x in apart)
    is_bond = is_used & (squared < reach**2)
    # Any finite distance for unused entries; coincident particles have no direction.
    r = jnp.sqrt(jnp.maximum(jnp.where(is_bond, squared, reach**2), 1e-12 * reach**2))
    weight, others = (jnp.where(is_bond, _fading(r, values), 0) for values in (of_pair, of_three))
    unit = tuple(x / r for x in apart)
    x, y, z = (u[:, None] * u[None] for u in unit)
    cosine = x + y + z
    is_other = ~jnp.eye(len(r), dtype=bool)[:, :, None]
    weakening = _of_angle(cosine, of_three)
    if "gamma" in of_three:
        excess = of_three["excess_decay"] * (r[:, None] - r[None])
        excess = jnp.where(of_three["m"] == 1, excess, excess**3)
        weakening = of_three["gamma"] * weakening * jnp.exp(jnp.clip(excess, -STEEPEST, STEEPEST))
    zeta = jnp.where(is_other, others * weakening, 0).sum(axis=1)
    attraction = bond_order(zeta, of_pair) * of_pair["attraction"] * jnp.exp(-of_pair["attraction_decay"] * r)
    repulsion = of_pair["repulsion"] * jnp.exp(-of_pair["repulsion_decay"] * r)
    return (weight * (repulsion - attraction)).sum(axis=0) / 2


def _fading(r: jax.Array, values: Params) -> jax.Array:
    """Return the share of a bond of a length, from 1 within the inner distance to 0 from the outer one on."""
    share = jnp.clip((r - values["inner"]) / (values["outer"] - values["inner"]), 0, 1)
    return (1 + jnp.cos(math.pi * share)) / 2


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
