"""Particles and their cell: species, counts and values, periodic cells and their images."""

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from simkit.core.expressions.scope import Formula
from simkit.core.expressions.syntax import parse
from simkit.core.settings import FormulaText, Settings
from simkit.core.simulation import Params
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.description.formulas import Names, Numbers
from simkit.molecular.description.molecules import Molecules
from simkit.molecular.description.settings import NumberOfEach
from simkit.molecular.interactions.interaction import Interaction, viewed
from simkit.molecular.spaces import Cell, check_particles
from simkit.molecular.structures.structures import FROZEN, Structure


@dataclasses.dataclass(frozen=True)
class Particles:
    """Particles, their species and the values of these.

    Attributes:
        names: of the species.
        species: of each particle, int32, (N,).
        numbers: ``mass``, ``diameter`` and the species' own values by name, one of each species, (S,); zero of species
            without it.
        individual: those that are one number a particle: the mask of the particles that have their own, (N,) booleans,
            and the numbers, (N,).
        frozen: mask of the particles that do not move, (N,) booleans.
        excluded: pairs that do not interact because they are bonded, (K, 2) with the lower index first.
        molecules: the molecules, whose particles are the first ones.
    """

    names: tuple[str, ...]
    species: np.ndarray
    numbers: Mapping[str, Numbers]
    individual: Mapping[str, tuple[np.ndarray, np.ndarray]]
    frozen: np.ndarray
    excluded: np.ndarray
    molecules: Molecules

    @property
    def count(self) -> int:
        """Number of particles, N."""
        return len(self.species)

    def of_species(self, name: str, params: Params) -> jax.Array:
        """Return a value of each species, (S,); zero for species without it."""
        return self.numbers[name](params)

    def of_each(self, name: str, params: Params) -> jax.Array:
        """Return a value of each particle, (N,)."""
        values = self.of_species(name, params)[jnp.asarray(self.species)]
        if name not in self.individual:
            return values
        is_individual, numbers = self.individual[name]
        return jnp.where(jnp.asarray(is_individual), jnp.asarray(numbers, values.dtype), values)

    def filled(self, params: Params, cell: Cell, dimension: int) -> jax.Array:
        """Return the area of all disks, or the volume of all spheres, of their diameters, over that of the cell."""
        size = math.pi / (2 * dimension) * jnp.sum(self.of_each("diameter", params) ** dimension)
        return size / spaces.of_cell(cell, dimension).volume


def value_names(table: Mapping[str, Settings]) -> tuple[str, ...]:
    """Return the names of all numbers that species have of their own."""
    names = [name for each in table.values() for name in each["values"]]
    names += ["charge" for each in table.values() if "charge" in each.given]
    return tuple(dict.fromkeys(names))


def particles_of(
    table: Mapping[str, Settings],
    names: Names,
    places: int | None,
    arrangement: int | None,
    structure: Structure | None,
    molecules: Molecules,
) -> Particles:
    """Return the particles of all species with their values.

    Args:
        table: settings of each species, in the order of ``names.species``.
        names: what formulas may take.
        places: number of starting positions; ``None`` if it follows from the counts.
        arrangement: seed of a random order of the species; ``None`` for one species after the other.
        structure: whose atoms they are, and which may hold some in place; otherwise ``None``.
        molecules: the molecules, whose particles come before the others.

    Raises:
        UserError: if species and places do not fit, or there are more or fewer numbers than particles of a species.
    """
    if structure is None:
        species, held = _species_by_count(table, places, arrangement, molecules), None
    else:
        species, held = _species_by_symbol(table, structure.symbols, molecules), structure.arrays.get(FROZEN)
    rows = [table[name] for name in names.species]
    columns = {key: [row[key] for row in rows] for key in ("mass", "diameter")}
    columns |= {name: [_value_of(row, name) for row in rows] for name in value_names(table)}
    numbers, individual = {}, {}
    for name, column in columns.items():
        texts = [each if isinstance(each, FormulaText) else FormulaText("0", "") for each in column]
        numbers[name] = Numbers([names.number(text) for text in texts])
        lists = {kind: each for kind, each in enumerate(column) if isinstance(each, NumberOfEach)}
        if lists:
            of_each = np.zeros(len(species))
            for kind, each in lists.items():
                of_each[species == kind] = each.numbers(int((species == kind).sum()))
            individual[name] = np.isin(species, list(lists)), of_each
    frozen = np.array([row["frozen"] for row in rows])[species]
    frozen = frozen if held is None else frozen | held
    return Particles(names.species, species, numbers, individual, frozen, molecules.excluded, molecules)


def _value_of(species: Settings, name: str) -> Any:
    """Return a value that a species has of its own, as it is written; ``None`` without it."""
    if name != "charge" or "charge" not in species.given:
        return species["values"].get(name)
    if "charge" in species["values"]:
        raise species.refuse("charge", "is among its values, too; keep one of them")
    return species["charge"]


def refuse_idle_values(table: Mapping[str, Settings], settings: Settings, taken: Collection[str]) -> None:
    """Refuse values of species that no formula takes, such as a misspelt one, for which another counts as zero.

    Args:
        table: settings of each species.
        settings: all settings.
        taken: names of values that interactions by name take.

    Raises:
        UserError: names the first of them.
    """
    used = set(taken)

    def visit(value: Any) -> None:
        for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else ():
            visit(inner)
        if isinstance(value, FormulaText):
            used.update(parse(value.text, value.where).names)

    visit({key: settings[key] for key in settings if key != "particles"})
    for species in table.values():
        if "charge" in species.given and used.isdisjoint(("charge", "charge_i", "charge_j")):
            raise species.refuse("charge", "is not taken by any energy; add one of charges, or leave it out")
        for name in species["values"]:
            if used.isdisjoint((name, f"{name}_i", f"{name}_j")):
                others = [other for other in value_names(table) if other != name]
                hint = nearest(name, others)
                hint = hint if hint.meant else "; use it or leave it out"
                raise UserError(f"{species.path('values')}.{name} is not taken by any energy", hint)


def _species_by_count(
    table: Mapping[str, Settings], places: int | None, arrangement: int | None, molecules: Molecules
) -> np.ndarray:
    """Return the species of each particle, int32, (N,)."""
    of_molecules = molecules.species
    counts = {name: each["count"] for name, each in table.items()}
    if molecules.kinds:  # the others may be atoms of molecules only
        counts = {
            name: 0 if count is None and kind in of_molecules else count
            for kind, (name, count) in enumerate(counts.items())
        }
    elif len(counts) == 1:
        counts = {name: places if count is None else count for name, count in counts.items()}
    missing = [name for name, count in counts.items() if count is None]
    total = len(of_molecules) + sum(count or 0 for count in counts.values())
    if missing or places not in (None, total):
        problem = f"particles: counts make {total} particles, and there are {places} places; make them as many"
        raise UserError(f"particles.{missing[0]}.count is missing; say how many there are" if missing else problem)
    check_particles(total, f"particles: counts of {total}")
    singles = np.repeat(np.arange(len(counts), dtype=np.int32), [count or 0 for count in counts.values()])
    species = np.concatenate([of_molecules, singles])
    return species if arrangement is None else np.random.default_rng(arrangement).permutation(species)


def _species_by_symbol(table: Mapping[str, Settings], symbols: tuple[str, ...], molecules: Molecules) -> np.ndarray:
    """Return the species of each atom of a structure, int32, (N,)."""
    names = tuple(table)
    missing = [symbol for symbol in dict.fromkeys(symbols) if symbol not in names]
    if missing:
        added = " and ".join(f"[config.particles.{symbol}]" for symbol in missing)
        raise UserError(
            f"start.structure: atom {symbols.index(missing[0])} (the first is 0) is {missing[0]}, no species",
            nearest(missing[0], names),
            f"; change the atom, or add {added}",
        )
    species, of_molecules = np.array([names.index(symbol) for symbol in symbols], np.int32), molecules.species
    same = species[: len(of_molecules)] == of_molecules[: len(species)]
    if len(species) < len(of_molecules) or not same.all():
        problem = f"has {len(species)} atoms, and the molecules {len(of_molecules)}"
        if not same.all():
            wrong = int(np.argmin(same))
            meant = names[of_molecules[wrong]]
            problem = f"atom {wrong} (the first is 0) is {symbols[wrong]}, and that of its molecule is {meant}"
        raise UserError(
            f"start.structure: {problem}; write the molecules in the order of the file, before single atoms"
        )
    for kind, (name, each) in enumerate(table.items()):
        bound = int((of_molecules == kind).sum())
        atoms = symbols.count(name) - bound
        if not (atoms or bound) or each["count"] not in (None, atoms):
            problem = f"count = {each['count']}" if each["count"] else "is declared"
            raise UserError(f"particles.{name}: {problem}, and the structure has {atoms} such atoms; leave it out")
    return species


type Frame = Callable[[Params], jax.Array]
# Volume of a cell, relative to that of a block with edges of the same lengths, below which its vectors lie in a plane.
FLAT = 1e-6


@dataclasses.dataclass(frozen=True)
class SystemCell:
    """A cell and the axes along which it repeats.

    Attributes:
        frame: ``params -> `` sides (d,) or lattice vectors as rows (d, d), all finite; ``None`` without a cell.
        periodic: along which axes it repeats, d booleans.
        reduction: integers (d, d) that turn skewed lattice vectors into short ones, or ``None``; see
            `simkit.molecular.spaces.reduction`.
    """

    frame: Frame | None
    periodic: tuple[bool, ...]
    reduction: np.ndarray | None = None

    @property
    def dimension(self) -> int:
        """Dimension of space, d."""
        return len(self.periodic)

    @property
    def is_free(self) -> bool:
        """Whether nothing repeats."""
        return not any(self.periodic)

    @property
    def is_closed(self) -> bool:
        """Whether it repeats along all axes, and so has a volume."""
        return all(self.periodic)

    def cell(self, params: Params) -> Cell:
        """Return the cell for `simkit.molecular.spaces.of_cell`: sides along which it does not repeat are infinite."""
        if self.frame is None or self.is_free:
            return None
        edges = self.edges(params)
        return edges if self.is_closed else jnp.where(jnp.asarray(self.periodic), edges, jnp.inf)

    def edges(self, params: Params) -> jax.Array:
        """Return sides (d,) or lattice vectors as rows (d, d), all finite, the latter as short as they may be."""
        assert self.frame is not None  # asked for only where there is one
        frame = self.frame(params)
        if self.reduction is None:
            return frame
        return jnp.sum(jnp.asarray(self.reduction, frame.dtype)[:, :, None] * frame, axis=1)

    def vectors(self, params: Params) -> jax.Array:
        """Return the edges as rows, all finite, (d, d)."""
        return spaces.lattice_vectors(self.edges(params))

    def reduced(self, params: Params) -> Self:
        """Return the cell with lattice vectors that are short at given parameters.

        Args:
            params: default parameters; where they are traced the vectors stay as they are.

        Raises:
            UserError: if the cell has no volume.
        """
        frame = None if self.frame is None else self.frame(params)
        # Other vectors of the same lattice bound another region, which matters where it does not repeat.
        if frame is None or isinstance(frame, Tracer) or frame.ndim == 1 or not self.is_closed:
            return self
        refuse_no_volume(self, params)
        integers = spaces.reduction(np.asarray(frame))
        is_short = np.array_equal(integers, np.eye(self.dimension))
        return self if is_short else dataclasses.replace(self, reduction=integers)


def cell_of(
    settings: Settings | None,
    names: Names,
    own_frame: Frame | None,
    dimension: int,
    count: int,
    *,
    is_oblique: bool,
    repeats: tuple[bool, ...] | None,
) -> SystemCell:
    """Return the cell of a system.

    Args:
        settings: settings of the cell; ``None`` if none are given.
        names: names that formulas may use.
        own_frame: edges of the cell of a lattice or structure; ``None`` if there is none.
        dimension: dimension of space.
        count: number of particles.
        is_oblique: whether ``own_frame`` gives lattice vectors instead of sides.
        repeats: along which axes the cell of a structure repeats, d booleans; ``None`` for all.

    Raises:
        UserError: if settings contradict each other or the dimension.
    """
    if settings is None:
        axes = repeats or (own_frame is not None,) * dimension
        frame = own_frame
    else:
        periodic = settings["periodic"] if repeats is None or "periodic" in settings.given else repeats
        axes = (periodic,) * dimension if isinstance(periodic, bool) else periodic
        is_own = settings["lengths"] is None and settings["shape"] is None
        is_oblique = settings["vectors"] is not None or (is_own and is_oblique)
        frame = _frame_of(settings, names, own_frame, dimension, count)
    if any(axes) and (frame is None or (is_oblique and not all(axes))):
        where = "start.structure: its cell is periodic" if settings is None else "cell.periodic is true"
        problem = f"{where} along some axes only, which needs an orthorhombic cell; give cell.lengths"
        missing = "cell has no size; give cell.lengths, cell.vectors or cell.density, or leave the cell out"
        raise UserError(missing if frame is None else problem)
    return SystemCell(frame, axes)


def _frame_of(settings: Settings, names: Names, own_frame: Frame | None, dimension: int, count: int) -> Frame | None:
    """Return the edges that settings of a cell give; by default those of the lattice or structure."""
    if settings["lengths"] is not None:
        sides = tuple(names.number(each) for each in settings["lengths"])
        return lambda params: jnp.stack([side.number(params) for side in sides])
    if settings["vectors"] is not None:
        rows = tuple(tuple(names.number(each) for each in row) for row in settings["vectors"])
        return lambda params: jnp.stack([jnp.stack([each.number(params) for each in row]) for row in rows])
    if settings["density"] is not None:
        return _by_density(settings, names.number(settings["density"]), own_frame, dimension, count)
    return own_frame


def refuse_excluded(settings: Settings, particles: Particles, key: str = "potential") -> None:
    """Raise if molecules exclude pairs, which an interaction that is no sum of pairs would not leave out."""
    if len(particles.excluded):
        problem = "is one of all particles, and molecules exclude some pairs; set their exclude = 'none'"
        raise settings.refuse(key, problem)


def refuse_open(settings: Settings, cell: SystemCell, key: str) -> None:
    """Raise for a key that needs a cell which repeats along all axes."""
    if not cell.is_closed:
        raise settings.refuse(key, "needs a cell that repeats along all axes; leave it out, or give one")


def refuse_no_volume(cell: SystemCell, params: Params) -> None:
    """Refuse a cell without volume.

    Args:
        cell: the cell.
        params: concrete parameters.

    Raises:
        UserError: naming its edges.
    """
    if cell.frame is None:
        return
    frame = np.asarray(cell.frame(params))
    rows = np.diag(frame) if frame.ndim == 1 else frame
    sizes = np.linalg.norm(rows, axis=1)
    # Vectors may be left-handed; sides are above zero.
    spans = np.isfinite(rows).all() and abs(np.linalg.det(rows)) > FLAT * np.prod(sizes)
    if not spans or (frame.ndim == 1 and not (frame > 0).all()):
        edges = "; ".join(", ".join(f"{number:g}" for number in row) for row in np.atleast_2d(frame))
        raise UserError(
            f"the cell has no volume, with the {'sides' if frame.ndim == 1 else 'vectors'} {edges}; give lengths, a "
            "density or a spacing above zero, or vectors that span the space"
        )


def _by_density(settings: Settings, density: Formula, own_frame: Frame | None, dimension: int, count: int) -> Frame:
    """Return edges of the given shape, with the volume that the density requires."""
    shape = settings["shape"]

    def frame(params: Params) -> jax.Array:
        value = density.number(params)
        if shape is None and own_frame is not None:
            edges = own_frame(params)
            volume = spaces.of_cell(edges, dimension).volume
            return edges * _root(count / (value * volume), dimension)
        sides = np.ones(dimension) if shape is None else np.asarray(shape)
        sides = jnp.asarray(sides / math.prod(sides) ** (1 / dimension), value.dtype)
        return sides * _root(count / value, dimension)

    return frame


def _root(value: jax.Array, dimension: int) -> jax.Array:
    return jnp.sqrt(value) if dimension == 2 else value ** (1 / 3)


def in_block(interaction: Interaction, repeats: tuple[int, ...]) -> Interaction:
    """Return the interaction of the particles of one cell with their images in a block of adjacent cells.

    The energy is that of the block over the number of its cells. By symmetry the force on a particle is that on its
    image in the first cell, and the stress is that of the block.

    Args:
        interaction: interaction of all particles of the block, ordered by cell.
        repeats: cells along each lattice vector.
    """
    return viewed(
        interaction,
        lambda position, cell, params: (*spaces.repeated(position, cell, repeats), params),
        energy=lambda value: value / math.prod(repeats),
        force=lambda vectors, count: vectors[:count],
    )
