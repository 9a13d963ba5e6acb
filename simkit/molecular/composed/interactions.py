"""Interactions and fields of a system of particles, from settings to one interaction."""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.parts import declaration_of
from simkit.core.settings import Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.composed.cells import SystemCell, refuse_no_volume
from simkit.molecular.composed.converted_params import with_converted_params, without_time
from simkit.molecular.composed.fields import Field
from simkit.molecular.composed.images import Block
from simkit.molecular.composed.jax_md_terms import JaxMdEnergy, JaxMdTerm, jax_md_term
from simkit.molecular.composed.names import Names
from simkit.molecular.composed.pair_terms import PairTerm, pair_term
from simkit.molecular.composed.particles import Particles
from simkit.molecular.composed.settings import POTENTIAL
from simkit.molecular.composed.tails import tail_of
from simkit.molecular.interactions.interaction import Interaction, ManyBody, combined
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.sizes import MAX_PARTICLES_IN_PAIRS

# Largest number of cells in a block of images; above it the cell is far too small for the cut-off.
MOST_IMAGES = 343


@dataclasses.dataclass(frozen=True)
class Interactions:
    """Interactions and external fields of a system.

    Attributes:
        pairs: pair energies.
        many_body: interactions that are no sums of pairs, each with ``params -> values``.
        fields: external energies and walls.
        others: energies of jax-md, without periodic images.
        tails: tail corrections beyond cut-offs, per cell.
        methods: method of finding pairs and skin of the lists, for each pair energy.
    """

    pairs: tuple[PairTerm, ...]
    many_body: tuple[tuple[ManyBody, Callable[[Params], dict[str, jax.Array]]], ...]
    fields: tuple[Field, ...]
    others: tuple[JaxMdTerm, ...]
    tails: tuple[Interaction, ...]
    methods: tuple[tuple[str, float], ...]

    @property
    def are_contacts(self) -> bool:
        """Whether all interactions are contacts, whose energies end by themselves, without fields."""
        others = (*self.many_body, *self.fields, *self.others, *self.tails)
        return not others and all(term.is_contact for term in self.pairs)

    def between(self, kinds: int) -> np.ndarray:
        """Return the mask of the pairs of species that interact, (S, S) booleans, for S ``kinds`` of particles."""
        everywhere = bool(self.many_body or self.others)
        return np.logical_or.reduce([np.full((kinds, kinds), everywhere), *(term.between for term in self.pairs)])

    @property
    def parts(self) -> int:
        """Number of interactions that are summed, pair energies first."""
        return sum(map(len, (self.pairs, self.many_body, self.tails, self.others, self.fields)))

    def interaction(
        self,
        particles: Particles,
        images: tuple[int, ...] | None,
        capacity: Callable[[PairTerm, float], int | None] | None = None,
    ) -> Interaction:
        """Return the sum of all; its params may hold the time, for fields.

        Args:
            particles: particles of the system.
            images: number of interacting cells along each axis; ``None`` for one.
            capacity: ``(term, skin) -> `` neighbors for which lists of a pair energy have capacity; ``None`` for those
                of a liquid.
        """
        cells = 1 if images is None else math.prod(images)
        species = np.tile(particles.species, cells)
        repeated: list[Interaction] = []
        for term, (method, skin) in zip(self.pairs, self.methods, strict=True):
            repeated.append(
                pair_interaction(
                    term.potential,
                    cutoff=None if term.cutoff is None else term.reach,
                    parameters=term.parameters,
                    species=species.tolist() if len(particles.names) > 1 else None,
                    method=method,  # type: ignore[arg-type]
                    skin=skin,
                    capacity=None if capacity is None else capacity(term, skin),
                )
            )
        repeated += [with_converted_params(body.interaction, values) for body, values in self.many_body]
        if images is not None and cells > 1:
            repeated = [Block(each, images).tied() for each in repeated]
        timeless = [with_converted_params(each, without_time) for each in (*repeated, *self.tails)]
        timeless += [with_converted_params(each.interaction, without_time) for each in self.others]
        parts = [*timeless, *(field.interaction() for field in self.fields)]
        return parts[0] if len(parts) == 1 else combined(*parts)

    def bonds(self, params: Params) -> list[tuple[jax.Array, jax.Array]]:
        """Return the lengths and stiffnesses of the bonds that interactions declare, one number or (K,) each."""
        declared = [term.bare.bond(**term.bare_parameters(params)) for term in self.pairs if term.bare.bond is not None]
        declared += [body.bond(**values(params)) for body, values in self.many_body]
        return declared + [other.bond(params) for other in self.others]

    def reach(self, params: Params) -> jax.Array | None:
        """Return the largest interaction distance of images; ``None`` if it is unlimited."""
        if any(term.cutoff is None for term in self.pairs):
            return None
        reaches = [term.reach(params) for term in self.pairs]
        reaches += [body.reach(**values(params)) for body, values in self.many_body]
        return jnp.stack(reaches).max() if reaches else jnp.zeros(())

    def reach_in_one_cell(self, params: Params) -> jax.Array:
        """Return the largest interaction distance of energies without images; zero if there are none."""
        return jnp.stack([each.reach(params) for each in self.others]).max() if self.others else jnp.zeros(())


def interactions_of(
    settings: tuple[Settings, ...],
    fields: tuple[Field, ...],
    names: Names,
    particles: Particles,
    cell: SystemCell,
    params: Params,
) -> Interactions:
    """Return the interactions and fields that settings describe.

    Args:
        settings: settings of each interaction.
        fields: external energies and walls.
        names: names that formulas may use.
        particles: particles of the system.
        cell: cell of the system.
        params: default parameters.

    Raises:
        UserError: if an interaction does not fit the cell, or if nothing acts on a species.
    """
    pairs, many_body, others, tails, methods = [], [], [], [], []
    for each in settings:
        energy = POTENTIAL.make(each)
        if isinstance(energy, JaxMdEnergy):
            others.append(jax_md_term(each, energy, names, particles, cell, params))
            continue
        if isinstance(energy, ManyBody):
            many_body.append((energy, _values_of_many_body(each, energy, names, particles, cell.dimension)))
            continue
        term = pair_term(each, energy, names, particles)
        if term.cutoff is None and not cell.is_free:
            raise each.refuse("cutoff", "is missing; in a cell that repeats an energy must end: give a length")
        if each["method"] == "neighbor_list" and term.cutoff is None:
            raise each.refuse("method", "= 'neighbor_list' needs a cutoff; give one, or take all_pairs")
        if particles.count > MAX_PARTICLES_IN_PAIRS and (term.cutoff is None or each["method"] == "all_pairs"):
            key = "cutoff" if term.cutoff is None else "method"
            problem = "is missing" if term.cutoff is None else "= 'all_pairs' takes every pair"
            remedy = "give a length" if term.cutoff is None else "leave it out"
            raise each.refuse(key, f"{problem}, and {particles.count} particles have too many pairs; {remedy}")
        if each["tail"]:
            tails.append(tail_of(term, particles, cell, each))
        pairs.append(term)
        methods.append((each["method"], each["skin"]))
    interactions = Interactions(tuple(pairs), tuple(many_body), fields, tuple(others), tuple(tails), tuple(methods))
    _refuse_idle_species(interactions, particles, least=2 if cell.is_free else 1)
    return interactions


def _values_of_many_body(
    settings: Settings, body: ManyBody, names: Names, particles: Particles, dimension: int
) -> Callable[[Params], dict[str, jax.Array]]:
    """Return ``params -> values`` of an interaction that is no sum of pairs."""
    if len(particles.names) > 1 or dimension not in body.dimensions:
        space = " or ".join({2: "two", 3: "three"}[number] for number in body.dimensions)
        raise settings.refuse("potential", f"= '{settings['potential']}' is of one species in {space} dimensions")
    formulas = names.of_one_species(settings, declaration_of(POTENTIAL.part(settings)).values)
    return lambda params: {name: formula.number(params) for name, formula in formulas.items()}


def _refuse_idle_species(interactions: Interactions, particles: Particles, least: int) -> None:
    """Raise if nothing acts on a species, of which at least ``least`` particles interact among themselves."""
    if interactions.many_body or interactions.others:
        return
    counts = np.bincount(particles.species, minlength=len(particles.names))
    for index, name in enumerate(particles.names):
        partners = np.arange(len(counts)) != index
        is_met = any((term.between[index] & (partners | (counts[index] >= least))).any() for term in interactions.pairs)
        if not is_met and not any(field.species[index] for field in interactions.fields):
            raise UserError(
                f"particles.{name}: nothing acts on this species; add an interaction between {name}_{name} or with "
                "another species, or a field"
            )


def images_of(
    given_images: tuple[int, ...] | None, interactions: Interactions, cell: SystemCell, params: Params
) -> tuple[int, ...] | None:
    """Return the number of interacting cells along each axis; by default those needed at the default parameters.

    Args:
        given_images: numbers given in the settings; or ``None``.
        interactions: interactions and fields.
        cell: cell of the system.
        params: default parameters.

    Raises:
        UserError: if the cell has no volume, or the block of cells would be too large.
    """
    if cell.is_free or given_images is not None:
        return given_images
    present, reach = cell.cell(params), interactions.reach(params)
    if isinstance(reach, Tracer) or isinstance(present, Tracer) or reach is None:
        return None
    refuse_no_volume(cell, params)
    widths = np.asarray(spaces.of_cell(present, cell.dimension).widths)
    needed = tuple(max(1, math.ceil(2 * float(reach) / width - 1e-9)) for width in widths)
    if math.prod(needed) == 1:
        return None
    if math.prod(needed) > MOST_IMAGES:
        raise UserError(
            f"the cutoff of {float(reach):g} needs {' x '.join(map(str, needed))} images of the cell, whose widths are "
            f"{', '.join(f'{width:g}' for width in widths)}; shorten the cutoff or enlarge the cell"
        )
    return needed
