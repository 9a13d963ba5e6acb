"""Energies of pairs: potentials by name, by expression and of jax-md, with cut-offs and tail corrections."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.expressions.syntax import parse
from simkit.core.formulation import computed_once
from simkit.core.parts import declaration_of, part
from simkit.core.settings import FormulaText, Settings, formula, word
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.molecular.description.formulas import (
    PAIR,
    Names,
    Numbers,
    named,
    refuse_idle,
    refuse_mixing,
    with_converted_params,
)
from simkit.molecular.description.particles import Particles, SystemCell
from simkit.molecular.description.settings import POTENTIAL
from simkit.molecular.interactions.interaction import Interaction, viewed
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction, uniform_tail
from simkit.molecular.neighbors.pair_sums import PairParameter, PerParticle
from simkit.molecular.potentials import PairPotential, pair_potential
from simkit.molecular.potentials.pair import ENDINGS, MIXING, geometric_mean
from simkit.molecular.potentials.soft_sphere import OVERLAP

AXES = ("row", "column")
BETWEEN = "is between"
# Particles looked at for the scale of bonds, where each has values of its own.
SAMPLE = 64
# Neighbors of a particle for which a list of some particles has capacity at least.
FEW = 16


@dataclasses.dataclass(frozen=True)
class PairTerm:
    """One energy of pairs.

    Attributes:
        settings: its settings.
        energy: U as a formula of r, or ``None`` for a potential by name.
        bare: U without a cut-off.
        potential: U with its cut-off, and zero for species that it does not act between.
        parameters: ``params -> {name: number, (S, S), or PerParticle}`` of the potential.
        cutoff: ``params -> `` distance at which U ends, number or (S, S); ``None`` if it does not end.
        ends: whether the cut-off truncates U, which would otherwise extend beyond it.
        between: mask of the pairs of species that it acts between, (S, S) booleans.
        species: of each particle, (N,).
        is_individual: whether U takes values that are one number a particle.
        is_checked: whether its values are looked at before a run: of an expression, and of another package.
    """

    settings: Settings
    energy: Formula | None
    bare: PairPotential
    potential: PairPotential
    parameters: Callable[[Params], dict[str, PairParameter]]
    cutoff: Callable[[Params], jax.Array] | None
    ends: bool
    between: np.ndarray
    species: np.ndarray
    is_individual: bool
    is_checked: bool

    @property
    def is_contact(self) -> bool:
        """Whether the energy ends by itself where a bond ends, as that of soft spheres: pairs touch or do not."""
        return self.cutoff is not None and not self.ends and self.bare.bond is not None

    @property
    def ended(self) -> PairPotential:
        """U with its cut-off."""
        return ENDINGS[self.settings["ending"]](self.bare) if self.ends else self.bare

    def reach(self, params: Params) -> jax.Array:
        """Return the distance beyond which no pair interacts, one number."""
        assert self.cutoff is not None  # asked for only where there is one
        cutoff = self.cutoff(params)
        if cutoff.ndim:
            cutoff = jnp.max(cutoff if self.between.all() else jnp.where(jnp.asarray(self.between), cutoff, 0))
        return computed_once(cutoff)

    def excluded(self, particles: Particles) -> np.ndarray:
        """Return the pairs of particles that the sum leaves out, (K, 2)."""
        return excluded_of(self.settings, particles)

    def declared(self, params: Params) -> dict[str, jax.Array]:
        """Return the values of U that its part declares, of representative pairs."""
        return self.of_pairs(params, *self.representatives())

    def of_pairs(self, params: Params, first: np.ndarray, second: np.ndarray) -> dict[str, jax.Array]:
        """Return the parameters of U without a cut-off for pairs of particles: (K,), or one number for all.

        Args:
            params: parameters of the system.
            first: index of one particle of each pair, (K,).
            second: index of the other, (K,).
        """
        ends = ("cutoff", "switch_on", BETWEEN)
        values = {name: value for name, value in self.parameters(params).items() if name not in ends}
        return at_pairs(values, first, second, self.species)

    def representatives(self) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of particles that interact, (K,) each: one of each two species, and a sample of all."""
        members = np.unique(self.species, return_index=True)[1]
        first, second = (members[kinds] for kinds in np.nonzero(self.between))
        if not self.is_individual:
            return first, second
        count = len(self.species)
        sample = np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int))
        one, other = np.append(sample, sample[:-1]), np.append(sample, sample[1:])
        meet = self.between[self.species[one], self.species[other]]
        return np.append(first, one[meet]), np.append(second, other[meet])


def excluded_of(settings: Settings, particles: Particles) -> np.ndarray:
    """Return the pairs of particles that an energy leaves out, (K, 2); 1-4 pairs with a weight are added as terms."""
    if settings["one_four"] is None:
        return particles.excluded
    return np.unique(np.concatenate([particles.excluded, particles.molecules.one_four]), axis=0)


def at_pairs(
    values: Mapping[str, PairParameter],
    first: np.ndarray | jax.Array,
    second: np.ndarray | jax.Array,
    species: np.ndarray,
) -> dict[str, jax.Array]:
    """Return parameters at pairs of particles given by index, of the shape of the indices, or one number for all.

    Args:
        values: by name.
        first: index of one particle of each pair.
        second: index of the other.
        species: of each particle, (N,).
    """
    kinds = jnp.asarray(species)

    def at(value: PairParameter) -> jax.Array:
        if isinstance(value, PerParticle):
            return value.mix(value.value[first], value.value[second])
        return value[kinds[first], kinds[second]] if jnp.ndim(value) else value

    return {name: at(value) for name, value in values.items()}


@part(
    keys={
        "energy": formula("energy at the distance r, of the values, tables and parameters", unit="energy", takes=("r",))
    },
    excludes={"mixing": "which takes values of both particles by name, as in sqrt(epsilon_i*epsilon_j)"},
)
def energy_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the distance ``r``, which a scenario file gives in place of a name."""
    return energy


def pair_term(
    settings: Settings,
    energy: PairPotential | FormulaText,
    names: Names,
    particles: Particles,
    taken: tuple[str, ...] = (),
) -> PairTerm:
    """Return an energy of pairs from its settings.

    Args:
        settings: of the interaction.
        energy: a potential, or an expression of the distance.
        names: what formulas may take.
        particles: whose values they may take.
        taken: values of the interaction that its other formulas take.

    Raises:
        UserError: if settings contradict each other or name what there is not.
    """
    values = {name: _value(text, settings, name, names) for name, text in settings["values"].items()}
    expression = None
    if isinstance(energy, FormulaText):
        expression = names.scope.formula(energy, ("r", *_offered(names, values)))
        refuse_mixing(expression)
        expression.needing("r")
        bare, defaults = (
            pair_potential(function_of(expression, "r")),
            {name: None for name in expression.taken if name != "r"},
        )
    else:
        declared = declaration_of(POTENTIAL.part(settings)).values
        bare, defaults = energy, {name: setting.default for name, setting in declared.items()}
        with POTENTIAL.parts.blamed(settings["potential"]):
            one = jax.ShapeDtypeStruct((), jnp.result_type(float))
            jax.eval_shape(lambda r, values: bare.force(r, **values), one, dict.fromkeys(declared, one))
    cutoff_names = parse(settings["cutoff"].text, settings["cutoff"].where).names if settings["cutoff"] else ()
    refuse_idle(settings, [*defaults, *cutoff_names, *taken])
    of_particles = {name: end for name in defaults if name not in values and (end := _end(name, names))}
    mixed = _mixed(settings, [name for name in defaults if name not in values], names)
    of_particles |= {name: (name, mix) for name, mix in mixed.items() if name in particles.individual}
    sources = {
        name: _mixed_table(particles, name, mixed[name])
        if name in mixed
        else _source(name, default, values, names, settings)
        for name, default in defaults.items()
        if name not in of_particles
    }
    is_individual = any(name in particles.individual for name, _ in of_particles.values())
    cutoff, ends = _cutoff(settings, names, values, sources, bare), settings["cutoff"] is not None
    between = _between(settings, names)
    potential = ENDINGS[settings["ending"]](bare) if ends else bare
    if not between.all():
        potential = _only_between(potential)

    def parameters(params: Params) -> dict[str, PairParameter]:
        numbers: dict[str, Any] = {name: source(params) for name, source in sources.items()}
        numbers |= {name: particles.of_each(value, params) for name, (value, _) in of_particles.items()}
        if ends and cutoff is not None:
            numbers["cutoff"] = cutoff(params)
            if settings["ending"] == "switch":
                numbers["switch_on"] = settings["switch_on"] * numbers["cutoff"]
        if not between.all():
            numbers[BETWEEN] = jnp.asarray(between, precision_of(params))
        # Without the barrier some programs fuse these products into sums over pairs, which changes their rounding.
        numbers = computed_once(numbers)
        pairwise = {name: PerParticle(numbers[name], mix) for name, (_, mix) in of_particles.items()}
        return numbers | pairwise

    return PairTerm(
        settings,
        expression,
        bare,
        potential,
        parameters,
        cutoff,
        ends,
        between,
        particles.species,
        is_individual,
        is_checked=expression is not None or settings["potential"] not in POTENTIAL.parts.own,
    )


type Value = Callable[[Params], jax.Array]
type Mix = Callable[[jax.Array, jax.Array], jax.Array]


def _mixed(settings: Settings, declared: list[str], names: Names) -> dict[str, Mix]:
    """Return the values of an energy that are mixed from those of both species, each with its mean."""
    if settings["mixing"] is None:
        return {}
    units = {name: each.unit for name, each in declaration_of(POTENTIAL.part(settings)).values.items()}
    of_lengths = MIXING[settings["mixing"]]
    mixed = {
        name: of_lengths if units[name] == "length" else geometric_mean for name in declared if name in names.values
    }
    if not mixed:
        problem = f"has no effect: no species has {' or '.join(declared)} among its values; give them in particles"
        raise settings.refuse("mixing", problem)
    return mixed


def _mixed_table(particles: Particles, name: str, mix: Mix) -> Value:
    def table(params: Params) -> jax.Array:
        each = particles.of_species(name, params)
        return mix(each[:, None], each[None, :])

    return table


def _offered(names: Names, values: Mapping[str, Value]) -> list[str]:
    """Return the names that the energy of a pair may take besides parameters."""
    ends = [f"{name}{end}" for name in names.values for end in ("_i", "_j")]
    return [*values, *names.tables, *ends]


def _value(written: FormulaText | dict[str, FormulaText], settings: Settings, name: str, names: Names) -> Value:
    """Return a number, or a table by pair of species, as a function of the parameters."""
    if isinstance(written, FormulaText):
        return _of_tables(written, {}, names)
    where = f"{settings.path('values')}.{name}"
    count = len(names.species)
    formulas: dict[tuple[int, ...], Formula] = {}
    for pair, entry in written.items():
        formulas[tuple(sorted(names.pairs(pair, where)))] = names.number(entry)
    needed = {tuple(sorted(pair)) for pair in np.argwhere(_between(settings, names)).tolist()}
    missing = ["_".join(names.species[kind] for kind in pair) for pair in sorted(needed - formulas.keys())]
    if missing or len(formulas) < len(written):
        problem = f"has no {missing[0]}; give it" if missing else "has a pair twice; keep one"
        raise UserError(f"{where} {problem}, or leave the pair out of {settings.path('between')}")

    order = {pair: place for place, pair in enumerate(formulas)}
    # One for pairs of species without interaction, so that divisions there give no NaN in derivatives.
    entries = Numbers([*formulas.values(), names.number(FormulaText("1.0", where))])
    places = np.array([[order.get((min(a, b), max(a, b)), -1) for b in range(count)] for a in range(count)])
    return lambda params: entries(params)[places]


def _end(name: str, names: Names) -> tuple[str, Mix] | None:
    """Return the value of the particles that a name in the energy of a pair takes, and which of both; or ``None``."""
    for suffix, mix in (("_i", _first), ("_j", _second)):
        if name not in names.tables and name.endswith(suffix) and name.removesuffix(suffix) in names.values:
            return name.removesuffix(suffix), mix
    return None


def _first(of_first: jax.Array, of_second: jax.Array) -> jax.Array:
    return jnp.broadcast_arrays(of_first, of_second)[0]


def _second(of_first: jax.Array, of_second: jax.Array) -> jax.Array:
    return jnp.broadcast_arrays(of_first, of_second)[1]


def _source(name: str, default: Any, values: Mapping[str, Value], names: Names, settings: Settings) -> Value:
    """Return the value of a name in an energy: of the interaction, a table, or a parameter."""
    if name in values:
        return values[name]
    if name in names.tables:
        return lambda params: names.table_values(params)[name]
    return names.number(names.usual_value(settings, name, default)).number


def function_of(formula: Formula, variable: str) -> Callable[..., jax.Array]:
    """Return a formula as a function of a variable, elementwise, and of what else it takes, by name.

    Args:
        formula: the formula.
        variable: name of the variable, such as ``r``.
    """

    def value(x: jax.Array, **parameters: jax.Array) -> jax.Array:
        arrays = {name: named(number, AXES) for name, number in parameters.items()}
        # Cast to the type of the parameters, so that precision is kept.
        result = formula.of({}, {**arrays, variable: named(x, AXES)})
        return jnp.asarray(result.array, jnp.result_type(x))

    return value


def _cutoff(
    settings: Settings,
    names: Names,
    values: Mapping[str, Value],
    sources: Mapping[str, Value],
    potential: PairPotential,
) -> Value | None:
    """Return the distance at which the energy ends, by itself or by its setting; ``None`` if it does not."""
    reach = potential.reach
    if settings["cutoff"] is None:
        return reach and (lambda params: reach(**{name: source(params) for name, source in sources.items()}))
    return _of_tables(settings["cutoff"], values, names)


def _of_tables(text: FormulaText, values: Mapping[str, Value], names: Names) -> Value:
    """Return a formula of values and tables, one number or (S, S), as a function of the parameters."""
    formula = names.scope.formula(text, [*values, *names.tables], names.tables)

    def number(params: Params) -> jax.Array:
        arrays = {name: named(table, PAIR) for name, table in names.table_values(params).items()}
        arrays |= {name: named(value(params), PAIR) for name, value in values.items() if name in formula.taken}
        return jnp.asarray(formula.of(params, arrays).array, precision_of(params))

    return number


def _between(settings: Settings, names: Names) -> np.ndarray:
    count, entry = len(names.species), settings["between"]
    if entry is None:
        return np.ones((count, count), bool)
    mask = np.zeros((count, count), bool)
    for text in entry:
        first, second = names.pairs(text, settings.path("between"))
        mask[first, second] = mask[second, first] = True
    return mask


def _only_between(potential: PairPotential) -> PairPotential:
    """Return a potential that is zero where its parameter `BETWEEN` is."""

    def limited(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        def value(distance: jax.Array, **parameters: Any) -> jax.Array:
            is_between = parameters.pop(BETWEEN) > 0
            # An excluded pair may be at distance zero, where the energy has no derivative.
            return jnp.where(is_between, function(jnp.where(is_between, distance, 1), **parameters), 0)

        return value

    return PairPotential(energy=limited(potential.energy), force=limited(potential.force))


_LENGTHS = {"epsilon": formula("energy scale", unit="energy"), "sigma": formula("length scale", unit="length")}
_RANGED = _LENGTHS | {"alpha": formula("inverse range of a Morse potential, 1 / length; exponent of soft spheres")}
# Values of the functions NAME_pair of jax_md.energy, and whether they end at a cut-off.
ENERGIES = {"lennard_jones": (_LENGTHS, True), "morse": (_RANGED, True), "soft_sphere": (_RANGED, False)}
# Length and stiffness of their bonds.
BONDS: dict[str, Callable[..., tuple[jax.Array, jax.Array]]] = {
    "lennard_jones": lambda epsilon, sigma: (2 ** (1 / 6) * sigma, 72 / 2 ** (1 / 3) * epsilon / sigma**2),
    "morse": lambda epsilon, sigma, alpha: (sigma, 2 * epsilon * alpha**2),
    "soft_sphere": lambda epsilon, sigma, alpha: (sigma, epsilon * (alpha - 1) * OVERLAP ** (alpha - 2) / sigma**2),
}


def of_images(
    term: PairTerm, cells: int, members: np.ndarray | None = None
) -> Callable[[Params], dict[str, PairParameter]]:
    """Return the parameters of a pair energy in a block of cells, whose particles are those of one, cell by cell.

    Args:
        term: the energy.
        cells: their number.
        members: particles of a cell that are taken; ``None`` for all.
    """
    taken = slice(None) if members is None else members

    def tiled(value: PairParameter) -> PairParameter:
        return value._replace(value=jnp.tile(value.value[taken], cells)) if isinstance(value, PerParticle) else value

    return lambda params: {name: tiled(value) for name, value in term.parameters(params).items()}


def sum_over_pairs(
    term: PairTerm,
    particles: Particles,
    cells: int,
    images: tuple[int, ...] | None,
    capacity: int | None,
    *,
    is_whole: bool,
) -> Interaction:
    """Return the interaction of a pair energy, of all particles of one cell or of several, cell by cell.

    Particles of species on which the energy does not act are left out of the sum: of rigid water, whose oxygen atoms
    alone attract each other, eight pairs of nine.

    Args:
        term: the energy.
        particles: of one cell.
        cells: number of cells.
        images: cells of a block along each axis; ``None`` for one cell, and for cells that make a larger one.
        capacity: neighbors for which lists have capacity, of all particles; ``None`` for those of a liquid.
        is_whole: whether neighbors are those of all particles.
    """
    acts = term.between.any(axis=1)
    members = np.flatnonzero(np.full(particles.count, is_whole) | acts[particles.species])
    everywhere = np.concatenate([members + cell * particles.count for cell in range(cells)])
    is_part = len(members) < particles.count
    is_alike = is_part and term.between[np.ix_(acts, acts)].all()
    excluded = term.excluded(particles)
    if is_part:
        excluded = np.searchsorted(members, excluded[np.isin(excluded, members).all(axis=1)])
        capacity = capacity and max(FEW, math.ceil(capacity * len(members) / particles.count))

    of_members = of_images(term, cells, members)

    def parameters(params: Params) -> dict[str, PairParameter]:
        values = of_members(params)
        return {name: value for name, value in values.items() if not (is_alike and name == BETWEEN)}

    summed = pair_interaction(
        term.ended if is_alike else term.potential,
        cutoff=None if term.cutoff is None else term.reach,
        parameters=parameters,
        species=np.tile(particles.species[members], cells).tolist(),
        method=term.settings["method"],
        skin=term.settings["skin"],
        capacity=capacity,
        excluded=excluded,
        images=images,
    )
    if not is_part:
        return summed
    return viewed(
        summed,
        # Without particles where the size of a cell alone is asked for.
        lambda position, cell, params: (position[everywhere] if len(position) else position, cell, params),
        force=lambda vectors, count: jnp.zeros((count, vectors.shape[1]), vectors.dtype).at[everywhere].set(vectors),
    )


@dataclasses.dataclass(frozen=True)
class JaxMdEnergy:
    """A pair energy of jax-md that a scenario file names.

    Attributes:
        name: as in ``jax_md.energy.NAME_pair``.
    """

    name: str


_SUM = "which is a sum of jax-md over all pairs"


@part(
    keys={"jax_md": word("a pair energy of jax-md by name", tuple(ENERGIES))},
    values=_RANGED,
    excludes=dict.fromkeys(("between", "tail", "skin", "method", "ending", "mixing", "one_four"), _SUM),
)
def jax_md(jax_md: str) -> JaxMdEnergy:
    """Return a pair energy of jax-md."""
    return JaxMdEnergy(jax_md)


@dataclasses.dataclass(frozen=True)
class WholeTerm:
    """One interaction that is no sum over pairs, or such a sum of another package.

    Attributes:
        settings: its settings.
        interaction: of the particles.
        declared: ``params -> values`` that its part declares.
        reach: ``params -> `` distance beyond which no pair interacts.
        bond: ``params -> `` length and stiffness of a bond; ``None`` if these are not known.
        each: half the pair energies of each particle, (N,), in place of their sum; ``None`` if these are not known.
        pairs: energies of pairs that it is made of.
        in_block: ``cells -> `` interaction of as many cells in a block, cell by cell; ``None`` if `interaction` serves
            any number of particles.
        of_two: energy of two particles alone, see `simkit.molecular.interactions.ManyBody`.
        of_particles: names of the numbers of the particles that it takes.
    """

    settings: Settings
    interaction: Interaction
    declared: Callable[[Params], dict[str, jax.Array]]
    reach: Callable[[Params], jax.Array]
    bond: Callable[[Params], tuple[jax.Array, jax.Array]] | None
    each: Interaction | None = None
    pairs: tuple[PairTerm, ...] = ()
    in_block: Callable[[int], Interaction] | None = None
    of_two: Callable[..., jax.Array] | None = None
    of_particles: tuple[str, ...] = ()


def jax_md_term(
    settings: Settings, energy: JaxMdEnergy, names: Names, particles: Particles, cell: SystemCell, params: Params
) -> WholeTerm:
    """Return an energy of jax-md, over all pairs, each at its nearest image.

    Args:
        settings: of the interaction.
        energy: which energy.
        names: what formulas may take.
        particles: of one species.
        cell: free space, or one that repeats along all axes.
        params: default parameters, of which the cut-off is taken.

    Raises:
        UserError: if the energy does not fit the species or the cell, or a value is missing.
    """
    if len(particles.names) > 1 or not (cell.is_free or cell.is_closed):
        problem = "needs free space or a cell that repeats along all axes, and one species; write it as an expression"
        raise settings.refuse("jax_md", problem)
    declared, has_end = ENERGIES[energy.name]
    formulas, ends = names.of_one_species(settings, declared), {}
    cutoff = None if settings["cutoff"] is None else names.number(settings["cutoff"])
    if has_end != (cutoff is not None) or (cutoff is not None and cutoff.taken):
        problem = "of an energy of jax-md is a plain number; write one" if has_end else "has no effect; leave it out"
        raise settings.refuse("cutoff", problem)
    if cutoff is not None:
        end = float(cutoff.number(params))
        ends = {"r_cutoff": end, "r_onset": settings["switch_on"] * end}
    # The import takes seconds and issues warnings about other packages.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax_md
    box = None if cell.is_free else np.ones(cell.dimension)
    displacement, _ = jax_md.space.free() if box is None else jax_md.space.periodic(jnp.asarray(box, float))
    # jax-md converts values that are not JAX arrays to float32, and later values to the same type.
    one = jnp.asarray(1.0, dtype=float)
    make = getattr(jax_md.energy, f"{energy.name}_pair")

    def values(params: Params) -> dict[str, jax.Array]:
        return {name: each.number(params) for name, each in formulas.items()}

    def summed(**options: bool) -> Interaction:
        function = make(displacement, **dict.fromkeys(declared, one), **ends, **options)
        return with_converted_params(from_jax_md(function, box=box, parameters=list(declared)), values)

    end, sigma, bond = ends.get("r_cutoff"), formulas["sigma"], BONDS[energy.name]
    return WholeTerm(
        settings,
        summed(),
        values,
        lambda params: sigma.number(params) if end is None else jnp.asarray(end, precision_of(params)),
        lambda params: bond(**values(params)),
        summed(per_particle=True),
    )


NODES, WEIGHTS = (array.tolist() for array in np.polynomial.legendre.leggauss(48))


def tail_of(term: PairTerm, particles: Particles, cell: SystemCell) -> Interaction:
    """Return the energy and pressure that the cut-off of a pair energy neglects.

    ``2 pi / V sum_ab N_a N_b M_ab`` with ``M_ab = integral of (U - U_ended) r^2 dr`` from where a switch begins to
    infinity; U must fall off faster than r^-3.

    Args:
        term: the pair energy.
        particles: the particles, with the number of each species.
        cell: cell of the system.

    Raises:
        UserError: if the energy has no end, or one that changes it everywhere, or the cell is no periodic one in space.
    """
    is_ended = term.ends and term.settings["ending"] in ("switch", "truncate") and not term.is_individual
    if cell.dimension != 3 or not cell.is_closed or not is_ended:
        problem = (
            "needs a cell that repeats along three axes, a cutoff with the ending 'switch' or 'truncate', and values "
            "of species instead of one number a particle; give these, or leave it out"
        )
        raise term.settings.refuse("tail", problem)
    shares = np.bincount(particles.species, minlength=len(particles.names)) / particles.count
    first, second = term.representatives()
    kinds = particles.species[first], particles.species[second]
    assert term.cutoff is not None  # it ends

    def moment(params: Params) -> jax.Array:
        cutoff, values = term.cutoff(params), term.of_pairs(params, first, second)  # type: ignore[misc]
        cutoff = jnp.broadcast_to(cutoff[kinds] if cutoff.ndim else cutoff, len(first))
        axes = {name: 0 if jnp.ndim(value) else None for name, value in values.items()}
        missing = jax.vmap(functools.partial(_missing, term), in_axes=(0, axes))(cutoff, values)
        return jnp.sum(jnp.asarray(shares[kinds[0]] * shares[kinds[1]], missing.dtype) * missing)

    return uniform_tail(moment)


def _missing(term: PairTerm, cutoff: jax.Array, values: dict[str, jax.Array]) -> jax.Array:
    """Return M of one pair of species."""

    def energy(r: jax.Array) -> jax.Array:
        return term.bare.energy(r, **values)

    inner, share = jnp.zeros_like(cutoff), term.settings["switch_on"]
    if term.settings["ending"] == "switch":
        inner = _integral(_faded(energy, cutoff, share), share * cutoff, cutoff)
    # Beyond the cut-off by r = cutoff / x.
    beyond = _integral(lambda x: energy(cutoff / x) * cutoff**3 / x**4, jnp.zeros_like(cutoff), jnp.ones_like(cutoff))
    return inner + beyond


def _faded(energy: Callable, cutoff: jax.Array, share: float) -> Callable:
    def lost(r: jax.Array) -> jax.Array:
        x = (r / cutoff - share) / (1 - share)
        return energy(r) * x**3 * (10 - x * (15 - 6 * x)) * r**2

    return lost


def _integral(function: Callable, low: jax.Array, high: jax.Array) -> jax.Array:
    nodes, weights = jnp.asarray(NODES, high.dtype), jnp.asarray(WEIGHTS, high.dtype)
    x = low + (high - low) * (nodes + 1) / 2
    return jnp.sum(weights * function(x)) * (high - low) / 2
