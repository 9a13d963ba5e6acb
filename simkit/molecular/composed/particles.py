"""Species of particles: their counts and values, such as mass and diameter."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.expressions.scope import Formula
from simkit.core.expressions.syntax import parse
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, closest, nearest
from simkit.molecular import spaces
from simkit.molecular.composed.names import Names
from simkit.molecular.sizes import check_particles
from simkit.molecular.spaces import Cell


@dataclasses.dataclass(frozen=True)
class Particles:
    """Particles, their species and the values of these.

    Attributes:
        names: of the species.
        species: of each particle, int32, (N,).
        numbers: ``mass``, ``diameter`` and the species' own values by name, each one formula per species; ``None``
            where a species has no such value.
        frozen: mask of the particles that do not move, (N,) booleans.
    """

    names: tuple[str, ...]
    species: np.ndarray
    numbers: Mapping[str, tuple[Formula | None, ...]]
    frozen: np.ndarray

    @property
    def count(self) -> int:
        """Number of particles, N."""
        return len(self.species)

    def of_species(self, name: str, params: Params) -> jax.Array:
        """Return a value of each species, (S,); zero for species without it."""
        formulas = self.numbers[name]
        values = [None if formula is None else formula.number(params) for formula in formulas]
        like = next(value for value in values if value is not None)
        return jnp.stack([jnp.zeros_like(like) if value is None else value for value in values])

    def of_each(self, name: str, params: Params) -> jax.Array:
        """Return a value of each particle, (N,)."""
        return self.of_species(name, params)[jnp.asarray(self.species)]

    def filled(self, params: Params, cell: Cell, dimension: int) -> jax.Array:
        """Return the area of all disks, or the volume of all spheres, of their diameters, over that of the cell."""
        size = math.pi / (2 * dimension) * jnp.sum(self.of_each("diameter", params) ** dimension)
        return size / spaces.of_cell(cell, dimension).volume


def value_names(table: Mapping[str, Settings]) -> tuple[str, ...]:
    """Return the names of all numbers that species have of their own."""
    return tuple(dict.fromkeys(name for each in table.values() for name in each["values"]))


def numbers_of(table: Mapping[str, Settings], names: Names) -> dict[str, tuple[Formula | None, ...]]:
    """Return the formulas of the numbers of species.

    Args:
        table: settings of each species, in the order of ``names.species``.
        names: what formulas may take.
    """
    rows = [table[name] for name in names.species]
    formulas: dict[str, tuple[Formula | None, ...]] = {
        key: tuple(names.number(row[key]) for row in rows) for key in ("mass", "diameter")
    }
    for name in value_names(table):
        texts: list[FormulaText | None] = [row["values"].get(name) for row in rows]
        formulas[name] = tuple(None if each is None else names.number(each) for each in texts)
    return formulas


def refuse_idle_values(table: Mapping[str, Settings], settings: Settings) -> None:
    """Refuse values of species that no formula takes, such as a misspelt one, for which another counts as zero.

    Args:
        table: settings of each species.
        settings: all settings.

    Raises:
        UserError: names the first of them.
    """
    used: set[str] = set()

    def visit(value: Any) -> None:
        for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ():
            visit(inner)
        if isinstance(value, FormulaText):
            used.update(parse(value.text, value.where).names)

    visit({key: settings[key] for key in settings if key != "particles"})
    for species in table.values():
        for name in species["values"]:
            if used.isdisjoint((name, f"{name}_i", f"{name}_j")):
                others = [other for other in value_names(table) if other != name]
                hint = (
                    f"; did you mean '{suggestion}'?"
                    if (suggestion := closest(name, others))
                    else "; use it or leave it out"
                )
                raise UserError(f"{species.path('values')}.{name} is not taken by any energy{hint}")


def species_by_count(table: Mapping[str, Settings], places: int | None, arrangement: int | None = None) -> np.ndarray:
    """Return the species of each particle, int32, (N,).

    Args:
        table: settings of each species.
        places: number of starting positions; ``None`` if it follows from the counts.
        arrangement: seed of a random order; ``None`` for one species after the other.

    Raises:
        UserError: if a count is missing, or counts do not make up the places.
    """
    counts = {name: each["count"] for name, each in table.items()}
    if len(counts) == 1 and places is not None:
        name, count = next(iter(counts.items()))
        if count not in (None, places):
            raise UserError(f"particles.{name}.count = {count}, and there are {places} places; leave it out")
        counts = {name: places}
    for name, count in counts.items():
        if count is None:
            raise UserError(f"particles.{name}.count is missing; say how many there are of '{name}'")
    total = sum(counts.values())
    if places not in (None, total):
        raise UserError(f"particles: counts make {total} particles, and there are {places} places; make them as many")
    check_particles(total, f"particles: counts of {total}")
    species = np.repeat(np.arange(len(counts), dtype=np.int32), list(counts.values()))
    return species if arrangement is None else np.random.default_rng(arrangement).permutation(species)


def species_by_symbol(table: Mapping[str, Settings], symbols: tuple[str, ...]) -> np.ndarray:
    """Return the species of each atom of a structure, int32, (N,).

    Raises:
        UserError: if one has no species, a species no atom, or a count is another.
    """
    names = tuple(table)
    missing = [symbol for symbol in dict.fromkeys(symbols) if symbol not in names]
    if missing:
        added = " and ".join(f"[config.particles.{symbol}]" for symbol in missing)
        raise UserError(
            f"start.structure: atom {symbols.index(missing[0])} (the first is 0) is {missing[0]}, no species"
            f"{nearest(missing[0], names)}; change the atom, or add {added}"
        )
    for name, each in table.items():
        atoms = symbols.count(name)
        if not atoms or each["count"] not in (None, atoms):
            problem = f"count = {each['count']}" if each["count"] else "is declared"
            raise UserError(f"particles.{name}: {problem}, and the structure has {atoms} such atoms; leave it out")
    return np.array([names.index(symbol) for symbol in symbols], np.int32)
