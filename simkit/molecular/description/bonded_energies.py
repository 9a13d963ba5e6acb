"""Energies of bonds, angles and dihedrals of molecules, by name and by expression, and of their 1-4 pairs."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula
from simkit.core.formulation import computed_once
from simkit.core.parts import Choice, declaration_of, part
from simkit.core.settings import FormulaText, Settings, formula
from simkit.core.simulation import Params
from simkit.molecular import spaces
from simkit.molecular.bonded.potentials import AngularPotential
from simkit.molecular.bonded.terms import BondedTerms, bonded_terms
from simkit.molecular.bonded.topology import EXCLUSIONS, checked_members
from simkit.molecular.bonded.torsion_maps import LEAST, steepest, torsion_maps
from simkit.molecular.description.formulas import Names, Numbers, refuse_idle, refuse_mixing
from simkit.molecular.description.molecules import MoleculeKind, Molecules
from simkit.molecular.description.pair_energies import PairTerm, WholeTerm, at_pairs, function_of
from simkit.molecular.description.particles import Particles
from simkit.molecular.description.settings import ANGLE, BOND, DIHEDRAL
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.potentials import PairPotential, pair_potential
from simkit.molecular.spaces import Cell

# Of each key of a molecule: what chooses the energy, the name of its coordinate, and the atoms of a term.
TERMS: dict[str, tuple[Choice, str, int]] = {
    "bonds": (BOND, "r", 2),
    "pairs": (BOND, "r", 2),
    "angles": (ANGLE, "theta", 3),
    "dihedrals": (DIHEDRAL, "phi", 4),
    "impropers": (DIHEDRAL, "phi", 4),
}
# Angles at which the stiffness of an energy by expression is looked for.
SAMPLES = 72


@part(keys={"energy": formula("energy of a bond of length r, of the values and parameters", unit="energy")})
def bond_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the length ``r`` of a bond."""
    return energy


@part(keys={"energy": formula("energy of an angle theta, rad, of the values and parameters", unit="energy")})
def angle_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the angle ``theta`` of two bonds, from 0 to pi."""
    return energy


@part(keys={"energy": formula("energy of a dihedral phi, rad, of the values and parameters", unit="energy")})
def dihedral_by_expression(energy: FormulaText) -> FormulaText:
    """Return the text of an energy of the dihedral ``phi``, from -pi to pi and zero in cis."""
    return energy


@dataclasses.dataclass(frozen=True)
class BondedEnergy:
    """All terms of a system that have one energy, with values of their own.

    Attributes:
        where: path of each table of terms, in the order of the kinds of terms.
        potential: U.
        terms: the terms.
        values: ``params -> {name: number of each kind, (S,), or one number}``.
        checked: formulas of values with their bounds.
    """

    where: tuple[str, ...]
    potential: PairPotential | AngularPotential
    terms: BondedTerms
    values: Callable[[Params], dict[str, jax.Array]]
    checked: tuple[tuple[Formula, tuple[float, float]], ...]

    def stiffnesses(self, params: Params, arm: jax.Array) -> jax.Array:
        """Return the stiffness of each kind of angles or dihedrals against a shift of an atom, energy / length^2.

        Args:
            params: parameters.
            arm: length of a bond.
        """
        assert isinstance(self.potential, AngularPotential)
        return self.potential.stiffness(**self.values(params)) / arm**2


def bonded_energies(molecules: Molecules, names: Names, dimension: int) -> tuple[BondedEnergy, ...]:
    """Return the bonded energies of molecules: terms of one potential are computed together.

    Args:
        molecules: the molecules.
        names: names that formulas may use.
        dimension: dimension of space.

    Raises:
        UserError: if terms do not fit the atoms, or values the energy; names the key.
    """
    groups: dict[tuple, list[tuple[MoleculeKind, str, Settings]]] = {}
    for kind in molecules.kinds:
        for key, (choice, _, size) in TERMS.items():
            for table in kind.settings[key]:
                if size == 4 and dimension != 3:
                    raise table.refuse("potential", "is that of dihedrals, which need three dimensions; leave it out")
                own = declaration_of(choice.part(table)).keys
                options = (
                    table[name].text if isinstance(table[name], FormulaText) else table[name] for name in sorted(own)
                )
                group = groups.setdefault((size, table["potential"], *options, *sorted(table["values"])), [])
                group.append((kind, key, table))
    maps: dict[int, list[tuple[MoleculeKind, Settings]]] = {}
    for kind in molecules.kinds:
        for table in kind.settings["torsion_maps"]:
            maps.setdefault(_grid(table, dimension), []).append((kind, table))
    return (
        *(_of_group(group, names) for group in groups.values()),
        *(_of_maps(group, names, count) for count, group in maps.items()),
    )


def _grid(table: Settings, dimension: int) -> int:
    """Return the number of angles of a map of two dihedrals."""
    rows = table["energies"]
    if dimension != 3:
        raise table.refuse("members", "are those of dihedrals, which need three dimensions; leave the map out")
    if len(rows) < LEAST or any(len(row) != len(rows) for row in rows):
        sizes = sorted({len(row) for row in rows})
        raise table.refuse("energies", f"has {len(rows)} rows of {sizes} numbers; give n of n, at least {LEAST}")
    return len(rows)


def _of_maps(group: list[tuple[MoleculeKind, Settings]], names: Names, count: int) -> BondedEnergy:
    """Return the terms of the maps of one grid."""
    texts = [text for _, table in group for row in table["energies"] for text in row]
    numbers = Numbers([names.number(text) for text in texts])

    def values(params: Params) -> dict[str, jax.Array]:
        return computed_once({"maps": numbers(params).reshape(len(group), count, count)})

    members = [kind.repeated(_eight(kind, table)) for kind, table in group]
    kinds = np.repeat(np.arange(len(group)), [len(rows) for rows in members])
    potential = AngularPotential(lambda phi: phi, lambda *, maps: steepest(maps))
    terms = torsion_maps(np.concatenate(members), values, kinds)
    return BondedEnergy(tuple(table.where for _, table in group), potential, terms, values, ())


def _eight(kind: MoleculeKind, table: Settings) -> np.ndarray:
    """Return the atoms of both dihedrals of each term, (K, 8)."""
    rows = [row if len(row) == 8 else (*row[:4], *row[1:]) for row in table["members"]]
    if not rows:
        raise table.refuse("members", "gives no dihedrals; leave the table out")
    for row in rows:
        for atoms in (row[:4], row[4:]):
            checked_members([atoms], "dihedrals", kind.size, table.path("members"))
    return np.array(rows, np.int32)


def _of_group(group: list[tuple[MoleculeKind, str, Settings]], names: Names) -> BondedEnergy:
    """Return the terms of one potential."""
    _, key, table = group[0]
    choice, coordinate, size = TERMS[key]
    made = choice.make(table, (PairPotential, AngularPotential, FormulaText))
    if isinstance(made, FormulaText):
        expression = names.scope.formula(made, (coordinate, *table["values"]))
        refuse_mixing(expression)
        energy, declared = function_of(expression.needing(coordinate), coordinate), {}
        defaults: dict[str, Any] = {name: None for name in expression.taken if name != coordinate}
        made = pair_potential(energy) if size == 2 else AngularPotential(energy, _stiffest(energy, size))
    else:
        declared = declaration_of(choice.part(table)).values
        defaults = {name: setting.default for name, setting in declared.items()}
    columns: dict[str, list[Formula]] = {name: [] for name in defaults}
    for _, _, each in group:
        refuse_idle(each, defaults)
        for name, default in defaults.items():
            text = each["values"].get(name) or names.usual_value(each, name, default)
            columns[name].append(names.number(text))
    numbers = {name: Numbers(formulas) for name, formulas in columns.items()}

    def values(params: Params) -> dict[str, jax.Array]:
        of_kinds = {name: each(params) for name, each in numbers.items()}
        return computed_once({name: each if len(group) > 1 else each[0] for name, each in of_kinds.items()})

    members = [kind.repeated(kind.members(key, each)) for kind, key, each in group]
    kinds = np.repeat(np.arange(len(group)), [len(rows) for rows in members])
    terms = bonded_terms(made.energy, np.concatenate(members), size, values, kinds if len(group) > 1 else None)
    checked = [(one, declared[name].bounds) for name in declared for one in columns[name]]
    return BondedEnergy(tuple(each.where for _, _, each in group), made, terms, values, tuple(checked))


def _stiffest(energy: Callable[..., jax.Array], size: int) -> Callable[..., jax.Array]:
    """Return the largest curvature of an energy of an angle, of each kind of terms."""
    angles = np.linspace(0 if size == 3 else -np.pi, np.pi, SAMPLES + 1)

    def stiffness(**values: jax.Array) -> jax.Array:
        rows = jnp.broadcast_arrays(*map(jnp.atleast_1d, values.values())) if values else [jnp.zeros(1)]
        at = jnp.broadcast_to(jnp.asarray(angles, rows[0].dtype)[:, None], (len(angles), len(rows[0])))
        columns = dict(zip(values, rows, strict=True)) if values else {}

        def slope(x: jax.Array) -> jax.Array:
            return jax.jvp(lambda x: energy(x, **columns), (x,), (jnp.ones_like(x),))[1]

        bends = jnp.abs(jax.jvp(slope, (at,), (jnp.ones_like(at),))[1])
        return jnp.max(jnp.where(jnp.isfinite(bends), bends, 0), axis=0)

    return stiffness


def whole_molecules(molecules: Molecules, *, one_four: bool) -> Interaction | None:
    """Return no energy, but NaN where excluded or 1-4 pairs are half the smallest width of the cell apart or more.

    There another image of the pair is nearer than the bonded one, and would be left out instead of it.

    Args:
        molecules: the molecules.
        one_four: whether pairs three bonds apart are among those looked at.

    Returns:
        ``None`` if there are no such pairs more than one bond apart; bonds themselves are looked at by their energies.
    """
    paths: dict[int, list[np.ndarray]] = {2: [], 3: []}
    for kind in molecules.kinds:
        for bonds, found in paths.items():
            if EXCLUSIONS[kind.settings["exclude"]] >= bonds or (one_four and bonds == 3):
                found.append(kind.repeated(kind.topology.paths(bonds)))
    tables = [rows for found in paths.values() if found and len(rows := np.concatenate(found))]
    if not tables:
        return None

    def defect(position: jax.Array, cell: Cell) -> jax.Array:
        space, is_whole = spaces.of_cell(cell, position.shape[1]), jnp.bool_(True)
        for rows in tables:
            places = position[jnp.asarray(rows)]
            apart = spaces.displacement(space, places[:, 1:], places[:, :-1]).sum(axis=1)
            is_whole &= (jnp.sum(apart**2, axis=1) < (space.widths.min() / 2) ** 2).all()
        return jnp.where(is_whole, 0, jnp.nan).astype(position.dtype)

    return Interaction(
        prepare=lambda position, cell, params: (),
        refresh=lambda neighbors, position, cell, params: neighbors,
        energy=lambda position, cell, params, _: defect(position, cell),
        force=lambda position, cell, params, _: jnp.broadcast_to(defect(position, cell), position.shape),
        stress=lambda position, cell, params, _: jnp.broadcast_to(defect(position, cell), (position.shape[1],) * 2),
        is_translation_invariant=True,
    )


def one_four_terms(term: PairTerm | WholeTerm, particles: Particles) -> BondedTerms:
    """Return the pairs three bonds apart with their weight, as terms of the energy of pairs.

    Args:
        term: the energy, whose settings hold the weight.
        particles: with their molecules.
    """
    pairs = particles.molecules.one_four
    weight, (first, second) = term.settings["one_four"], pairs.T
    ends = "ends"

    def energy(distance: jax.Array, **values: Any) -> jax.Array:
        cutoff = values.pop(ends, jnp.inf)
        energy = term.potential.energy if isinstance(term, PairTerm) else term.of_two
        assert energy is not None  # without it there is no weight
        return jnp.where(distance < cutoff, weight * energy(distance, **values), 0)

    def values(params: Params) -> Mapping[str, jax.Array]:
        if isinstance(term, WholeTerm):
            of_each = {name: particles.of_each(name, params) for name in term.of_particles}
            numbers = {f"{name}_i": each[first] for name, each in of_each.items()}
            numbers |= {f"{name}_j": each[second] for name, each in of_each.items()}
            return numbers | term.declared(params)
        numbers = dict[str, Any](term.parameters(params))
        if term.cutoff is not None:
            numbers[ends] = term.cutoff(params)
        return at_pairs(numbers, first, second, term.species)

    return bonded_terms(energy, pairs, 2, values, None)
