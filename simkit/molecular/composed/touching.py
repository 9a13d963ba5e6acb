"""Contacts of particles: contact network, load, bond order, rattlers, and the energy of each particle."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.analysis import contacts
from simkit.molecular.analysis.bond_order import polygon_order
from simkit.molecular.analysis.contacts import Contacts
from simkit.molecular.composed.converted_params import without_time
from simkit.molecular.composed.images import repeated
from simkit.molecular.composed.interactions import Interactions
from simkit.molecular.composed.moment import Moment, Observations
from simkit.molecular.composed.pair_terms import PairTerm
from simkit.molecular.composed.particles import Particles
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.neighbors.pairs import Pairs
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Touching:
    """Contacts of particles: pairs within the reach of an energy that ends by itself, such as that of soft spheres.

    Attributes:
        interactions: interactions and fields.
        particles: particles of the system.
        dimension: dimension of space.
        images: number of interacting cells along each axis; ``None`` for one.
    """

    interactions: Interactions
    particles: Particles
    dimension: int
    images: tuple[int, ...] | None

    def of_contacts(self, moment: Moment) -> Observations:
        """Return the number of contacts of each particle, (N,), their mean, and the fraction of rattlers."""
        network, kind = self.network(moment), moment.position.dtype
        bearing = contacts.load_bearing(network, self.dimension)
        numbers = {
            "contact_number": contacts.contact_number(network, bearing).astype(kind),
            "rattler_fraction": 1 - bearing.astype(kind).mean(),
        }
        return Observations({"contacts": network.touching.sum(axis=1).astype(kind)}, numbers)

    def of_load(self, moment: Moment) -> Observations:
        """Return the virial of each particle over the mean of all, (N,)."""
        virial = jnp.zeros(len(moment.position), moment.position.dtype)
        for index in self.contact_terms():
            apart, values, _ = self._pairs(index, moment)
            push = jnp.where(apart.is_pair, self.interactions.pairs[index].potential.force(apart.distance, **values), 0)
            virial = virial + (push * apart.distance).sum(axis=1)
        mean = virial.mean()
        return Observations({"load": virial / jnp.where(mean > 0, mean, 1)}, {})

    def of_hexatic_order(self, moment: Moment) -> Observations:
        """Return how nearly the contacts of each particle point to the corners of a hexagon, (N,), and the mean."""
        apart, touching = self._joined(moment)
        order = polygon_order(apart, touching, 6)
        return Observations({"hexatic_order": order}, {"hexatic_order": order.mean()})

    def of_energies(self, moment: Moment) -> Observations:
        """Return each particle's half of its pair energies, and its energy in fields, (N,)."""
        energy = jnp.zeros(len(moment.position), moment.position.dtype)
        for index, term in enumerate(self.interactions.pairs):
            apart, values, _ = self._pairs(index, moment)
            energy = energy + pairs.energy_per_particle(apart, term.potential, **values)
        for other in self.interactions.others:
            energy = energy + other.each.energy(moment.position, moment.cell, without_time(moment.params), ())
        inside = spaces.of_cell(moment.cell, self.dimension).wrap(moment.position)
        columns = tuple(inside[:, axis] for axis in range(self.dimension))
        for field in self.interactions.fields:
            energy = energy + jnp.where(jnp.asarray(field.on), field.each(columns, moment.params), 0)
        return Observations({"energy_of_particle": energy}, {})

    def rattlers(self, moment: Moment) -> jax.Array:
        """Return the mask of particles without load-bearing contacts, (N,) booleans."""
        return ~contacts.load_bearing(self.network(moment), self.dimension)

    def network(self, moment: Moment) -> Contacts:
        """Return the contacts."""
        apart, touching = self._joined(moment)
        return Contacts(touching, apart.partner)

    def contact_terms(self) -> list[int]:
        """Return the indices of the pair energies that end by themselves."""
        return [index for index, term in enumerate(self.interactions.pairs) if term.is_contact]

    def are_all(self) -> bool:
        """Return whether contacts are the only interactions, and no particle is frozen."""
        return self.interactions.are_contacts and not self.particles.frozen.any()

    def _joined(self, moment: Moment) -> tuple[Pairs, jax.Array]:
        """Return the pairs of all contact energies, and the mask of those that touch, (N, K), each once."""
        separations, touches, earlier = [], [], []
        for index in self.contact_terms():
            term = self.interactions.pairs[index]
            apart, _, kinds = self._pairs(index, moment)
            within = _within(term, without_time(moment.params), kinds, apart.distance)
            for other in earlier:
                within &= ~_within(other, without_time(moment.params), kinds, apart.distance)
            earlier.append(term)
            separations.append(apart)
            touches.append(apart.is_pair & within)
        joined = (
            jax.tree.map(lambda *each: jnp.concatenate(each, axis=1), *separations)
            if len(separations) > 1
            else separations[0]
        )
        return joined, jnp.concatenate(touches, axis=1)

    def _pairs(self, index: int, moment: Moment) -> tuple[Pairs, dict[str, jax.Array], tuple[jax.Array, jax.Array]]:
        """Return the pairs of one energy, its parameters for each, and the species of both, (N, K) each."""
        position, cell = moment.position, moment.cell
        neighbors = moment.neighbors[index] if self.interactions.parts > 1 else moment.neighbors
        species = jnp.asarray(self.particles.species)
        if self.images is not None:
            position, cell = repeated(position, cell, self.images)
        apart = _apart(position, cell, neighbors)
        count = len(moment.position)
        apart = jax.tree.map(lambda each: each[:count], apart)
        apart = apart._replace(partner=apart.partner % count)
        kinds = species[:, None], species[apart.partner]
        values = self.interactions.pairs[index].parameters(without_time(moment.params))
        return apart, {name: value[kinds] if jnp.ndim(value) else value for name, value in values.items()}, kinds


def _apart(position: jax.Array, cell: Cell, neighbors: object) -> Pairs:
    space = spaces.of_cell(cell, position.shape[1])
    if isinstance(neighbors, NeighborList):
        return pairs.listed_pairs(position, space, neighbors)
    return pairs.all_pairs(position, space)


def _within(term: PairTerm, params: Params, kinds: tuple[jax.Array, jax.Array], distance: jax.Array) -> jax.Array:
    assert term.cutoff is not None  # contacts have one
    cutoff = term.cutoff(params)
    return jnp.asarray(term.between)[kinds] & (distance < (cutoff[kinds] if cutoff.ndim else cutoff))
