"""Interactions and fields of a system, and the scale of its bonds."""

import dataclasses
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.compilation import compiled
from simkit.core.parts import declaration_of
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.bonded.potentials import AngularPotential
from simkit.molecular.description.bonded_energies import BondedEnergy, one_four_terms, whole_molecules
from simkit.molecular.description.embedded_atoms import EmbeddedAtomFormulas, embedded_atom_term
from simkit.molecular.description.fields import Field, curvature, slope
from simkit.molecular.description.formulas import TIME, Names, branches_of, with_converted_params
from simkit.molecular.description.pair_energies import (
    JaxMdEnergy,
    PairTerm,
    WholeTerm,
    excluded_of,
    jax_md_term,
    pair_term,
    sum_over_pairs,
    tail_of,
)
from simkit.molecular.description.particles import (
    Particles,
    SystemCell,
    in_block,
    refuse_excluded,
    refuse_no_volume,
    refuse_open,
)
from simkit.molecular.description.settings import POTENTIAL
from simkit.molecular.description.starts import Placing
from simkit.molecular.interactions.interaction import Atoms, Interaction, ManyBody, combined
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import PairPotential
from simkit.molecular.spaces import MAX_PARTICLES_IN_PAIRS, Cell

# Largest number of cells in a block of images; above it the cell is far too small for the cut-off.
MOST_IMAGES = 343

# What a part of a potential may be.
ENERGIES = (PairPotential, ManyBody, FormulaText, JaxMdEnergy, EmbeddedAtomFormulas)


@dataclasses.dataclass(frozen=True)
class Interactions:
    """Interactions and external fields of a system.

    Attributes:
        pairs: pair energies.
        many_body: interactions that are no sums of pairs.
        fields: external energies and walls.
        others: energies that need no block of cells: sums of jax-md over nearest images, and those of all images.
        tails: tail corrections beyond cut-offs, per cell.
        bonded: energies of bonds, angles and dihedrals.
        guard: no energy, but NaN where molecules are too large for the cell; ``None`` where they need not be looked at.
    """

    pairs: tuple[PairTerm, ...]
    many_body: tuple[WholeTerm, ...]
    fields: tuple[Field, ...]
    others: tuple[WholeTerm, ...]
    tails: tuple[Interaction, ...]
    bonded: tuple[BondedEnergy, ...]
    guard: Interaction | None

    @property
    def are_contacts(self) -> bool:
        """Whether all interactions are contacts, whose energies end by themselves, without fields."""
        others = (*self.many_body, *self.fields, *self.others, *self.tails, *self.bonded)
        return not others and all(term.is_contact for term in self.pairs)

    @property
    def contacts(self) -> list[int]:
        """Indices of the pair energies that end by themselves."""
        return [index for index, term in enumerate(self.pairs) if term.is_contact]

    def between(self, kinds: int) -> np.ndarray:
        """Return the mask of the pairs of species that interact, (S, S) booleans, for S ``kinds`` of particles."""
        everywhere = bool(self.many_body or self.others)
        return np.logical_or.reduce([np.full((kinds, kinds), everywhere), *(term.between for term in self.pairs)])

    @property
    def weighted(self) -> list[PairTerm | WholeTerm]:
        """Energies that act with a weight on atoms three bonds apart."""
        return [term for term in (*self.pairs, *self.others) if term.settings["one_four"] is not None]

    @property
    def parts(self) -> int:
        """Number of interactions that are summed, pair energies first."""
        every = (self.pairs, self.many_body, self.tails, self.others, self.fields, self.bonded, self.weighted)
        return sum(map(len, every)) + (self.guard is not None)

    def interaction(
        self,
        particles: Particles,
        images: tuple[int, ...] | None,
        capacity: Callable[[PairTerm, float], int | None] | None = None,
        *,
        of_particles: bool = True,
    ) -> Interaction:
        """Return the sum of all; its params may hold the time, for fields.

        Args:
            particles: particles of the system.
            images: number of interacting cells along each axis; ``None`` for one.
            capacity: ``(term, skin) -> `` neighbors for which lists of a pair energy have capacity; ``None`` for those
                of a liquid.
            of_particles: whether energies of the particles are observed, from the neighbors of all.
        """
        cells = 1 if images is None else math.prod(images)
        repeated = self.of_cells(particles, cells, capacity, images if cells > 1 else None, of_particles=of_particles)
        if images is not None and cells > 1:
            repeated = [in_block(each, images) for each in repeated]
        others = [each.interaction for each in self.others]
        bonded = [each.terms.interaction() for each in self.bonded]
        if self.guard is not None:
            bonded.append(self.guard)
        bonded += [one_four_terms(term, particles).interaction() for term in self.weighted]
        parts = [*repeated, *self.tails, *others, *bonded, *(field.interaction() for field in self.fields)]
        return parts[0] if len(parts) == 1 else combined(*parts)

    def of_cells(
        self,
        particles: Particles,
        cells: int,
        capacity: Callable[[PairTerm, float], int | None] | None = None,
        images: tuple[int, ...] | None = None,
        *,
        of_particles: bool = True,
    ) -> list[Interaction]:
        """Return the pair and many-body interactions of all particles of several cells, one cell after the other.

        Args:
            particles: particles of one cell.
            cells: number of cells.
            capacity: as for `interaction`.
            images: cells along each axis, for pairs that do not interact within one; ``None`` for one cell.
            of_particles: as for `interaction`.
        """
        pairs = []
        for term in self.pairs:
            fit = None if capacity is None else capacity(term, term.settings["skin"])
            is_whole = term.is_contact or of_particles
            pairs.append(sum_over_pairs(term, particles, cells, images, fit, is_whole=is_whole))
        return pairs + [body.in_block(cells) if body.in_block else body.interaction for body in self.many_body]

    def bonds(self, params: Params) -> list[tuple[jax.Array, jax.Array]]:
        """Return the lengths and stiffnesses of the bonds that interactions declare, one number or (K,) each."""
        declared = [term.bare.bond(**term.declared(params)) for term in self.pairs if term.bare.bond is not None]
        return declared + [each.bond(params) for each in (*self.many_body, *self.others) if each.bond is not None]

    def reach(self, params: Params) -> jax.Array | None:
        """Return the largest interaction distance of images; ``None`` if it is unlimited."""
        if any(term.cutoff is None for term in self.pairs):
            return None
        reaches = [term.reach(params) for term in (*self.pairs, *self.many_body)]
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
    bonded: tuple[BondedEnergy, ...],
) -> Interactions:
    """Return the interactions and fields that settings describe.

    Args:
        settings: settings of each interaction.
        fields: external energies and walls.
        names: names that formulas may use.
        particles: particles of the system.
        cell: cell of the system.
        params: default parameters.
        bonded: energies of bonds, angles and dihedrals.

    Raises:
        UserError: if an interaction does not fit the cell, or if nothing acts on a species.
    """
    pairs, many_body, others, tails = [], [], [], []
    for each in settings:
        energy = POTENTIAL.make(each, ENERGIES)
        if isinstance(energy, JaxMdEnergy):
            others.append(jax_md_term(each, energy, names, particles, cell, params))
            continue
        if isinstance(energy, EmbeddedAtomFormulas):
            many_body.append(embedded_atom_term(each, energy, names, particles, cell.dimension))
            continue
        if isinstance(energy, ManyBody):
            term = _many_body_term(each, energy, names, particles, cell, params)
            (others if energy.usual_cutoff else many_body).append(term)
            continue
        term = pair_term(each, energy, names, particles)
        too_many = f"{particles.count} particles have too many pairs"
        is_large = particles.count > MAX_PARTICLES_IN_PAIRS
        needs = "" if cell.is_free else "in a cell that repeats an energy must end"
        needs = needs or ("method = 'neighbor_list' needs one" if each["method"] == "neighbor_list" else "")
        needs = needs or (too_many if is_large else "")
        if (term.cutoff is None and needs) or (is_large and each["method"] == "all_pairs"):
            key = "cutoff" if term.cutoff is None else "method"
            every = f"= 'all_pairs' takes every pair, and {too_many}; leave it out"
            raise each.refuse(key, every if term.cutoff else f"is missing; {needs}: give a length")
        if each["tail"]:
            tails.append(tail_of(term, particles, cell))
        pairs.append(term)
    for term in (*pairs, *others):
        if term.settings["one_four"] is not None and not len(particles.molecules.one_four):
            raise term.settings.refuse(
                "one_four", "has no effect: no molecule has atoms three bonds apart; leave it out"
            )
    for each in others:
        if each.each is not None:
            refuse_excluded(each.settings, particles, "jax_md")
    guard = None
    if (pairs or many_body or others) and not cell.is_free:
        is_weighted = any(term.settings["one_four"] is not None for term in (*pairs, *others))
        guard = whole_molecules(particles.molecules, one_four=is_weighted)
    interactions = Interactions(tuple(pairs), tuple(many_body), fields, tuple(others), tuple(tails), bonded, guard)
    _refuse_idle_species(interactions, particles, least=2 if cell.is_free else 1)
    return interactions


def _many_body_term(
    settings: Settings, body: ManyBody, names: Names, particles: Particles, cell: SystemCell, params: Params
) -> WholeTerm:
    """Return an interaction that is no sum of pairs."""
    if body.usual_cutoff:
        refuse_open(settings, cell, "potential")
    if cell.dimension not in body.dimensions or (body.of_one_species and len(particles.names) > 1):
        space = " or ".join({2: "two", 3: "three"}[number] for number in body.dimensions)
        kinds = "of one species " if body.of_one_species else ""
        raise settings.refuse("potential", f"= '{settings['potential']}' is {kinds}in {space} dimensions")
    formulas = names.of_one_species(settings, declaration_of(POTENTIAL.part(settings)).values)
    if missing := [name for name in body.of_particles if name not in particles.numbers]:
        problem = f"= '{settings['potential']}' needs a {missing[0]} of each species, and none has one"
        raise settings.refuse("potential", f"{problem}; give the {missing[0]}s in particles")

    if body.usual_cutoff and settings["cutoff"] is not None:
        formulas["cutoff"] = names.number(settings["cutoff"])

    def values(params: Params) -> dict[str, jax.Array]:
        numbers = {name: formula.number(params) for name, formula in formulas.items()}
        if body.usual_cutoff and "cutoff" not in numbers:
            # The cut-off is no property of the energy, which does not depend on it.
            space = spaces.of_cell(jax.lax.stop_gradient(cell.cell(params)), cell.dimension)
            numbers["cutoff"] = body.usual_cutoff(space, particles.count)
        return numbers

    def in_block(cells: int) -> Interaction:
        def taken(params: Params) -> dict[str, jax.Array]:
            return values(params) | {
                name: jnp.tile(particles.of_each(name, params), cells) for name in body.of_particles
            }

        made = body.interaction
        if not body.knows_excluded:
            refuse_excluded(settings, particles)
        if not isinstance(made, Interaction):
            if cells > 1 and len(particles.excluded):
                problem = f"= '{settings['potential']}' of bonded particles needs a cell twice as wide as its cut-off"
                raise settings.refuse("potential", f"{problem}; enlarge the cell")
            excluded = excluded_of(settings, particles)
            atoms = Atoms(np.tile(particles.species, cells), particles.names, excluded)
            if body.usual_cutoff:
                if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(params)):
                    problem = f"= '{settings['potential']}' is made outside of traced functions"
                    raise settings.refuse("potential", problem)
                refuse_no_volume(cell, params)
                atoms = atoms._replace(cell=np.asarray(cell.vectors(params)), cutoff=float(values(params)["cutoff"]))
            made = made(atoms)
        return with_converted_params(made, taken)

    bond = body.bond
    return WholeTerm(
        settings,
        in_block(1),
        values,
        lambda params: body.reach(**values(params)),
        None if bond is None else lambda params: bond(**values(params)),
        in_block=in_block,
        of_two=body.of_two,
        of_particles=body.of_particles,
    )


def branches_taken(settings: Sequence[Settings], params: Params) -> tuple[str, ...]:
    """Return the paths of parameters of any shape that interactions by name take.

    Args:
        settings: settings of each interaction.
        params: the default parameters.

    Raises:
        UserError: if there are none at a path.
    """
    declared = ((each, declaration_of(POTENTIAL.part(each)).values) for each in settings)
    return tuple(path for each, values in declared for path in branches_of(each, values, params))


def values_taken(settings: Sequence[Settings]) -> set[str]:
    """Return the names of values of the particles that interactions by name take.

    Args:
        settings: settings of each interaction.
    """
    names: set[str] = set()
    for each in settings:
        energy = POTENTIAL.make(each, ENERGIES)
        if isinstance(energy, ManyBody):
            names.update(energy.of_particles)
        else:
            declared = declaration_of(POTENTIAL.part(each)).values
            names.update(name for name in declared if each["mixing"] or name.endswith(("_i", "_j")))
    return names


def _refuse_idle_species(interactions: Interactions, particles: Particles, least: int) -> None:
    """Raise if nothing acts on a species, of which at least ``least`` particles interact among themselves."""
    if interactions.many_body or interactions.others:
        return
    counts = np.bincount(particles.species, minlength=len(particles.names))
    for index, name in enumerate(particles.names):
        partners = np.arange(len(counts)) != index
        is_met = any((term.between[index] & (partners | (counts[index] >= least))).any() for term in interactions.pairs)
        is_bonded = any((particles.species[each.terms.members] == index).any() for each in interactions.bonded)
        if not (is_met or is_bonded) and not any(field.species[index] for field in interactions.fields):
            raise UserError(
                f"particles.{name}: nothing acts on this species; add an interaction between {name}_{name} or with "
                "another species, a bond, or a field"
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
    if given_images is not None and math.prod(given_images) > MOST_IMAGES:
        problem = f"{list(given_images)} are {math.prod(given_images)} cells"
        raise UserError(f"cell.images = {problem}, more than {MOST_IMAGES}; lower them")
    if cell.is_free or given_images is not None:
        return given_images
    present, reach = cell.cell(params), interactions.reach(params)
    if isinstance(reach, Tracer) or isinstance(present, Tracer) or reach is None:
        return None
    refuse_no_volume(cell, params)
    widths = np.asarray(compiled(lambda present: spaces.of_cell(present, cell.dimension).widths)(present))
    needed = tuple(max(1, math.ceil(2 * float(reach) / width - 1e-9)) for width in widths)
    if math.prod(needed) == 1:
        return None
    if math.prod(needed) > MOST_IMAGES:
        raise UserError(
            f"the cutoff of {float(reach):g} needs {' x '.join(map(str, needed))} images of the cell, whose widths are "
            f"{', '.join(f'{width:g}' for width in widths)}; shorten the cutoff or enlarge the cell"
        )
    return needed


# Widths of a supercell in reaches of an energy: force constants of pairs end at one of them, those of many-body
# energies, whose forces depend on the neighbors of neighbors, at two; and room for a cell that shrinks.
WIDE_FOR_PAIRS, WIDE_FOR_MANY, ROOM = 2, 4, 1.1
# Largest number of particles of a supercell.
MOST_IN_SUPERCELL = 50_000


def supercell_of(
    settings: Settings, interactions: Interactions, cell: SystemCell, params: Params, count: int
) -> tuple[int, ...]:
    """Return the cells along each axis of the supercell of phonons; by default those needed at the default parameters.

    Args:
        settings: settings of the phonons.
        interactions: interactions and fields.
        cell: cell of the system.
        params: default parameters.
        count: number of particles.

    Raises:
        UserError: if the system has no phonons, or the supercell would be too large.
    """
    short = "of pair and many-body energies that end at a cut-off"
    reach = interactions.reach(params)
    for problem, holds in (
        ("need a cell that repeats along all axes", cell.is_closed),
        ("are those without fields", not interactions.fields),
        (f"are those {short}, not of charges or jax-md", not interactions.others),
        (f"are those {short}, not of molecules", not interactions.bonded and interactions.guard is None),
        (f"are those {short}", reach is not None),
    ):
        if not holds:
            raise UserError(f"{settings.where} {problem}; leave them out")
    repeats = settings["repeats"]
    if repeats is None:
        if isinstance(reach, Tracer) or isinstance(present := cell.cell(params), Tracer):
            raise settings.refuse("repeats", "is missing where parameters are traced; give the number of cells")
        refuse_no_volume(cell, params)
        reaches = [(WIDE_FOR_PAIRS, each) for each in interactions.pairs]
        reaches += [(WIDE_FOR_MANY, each) for each in interactions.many_body]
        needed = ROOM * max(share * float(each.reach(params)) for share, each in reaches)
        widths = np.asarray(compiled(lambda present: spaces.of_cell(present, cell.dimension).widths)(present))
        repeats = tuple(math.ceil(needed / width) for width in widths.tolist())
    if count * math.prod(repeats) > MOST_IN_SUPERCELL:
        problem = f"= {' x '.join(map(str, repeats))} cells hold more than {MOST_IN_SUPERCELL} particles; lower it"
        raise settings.refuse("repeats", problem)
    return repeats


# Distances searched for the minimum of an energy by expression, in units of the spacing of the particles, and
# iterations of its refinement.
NEAREST, FURTHEST, DISTANCES, ITERATIONS = 0.1, 30.0, 108, 5
# Distance of close pairs in units of the spacing, where the first stiffness of a repulsion by expression is taken.
CLOSE = 0.7
# Largest number of particles whose nearest neighbors are measured.
MEASURED = 16
type StiffnessAt = Callable[[jax.Array, Cell, Params], jax.Array]


def scale_of(
    settings: Settings | None,
    names: Names,
    interactions: Interactions,
    placing: Placing,
) -> tuple[Callable[[Params], Scale], StiffnessAt | None]:
    """Return ``params -> Scale`` and the stiffness ``(position, cell, params) -> stiffness`` of an arrangement.

    The scale is that of the settings, or else the stiffest bond of all interactions. Potentials by name declare theirs;
    of an energy by expression it is the minimum near the spacing of the particles or, of a repulsion, that spacing.
    Without interactions the stiffness is the curvature of the fields at the starting positions.

    Where particles start far too close, or deep in a wall, repulsions by expression and fields have enormous
    curvatures. So forces are judged by the stiffness of the present arrangement; ``None`` where all bonds are declared
    and there are no fields.

    Args:
        settings: table with ``length`` and ``stiffness``; ``None`` without.
        names: names that formulas may use.
        interactions: interactions and fields.
        placing: starting positions.
    """
    if settings is not None:
        written = names.number(settings["length"]), names.number(settings["stiffness"])
        return lambda params: Scale(*(each.number(jax.lax.stop_gradient(params)) for each in written)), None
    typed = [term for term in interactions.pairs if term.bare.bond is None]
    lengths = [each for each in interactions.bonded if isinstance(each.potential, PairPotential)]
    angular = [each for each in interactions.bonded if isinstance(each.potential, AngularPotential)]
    is_typed = bool(typed) or any(each.potential.bond is None for each in lengths)  # type: ignore[union-attr]

    def bonds(params: Params, near: jax.Array, close: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        of_pairs = [*interactions.bonds(params), *(_bonds_of_expression(term, params, near, close) for term in typed)]
        of_bonds = [_bonds_of_values(each.potential, each.values(params), near, close) for each in lengths]  # type: ignore[arg-type]
        # A bond of length zero, as of an ideal chain, is a spring over the spacing of the particles.
        of_bonds = [(jnp.where(length > 0, length, near), stiffness) for length, stiffness in of_bonds]
        arm = jnp.min(jnp.stack([near, *(jnp.min(length) for length, _ in of_bonds)]))
        return [*of_pairs, *of_bonds, *((arm, each.stiffnesses(params, arm)) for each in angular)]

    def of_fields(position: jax.Array, params: Params) -> jax.Array:
        curvatures = curvature(interactions.fields, params, position, ~placing.frozen)
        return _lower_quartile(curvatures)

    def scale(params: Params) -> Scale:
        params = jax.lax.stop_gradient(params)
        near = placing.spacing(params)
        candidates = bonds(params, near, CLOSE * near)
        if not candidates:
            timed = {TIME: jnp.zeros_like(near), **params}
            places = jnp.asarray(placing.sample(params), near.dtype)
            stiffness = of_fields(places, timed)
            flat = slope(interactions.fields, timed, places, ~placing.frozen) / near
            candidates = [(near, jnp.where(stiffness > 0, stiffness, flat))]
        candidates = [jnp.broadcast_arrays(*each) for each in candidates]
        sizes, stiffnesses = (
            jnp.concatenate([jnp.ravel(x) for x in column]) for column in zip(*candidates, strict=True)
        )
        stiffest = jnp.argmax(stiffnesses)
        stiffness = stiffnesses[stiffest]
        return Scale(sizes[stiffest], jnp.where(stiffness > 0, stiffness, jnp.ones_like(stiffness)))

    # A program calls it tens of times; as a compiled function it is traced once.
    compiled = jax.jit(scale)

    def stiffness_at(position: jax.Array, cell: Cell, params: Params) -> jax.Array:
        position, params = jax.lax.stop_gradient((position, params))
        near, padding = placing.spacing(params), placing.places.padding
        position = position if padding is None else padding.hidden(position, params)
        close = _nearest_distance(position, spaces.of_cell(cell, position.shape[1]), near)
        candidates = [jnp.max(stiffness) for _, stiffness in bonds(params, near, close)]
        if interactions.fields:
            candidates.append(of_fields(spaces.of_cell(cell, position.shape[1]).wrap(position), params))
        stiffness = jnp.max(jnp.stack(candidates))
        return jnp.where(stiffness > 0, stiffness, compiled(params).stiffness)

    return compiled, stiffness_at if is_typed or interactions.fields else None


def _bonds_of_expression(
    term: PairTerm, params: Params, near: jax.Array, close: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return lengths and stiffnesses of an energy by expression, (K,) each, one for each pair of species.

    Args:
        term: the energy.
        params: parameters.
        near: distance about which its minimum is searched, and the length of a repulsion.
        close: distance at which the stiffness of a repulsion is taken.
    """
    return _bonds_of_values(term.bare, term.of_pairs(params, *term.representatives()), near, close)


def _bonds_of_values(
    potential: PairPotential, values: dict[str, jax.Array], near: jax.Array, close: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return lengths and stiffnesses of an energy, of each of its values, (K,), or one number of each."""
    if potential.bond is not None:
        return potential.bond(**values)
    axes = {name: 0 if jnp.ndim(value) else None for name, value in values.items()}
    if not any(axis == 0 for axis in axes.values()):
        return _bond(potential, values, near, close)
    return jax.vmap(lambda values: _bond(potential, values, near, close), in_axes=(axes,))(values)


def _bond(
    potential: PairPotential, values: dict[str, jax.Array], near: jax.Array, close: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def force(r: jax.Array) -> jax.Array:
        return potential.force(r, **values)

    def force_and_curvature(r: jax.Array) -> tuple[jax.Array, jax.Array]:
        push, change = jax.jvp(force, (r,), (jnp.ones_like(r),))
        return push, -change

    distances = near * jnp.asarray(np.geomspace(NEAREST, FURTHEST, DISTANCES), near.dtype)
    energies = potential.energy(distances, **values)
    lowest = jnp.argmin(jnp.where(jnp.isfinite(energies), energies, jnp.inf)[1:-1]) + 1
    low, high = distances[lowest - 1], distances[lowest + 1]
    is_interior = (energies[lowest] < energies[lowest - 1]) & (energies[lowest] < energies[lowest + 1])

    def refined(_: int, r: jax.Array) -> jax.Array:
        push, bend = force_and_curvature(r)
        return jnp.where(bend > 0, jnp.clip(r + push / bend, low, high), r)

    length = jax.lax.fori_loop(0, ITERATIONS, refined, distances[lowest])
    at_minimum, at_close = force_and_curvature(length)[1], jnp.abs(force_and_curvature(close)[1])
    everywhere = jnp.abs(force_and_curvature(distances)[1])
    usable = jnp.isfinite(at_close) & (at_close > 0)
    repulsive = jnp.where(usable, at_close, _lower_quartile(jnp.where(jnp.isfinite(everywhere), everywhere, 0)))
    is_bond = is_interior & (at_minimum > 0)
    return jnp.where(is_bond, length, near), jnp.where(is_bond, at_minimum, repulsive)


def _nearest_distance(position: jax.Array, space: spaces.Space, usual: jax.Array) -> jax.Array:
    """Return the median distance to the nearest neighbor, of some particles; ``usual`` where there is none."""
    count = len(position)
    if count == 1:
        return usual
    chosen = np.unique(np.linspace(0, count - 1, min(count, MEASURED)).astype(int))
    squared = jnp.sum(spaces.displacement(space, position[chosen][:, None], position[None]) ** 2, axis=-1)
    squared = jnp.where((chosen[:, None] == np.arange(count)) | jnp.isnan(squared), jnp.inf, squared)
    # Of absent particles, at NaN, there is no distance.
    nearest = jnp.min(squared, axis=1)
    nearest = jnp.sqrt(jnp.nanmedian(jnp.where(jnp.isinf(nearest), jnp.nan, nearest)))
    return jnp.where(jnp.isfinite(nearest) & (nearest > 0), nearest, usual)


def _lower_quartile(numbers: jax.Array) -> jax.Array:
    """Return the lower quartile of the positive numbers, 0 where there are none."""
    count = jnp.sum(numbers > 0)
    return jnp.where(count > 0, jnp.sort(jnp.where(numbers > 0, numbers, jnp.inf))[count // 4], 0)
