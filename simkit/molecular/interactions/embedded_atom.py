"""Embedded-atom energies of metals: each atom is embedded in the density that its neighbors make at its place.

    E = sum_i F(rho_i) + sum_{i<j} phi(r_ij),    rho_i = sum_j f(r_ij)

The forces are those of pairs, ``-(phi' + F'(rho_i) f'(r_ij) + F'(rho_j) f'(r_ji))``: two passes over the list, the
first for the densities, and no scattered sums.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_number
from simkit.core.formulation import computed_once_on_cpu
from simkit.core.parameter import POSITIVE
from simkit.core.settings import arguments, number, whole, word
from simkit.core.simulation import Params
from simkit.errors import listed
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction, Quantities
from simkit.molecular.interactions.pair_interaction import Method, PairInteraction, of_all_pairs
from simkit.molecular.neighbors import neighbor_list, pair_sums, pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.neighbors.pair_sums import PairParameter, PairSums, PairTerms, PerParticle
from simkit.molecular.potentials import PairPotential, pair_potential
from simkit.molecular.spaces import Cell, Components

type Values = Callable[[Params], Mapping[str, PairParameter]]
# Prefixes of the parameters of one sum: of the pair energy, of the density at the particle, and at its neighbor.
PAIR, HERE, THERE = "pair ", "here ", "there "
SLOPE_HERE, SLOPE_THERE = "slope here", "slope there"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddedAtoms(PairInteraction):
    """An embedded-atom energy on the lists of its pairs; see `embedded_atom`.

    Attributes:
        density: f, the density at the first particle of a pair by the second.
        embedding: ``(rho, **parameters) -> F``.
        density_parameters: ``params -> {name: value}`` of the density.
        embedding_parameters: ``params -> {name: number or (N,)}`` of the embedding energy.
    """

    density: PairPotential
    embedding: Callable[..., jax.Array]
    density_parameters: Values
    embedding_parameters: Callable[[Params], Mapping[str, jax.Array]]

    def together(
        self, names: Quantities, position: jax.Array, cell: Cell, params: Params, neighbors: Any
    ) -> tuple[jax.Array, ...]:
        """Return energy, forces and stress, those that are named; arguments as for `Interaction.several`.

        Raises:
            UserError: for the stress in free space.
        """
        volume = spaces.volume_of(cell, position.shape[1]) if "stress" in names else 1
        at = position, cell, params, neighbors

        def of_density(pair: PairTerms) -> Components:
            energy = self.potential.energy(pair.distance, **_with_prefix(PAIR, pair.parameters))
            return self._density(pair), jnp.where(pair.is_pair, energy, 0)

        def density_alone(pair: PairTerms) -> Components:
            return (self._density(pair),)

        first, results = ((of_density, 2) if "energy" in names else (density_alone, 1)), dict[str, jax.Array]()
        density, *pair_energy = self._totals(*at, {}, *first)
        embedded, slope = self._embedded(density, params)
        if pair_energy:
            results["energy"] = pair_energy[0].sum() / 2 + embedded.sum()
        if "force" in names or "stress" in names:
            components, virial = self._forces_and_virial(*at, slope, with_virial="stress" in names)
            results["force"] = jnp.stack(components, axis=-1)
            if virial:
                results["stress"] = -pair_sums.virial_of(virial) / volume
        return tuple(self.valid_or_nan(results[name], *at) for name in names)

    def _density(self, pair: PairTerms) -> jax.Array:
        """Return what each entry adds to the density at the particle, (M, N)."""
        density = self.density.energy(pair.distance, **_with_prefix(HERE, pair.parameters))
        return jnp.where(pair.is_pair, density, 0)

    def _embedded(self, density: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        """Return the embedding energy of each particle and its slope, (N,) each; the slope is zero without neighbors.

        There it is often infinite, as that of a square root, and multiplies nothing.
        """
        values = self.embedding_parameters(params)
        is_alone = density == 0

        def embedding(rho: jax.Array) -> jax.Array:
            return jnp.broadcast_to(self.embedding(rho, **values), rho.shape)

        inside = jnp.where(is_alone, 1, density)
        energy, slope = jax.jvp(embedding, (inside,), (jnp.ones_like(inside),))
        alone = embedding(jnp.zeros_like(density))
        return jnp.where(is_alone, alone, energy), jnp.where(is_alone, 0, slope)

    def _forces_and_virial(
        self, position: jax.Array, cell: Cell, params: Params, neighbors: Any, slope: jax.Array, *, with_virial: bool
    ) -> tuple[Components, Components]:
        """Return the components of the forces, (N,) each, and those of twice the virial of each particle, if wanted."""
        slopes = {SLOPE_HERE: PerParticle(slope, lambda a, b: a), SLOPE_THERE: PerParticle(slope, lambda a, b: b)}
        dimension = position.shape[1]
        entries = pair_sums.upper_triangle(dimension) if with_virial else []

        def term(pair: PairTerms) -> Components:
            values = pair.parameters
            here = self.density.force(pair.distance, **_with_prefix(HERE, values))
            there = _with_prefix(THERE, values)
            force = self.potential.force(pair.distance, **_with_prefix(PAIR, values)) + values[SLOPE_HERE] * here
            force = force + values[SLOPE_THERE] * (self.density.force(pair.distance, **there) if there else here)
            over_distance = computed_once_on_cpu(jnp.where(pair.is_pair, force * pair.inverse_distance, 0))
            components = tuple(over_distance * component for component in pair.separation)
            return *components, *(components[a] * pair.separation[b] for a, b in entries)

        totals = self._totals(position, cell, params, neighbors, slopes, term, dimension + len(entries))
        return totals[:dimension], totals[dimension:]

    def _totals(
        self,
        position: jax.Array,
        cell: Cell,
        params: Params,
        neighbors: Any,
        further: Mapping[str, PairParameter],
        term: Callable[[PairTerms], Components],
        count: int,
    ) -> Components:
        """Return the sums of a term over the neighbors of each particle, (N,) each."""
        space = self.checked_space(position, cell, params)
        limit = None if self.cutoff is None else self.cutoff_of(params, position)
        here, pair = self.density_parameters(params), self.potential_parameters(params)
        values = {PAIR + name: value for name, value in pair.items()}
        values |= {HERE + name: value for name, value in here.items()}
        # Where particles do not differ, the density that a neighbor receives is that which it makes.
        if any(isinstance(value, PerParticle) or jnp.ndim(value) == 2 for value in here.values()):
            values |= {THERE + name: _exchanged(value) for name, value in here.items()}
        values |= further
        if isinstance(neighbors, NeighborList) and limit is not None:
            species = None if self.species is None else jnp.asarray(self.species)
            sums = PairSums(self.potential, limit, values, species)
            totals = pair_sums.accumulated(sums, position, cell, neighbors, term, count)
            return tuple(neighbor_list.to_particles(neighbors, total) for total in totals)
        apart = pairs.all_pairs(position, space, limit)
        terms = PairTerms(
            is_pair=apart.is_pair,
            squared_distance=apart.distance**2,
            distance=apart.distance,
            inverse_distance=apart.inverse_distance,
            separation=apart.separation,
            parameters=of_all_pairs(values, self.species),
        )
        return tuple(each.sum(axis=1) for each in term(terms))


@arguments(
    method=word("how pairs are found", ("auto", "all_pairs", "neighbor_list")),
    skin=number("skin of the list, in units of the cut-off", bounds=POSITIVE),
    capacity=whole("neighbors per particle that the list can hold", low=1),
)
def embedded_atom(
    density: PairPotential | Callable[..., jax.Array],
    embedding: Callable[..., jax.Array],
    pair: PairPotential | Callable[..., jax.Array],
    *,
    cutoff: float | Callable[[Params], jax.Array],
    parameters: Sequence[str] | Values = (),
    density_parameters: Sequence[str] | Values = (),
    embedding_parameters: Sequence[str] | Callable[[Params], Mapping[str, jax.Array]] = (),
    species: Sequence[int] | None = None,
    method: Method = "auto",
    skin: float = 0.1,
    capacity: int | None = None,
) -> Interaction:
    """Return the embedded-atom interaction ``E = sum_i F(rho_i) + sum_{i<j} phi(r_ij)``, ``rho_i = sum_j f(r_ij)``.

    Density and pair energy should end smoothly at the cut-off, where they are truncated.

    Args:
        density: f, ``(distance, **parameters) -> density``, at the first particle of a pair by the second.
        embedding: F, ``(rho, **parameters) -> energy``, elementwise.
        pair: phi, ``(distance, **parameters) -> energy``.
        cutoff: length, or ``params -> length``; at most half the smallest width of a periodic cell.
        parameters: names of the params of the pair energy; or ``params -> {name: value}``, as for
            `simkit.molecular.interactions.pair_interaction`: scalars, (S, S) by ``species``, or one number a particle.
        density_parameters: likewise of the density; row a, column b is the density at species a by species b.
        embedding_parameters: names of params, or ``params -> {name: value}``, scalars or (N,).
        species: species of each particle, integers in [0, S); ``None`` if no parameter is a table.
        method: as for `simkit.molecular.interactions.pair_interaction`.
        skin: of the list beyond the cut-off, in units of the cut-off.
        capacity: neighbors per particle that the list can hold; ``None`` for a capacity that suffices for a liquid.

    Raises:
        UserError: if an argument is out of its range; when it is used, also if a cut-off that is known while compiling
            exceeds half the cell. A traced cut-off makes energy, force and stress NaN instead.

    Example:
        >>> def decay(r, rate):
        ...     return jnp.exp(-rate * (r - 1))
        >>> gupta = molecular.interactions.embedded_atom(
        ...     lambda r, q: decay(r, 2 * q), lambda rho: -jnp.sqrt(rho), lambda r, p: 2 * 0.1 * decay(r, p),
        ...     cutoff=9.0, parameters=["p"], density_parameters=["q"],
        ... )
        >>> x, params = jnp.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), {"p": 10.0, "q": 3.0}
        >>> print(f"{gupta.energy(x, None, params, gupta.prepare(x, None, params)):.4f} = 2 (-1 + 0.1)")
        -1.8000 = 2 (-1 + 0.1)

    Reference: Daw, Baskes, Phys. Rev. B 29, 6443 (1984), doi:10.1103/PhysRevB.29.6443.
    """
    if isinstance(cutoff, int | float):
        check_number("cutoff", cutoff)
    return EmbeddedAtoms(
        potential=_as_pair(pair),
        cutoff=cutoff,
        parameters=parameters if callable(parameters) else listed(parameters, "parameters"),
        species=None if species is None else np.asarray(species, dtype=np.int32),
        method=method,
        skin=skin,
        capacity=capacity,
        density=_as_pair(density),
        embedding=embedding,
        density_parameters=_by_name(density_parameters, "density_parameters"),
        embedding_parameters=_by_name(embedding_parameters, "embedding_parameters"),
    ).interaction()


def _as_pair(energy: PairPotential | Callable[..., jax.Array]) -> PairPotential:
    return energy if isinstance(energy, PairPotential) else pair_potential(energy)


def _by_name(parameters: Sequence[str] | Callable[[Params], Mapping[str, Any]], where: str) -> Any:
    if callable(parameters):
        return parameters
    names = listed(parameters, where)
    return lambda params: {name: params[name] for name in names}


def _with_prefix(prefix: str, parameters: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def _exchanged(value: PairParameter) -> PairParameter:
    """Return a parameter of pairs with the particles of each pair exchanged."""
    if isinstance(value, PerParticle):
        return PerParticle(value.value, lambda a, b: value.mix(b, a))
    return value.T if jnp.ndim(value) == 2 else value
