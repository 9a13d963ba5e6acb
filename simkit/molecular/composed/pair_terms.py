"""Energies of pairs as data: by name or by an expression of the distance, with tables by pair of species."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.core.expressions.evaluation import Named
from simkit.core.expressions.scope import Formula, precision_of
from simkit.core.parts import declaration_of, part
from simkit.core.settings import FormulaText, Settings, formula
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.molecular.composed.names import PAIR, Names, named, refuse_mixing
from simkit.molecular.composed.particles import Particles
from simkit.molecular.composed.settings import POTENTIAL
from simkit.molecular.potentials import PairPotential, pair_potential
from simkit.molecular.potentials.cutoff import ENDINGS

AXES = ("row", "column")
BETWEEN = "is between"


@dataclasses.dataclass(frozen=True)
class PairTerm:
    """One energy of pairs.

    Attributes:
        where: path of its settings.
        energy: U as a formula of r, or ``None`` for a potential by name.
        bare: U without a cut-off.
        potential: U with its cut-off, and zero for species that it does not act between.
        parameters: ``params -> {name: number or (S, S)}`` of the potential.
        cutoff: ``params -> `` distance at which U ends, number or (S, S); ``None`` if it does not end.
        ends: whether the cut-off truncates U, which would otherwise extend beyond it.
        switch_on: start of the switching function, in units of the cut-off; 1 for other ways to end.
        between: mask of the pairs of species that it acts between, (S, S) booleans.
    """

    where: str
    energy: Formula | None
    bare: PairPotential
    potential: PairPotential
    parameters: Callable[[Params], dict[str, jax.Array]]
    cutoff: Callable[[Params], jax.Array] | None
    ends: bool
    switch_on: float
    between: np.ndarray

    @property
    def is_contact(self) -> bool:
        """Whether the energy ends by itself, as that of soft spheres, so that pairs touch or do not."""
        return self.cutoff is not None and not self.ends

    def reach(self, params: Params) -> jax.Array:
        """Return the distance beyond which no pair interacts, one number."""
        assert self.cutoff is not None  # asked for only where there is one
        cutoff = self.cutoff(params)
        if cutoff.ndim:
            cutoff = jnp.max(cutoff if self.between.all() else jnp.where(jnp.asarray(self.between), cutoff, 0))
        return computed_once(cutoff)

    def of_pair(self, params: Params, first: int, second: int) -> dict[str, jax.Array]:
        """Return the parameters of one pair of species, without those of the cut-off."""
        values = self._without_cutoff(params)
        return {name: value[first, second] if jnp.ndim(value) else value for name, value in values.items()}

    def bare_parameters(self, params: Params) -> dict[str, jax.Array]:
        """Return the parameters without those of the cut-off: (K,) by pair of species, or one number for all."""
        chosen = np.flatnonzero(self.between)
        values = self._without_cutoff(params)
        return {name: value.ravel()[chosen] if jnp.ndim(value) else value for name, value in values.items()}

    def _without_cutoff(self, params: Params) -> dict[str, jax.Array]:
        values = self.parameters(params)
        return {name: value for name, value in values.items() if name not in ("cutoff", "switch_on", BETWEEN)}


@part(keys={"energy": formula("energy at the distance r, of the values, tables and parameters", unit="energy")})
def energy_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the distance ``r``, which a scenario file gives in place of a name."""
    return energy


def pair_term(settings: Settings, energy: PairPotential | FormulaText, names: Names, particles: Particles) -> PairTerm:
    """Return an energy of pairs from its settings.

    Args:
        settings: of the interaction.
        energy: a potential, or an expression of the distance.
        names: what formulas may take.
        particles: whose values they may take.

    Raises:
        UserError: if settings contradict each other or name what there is not.
    """
    values = {name: _value(text, settings, name, names) for name, text in settings["values"].items()}
    expression = None
    if isinstance(energy, FormulaText):
        expression = names.scope.formula(energy, ("r", *_offered(names, values)))
        refuse_mixing(expression)
        if not expression.takes("r"):
            raise settings.refuse("energy", "does not depend on the distance r; write an energy of it")
        bare, defaults = _by_formula(expression), {name: None for name in expression.taken if name != "r"}
    else:
        declared = declaration_of(POTENTIAL.part(settings)).values
        bare, defaults = energy, {name: setting.default for name, setting in declared.items()}
    if odd := next((name for name in values if name not in defaults and not _in_cutoff(settings, name)), None):
        raise UserError(f"{settings.path('values')}.{odd} is not taken by the energy{nearest(odd, tuple(defaults))}")
    sources = {name: _source(name, default, values, names, particles, settings) for name, default in defaults.items()}
    cutoff, ends = _cutoff(settings, names, values, sources, bare), settings["cutoff"] is not None
    between = _between(settings, names)
    potential = ENDINGS[settings["ending"]](bare) if ends else bare
    if not between.all():
        potential = _only_between(potential)

    def parameters(params: Params) -> dict[str, jax.Array]:
        numbers = {name: source(params) for name, source in sources.items()}
        if ends and cutoff is not None:
            numbers["cutoff"] = cutoff(params)
            if settings["ending"] == "switch":
                numbers["switch_on"] = settings["switch_on"] * numbers["cutoff"]
        if not between.all():
            numbers[BETWEEN] = jnp.asarray(between, jax.tree.leaves(numbers)[0].dtype)
        # Without the barrier some programs fuse these products into sums over pairs, which changes their rounding.
        return computed_once(numbers)

    switch_on = settings["switch_on"] if settings["ending"] == "switch" else 1.0
    return PairTerm(settings.where, expression, bare, potential, parameters, cutoff, ends, switch_on, between)


type Value = Callable[[Params], jax.Array]


def _offered(names: Names, values: Mapping[str, Value]) -> list[str]:
    """Return the names that the energy of a pair may take besides parameters."""
    ends = [f"{name}{end}" for name in names.values for end in ("_i", "_j")]
    return [*values, *names.tables, *ends]


def _value(said: FormulaText | dict[str, FormulaText], settings: Settings, name: str, names: Names) -> Value:
    """Return a number, or a table by pair of species, as a function of the parameters."""
    if isinstance(said, FormulaText):
        formula = names.scope.formula(said, names.tables, names.tables)

        def number(params: Params) -> jax.Array:
            tables = {key: Named(table, PAIR) for key, table in names.table_values(params).items()}
            value = formula.of(params, tables)
            return jnp.asarray(value.array, precision_of(params))

        return number
    where = f"{settings.path('values')}.{name}"
    count = len(names.species)
    formulas: dict[tuple[int, int], Formula] = {}
    for pair, entry in said.items():
        first, second = sorted(names.pairs(pair, where))
        if (first, second) in formulas:
            raise UserError(f"{where}: the pair {pair} is there twice; keep one")
        formulas[first, second] = names.number(entry)
    between = _between(settings, names)
    for first in range(count):
        for second in range(first, count):
            if (first, second) not in formulas and between[first, second]:
                pair = f"{names.species[first]}_{names.species[second]}"
                raise UserError(f"{where} has no {pair}; give it, or leave the pair out of {settings.path('between')}")

    order = {pair: place for place, pair in enumerate(formulas)}
    pairs = [[(min(a, b), max(a, b)) for b in range(count)] for a in range(count)]
    places = np.array([[order.get(pair, len(order)) for pair in row] for row in pairs])

    def table(params: Params) -> jax.Array:
        numbers = {pair: formula.number(params) for pair, formula in formulas.items()}
        # One for pairs of species without interaction, so that divisions there give no NaN in derivatives.
        one = jnp.ones((), precision_of(params))
        return jnp.stack([*numbers.values(), *([] if between.all() else [one])])[places]

    return table


def _source(
    name: str, default: Any, values: Mapping[str, Value], names: Names, particles: Particles, settings: Settings
) -> Value:
    """Return the value of a name in an energy: of the interaction, a table, a parameter, or a species."""
    if name in values:
        return values[name]
    if name in names.tables:
        return lambda params: names.table_values(params)[name]
    for end, axis in (("_i", 1), ("_j", 0)):
        if name.removesuffix(end) in names.values and name.endswith(end):
            of_species, count = name.removesuffix(end), len(names.species)
            return lambda params: jnp.broadcast_to(
                jnp.expand_dims(particles.of_species(of_species, params), axis), (count, count)
            )
    return names.number(names.usual_value(settings, name, default)).number


def _by_formula(formula: Formula) -> PairPotential:
    def energy(distance: jax.Array, **parameters: jax.Array) -> jax.Array:
        arrays = {name: named(value, AXES) for name, value in parameters.items()}
        # Cast to the type of the parameters, so that precision is kept.
        value = formula.of({}, {**arrays, "r": named(distance, AXES)})
        return jnp.asarray(value.array, jnp.result_type(distance))

    return pair_potential(energy)


def _in_cutoff(settings: Settings, name: str) -> bool:
    from simkit.core.expressions.syntax import parse

    said = settings["cutoff"]
    return said is not None and name in parse(said.text, said.where).names


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
    text = names.scope.formula(settings["cutoff"], [*values, *names.tables], names.tables)

    def length(params: Params) -> jax.Array:
        arrays = {name: named(value(params), PAIR) for name, value in values.items() if name in text.taken}
        tables = names.table_values(params)
        arrays |= {
            name: named(tables[name], PAIR) for name in names.tables if name in text.taken and name not in arrays
        }
        return jnp.asarray(text.of(params, arrays).array, precision_of(params))

    return length


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
