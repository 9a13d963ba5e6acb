"""Embedded-atom energies in tables: files in the formats setfl (eam.alloy) and Finnis-Sinclair (eam.fs) of LAMMPS.

Between the points of a table the functions are cubics with the values and slopes at both ends, where slopes are
differences of fourth order, ``(f_{m-2} - f_{m+2} + 8 (f_{m+1} - f_{m-1})) / 12`` per step, and of lower order at the
ends of the table: the interpolation of LAMMPS.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.arguments import check_integer
from simkit.core.files import read_text
from simkit.core.formulation import computed_once_on_cpu
from simkit.core.parts import part
from simkit.core.settings import line, named, text
from simkit.core.simulation import Params
from simkit.errors import UserError, known, one_line
from simkit.molecular.interactions.embedded_atom import embedded_atom
from simkit.molecular.interactions.interaction import Atoms, Interaction, ManyBody
from simkit.molecular.interactions.pair_interaction import Method
from simkit.molecular.potentials import PairPotential

# Neighbors of an atom whose shared energy is searched for a minimum, for the scale of bonds.
NEIGHBORS = 12


class AtomTables(NamedTuple):
    """Tables of an embedded-atom energy, for S elements; energies in eV and lengths in angstrom in files of LAMMPS.

    Attributes:
        elements: their names.
        masses: mass of each, (S,).
        cutoff: length.
        density_step: of the densities at which embedding energies are given, from 0.
        distance_step: of the distances at which densities and pair energies are given, from 0.
        embedding: embedding energy of each element, (S, K).
        density: density at an atom of the first element by one of the second, (S, S, M).
        pair: distance times energy of a pair, (S, S, M), symmetric.

    Example:
        >>> square = molecular.interactions.AtomTables(
        ...     ("X",), np.ones(1), cutoff=2.0, density_step=0.1, distance_step=0.5,
        ...     embedding=-np.arange(9.0)[None], density=np.arange(4.0, -1, -1)[None, None], pair=np.zeros((1, 1, 5)),
        ... )
        >>> square.elements
        ('X',)
    """

    elements: tuple[str, ...]
    masses: np.ndarray
    cutoff: float
    density_step: float
    distance_step: float
    embedding: np.ndarray
    density: np.ndarray
    pair: np.ndarray

    def of(self, elements: Sequence[str]) -> "AtomTables":
        """Return the tables of some elements, in their order and perhaps more than once.

        Raises:
            UserError: if one is not in the tables.
        """
        for name in elements:
            known(name, self.elements, "element of the tables")
        chosen = np.array([self.elements.index(name) for name in elements])
        among = np.ix_(chosen, chosen)
        return self._replace(
            elements=tuple(elements),
            masses=self.masses[chosen],
            embedding=self.embedding[chosen],
            density=self.density[among],
            pair=self.pair[among],
        )

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The tables by name, as params of the interaction where they are to be differentiated."""
        return {"embedding": self.embedding, "density": self.density, "pair": self.pair}

    def bond(self) -> tuple[np.ndarray, np.ndarray]:
        """Return length and stiffness of a bond of each element, (S,), among twelve like neighbors.

        ``U(r) = phi(r) + F(12 f(r)) / 6``, at its lowest minimum; without one, at half the cut-off.
        """
        from scipy.interpolate import CubicSpline

        r = self.distance_step * np.arange(1, self.pair.shape[-1])
        rho = self.density_step * np.arange(self.embedding.shape[-1])
        found = []
        for kind in range(len(self.elements)):
            inside = CubicSpline(rho, self.embedding[kind])
            density = NEIGHBORS * self.density[kind, kind, 1:]
            energy = CubicSpline(
                r, self.pair[kind, kind, 1:] / r + 2 / NEIGHBORS * inside(np.clip(density, 0, rho[-1]))
            )
            curvature = energy(r, 2)
            is_lowest = (np.diff(energy(r))[:-1] < 0) & (np.diff(energy(r))[1:] > 0) & (curvature[1:-1] > 0)
            lowest = np.where(is_lowest, energy(r)[1:-1], np.inf).argmin() + 1 if is_lowest.any() else len(r) // 2
            found.append((r[lowest], abs(curvature[lowest])))
        lengths, stiffnesses = np.transpose(found)
        return lengths, stiffnesses


def read_embedded_atom(file: Path | str) -> AtomTables:
    """Return the tables of a file in the format setfl (``eam.alloy``) or Finnis-Sinclair (``eam.fs``).

    Args:
        file: its path; which of both formats it is in follows from its length.

    Raises:
        UserError: if it cannot be read or is damaged; in one line with the file and the line.

    Example:
        >>> rows = ["toy", "", "", "1 X", "5 1 5 0.5 2", "1 1.0 1.0 fcc", "0 -1 -2 -3 -4", "4 3 2 1 0", "0 0 0 0 0"]
        >>> with open("toy.eam.alloy", "w") as file:
        ...     for row in rows:
        ...         print(row, file=file)
        >>> molecular.interactions.read_embedded_atom("toy.eam.alloy").embedding.tolist()
        [[0.0, -1.0, -2.0, -3.0, -4.0]]

    Reference: https://docs.lammps.org/pair_eam.html.
    """
    return parse_embedded_atom(read_text(file, "read_embedded_atom", purpose="for tables"), str(file))


def parse_embedded_atom(content: str, where: str) -> AtomTables:
    """Return the tables of the text of a file, as `read_embedded_atom`.

    Args:
        content: text of the file.
        where: the file, for messages.

    Raises:
        UserError: if it is damaged; in one line with the line of the file.
    """
    return _Reader(content, where).tables()


class _Reader:
    """Reads a file line by line."""

    def __init__(self, content: str, where: str) -> None:
        self.lines, self.where, self.next = content.splitlines(), one_line(where, 60), 0

    def refuse(self, problem: str, number: int | None = None) -> NoReturn:
        """Refuse the line that was read last, or another one, counted from 1."""
        raise UserError(f"{self.where}, line {number or max(self.next, 1)} {problem}")

    def line(self, meaning: str) -> list[str]:
        """Return the words of the next line."""
        if self.next >= len(self.lines):
            self.refuse(f"is the last one, and {meaning} is missing; give the whole file")
        self.next += 1
        return self.lines[self.next - 1].split()

    def number(self, word: str, meaning: str) -> float:
        """Return a finite number."""
        try:
            value = float(word.replace("D", "e").replace("d", "e"))
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.refuse(f"has {word[:30]!r} as {meaning}, which is no finite number; repair it")
        return value

    def column(self, count: int, meaning: str) -> np.ndarray:
        """Return the numbers of as many lines as they fill, (count,)."""
        values: list[float] = []
        while len(values) < count:
            words = self.line(f"{meaning} (number {len(values) + 1} of {count})")
            values += [self.number(word, meaning) for word in words]
        if len(values) > count:
            self.refuse(
                f"has {len(values) - count} numbers more than the {count} of {meaning}; check the numbers of line 5"
            )
        return np.array(values)

    def header(self) -> tuple[tuple[str, ...], list[float]]:
        """Return the names of the elements, and the numbers and steps of densities and distances with the cut-off."""
        self.next = 3
        words = self.line("the number and the names of the elements")
        if not words or not words[0].isdecimal() or int(words[0]) != len(words) - 1 or len(words) < 2:
            self.refuse("is not the number of elements and their names, such as '1 Cu'; the first three are comments")
        names = tuple(words[1:])
        if len(set(names)) < len(names):
            self.refuse("names an element twice; keep one")
        words = self.line("the numbers and steps of the tables")
        if len(words) < 5:
            self.refuse(f"has {len(words)} of 5 numbers: N_rho, d_rho, N_r, d_r and the cut-off")
        grid = [self.number(word, "a number of the grid") for word in words[:5]]
        if min(grid) <= 0 or any(value != int(value) or value < 5 for value in (grid[0], grid[2])):
            self.refuse("needs whole numbers of at least 5 densities and distances, and positive steps and cut-off")
        return names, grid

    def tables(self) -> AtomTables:
        """Return the tables."""
        names, (densities, density_step, distances, distance_step, cutoff) = self.header()
        count, rows, points = len(names), int(densities), int(distances)
        pairs = count * (count + 1) // 2 * points
        length = sum(len(line.split()) for line in self.lines[self.next :])
        alloy, by_pair = (count * (4 + rows + blocks * points) + pairs for blocks in (1, count))
        blocks = count if abs(length - by_pair) < abs(length - alloy) else 1
        embedding, made, masses = np.empty((count, rows)), np.empty((count, blocks, points)), np.empty(count)
        for kind, name in enumerate(names):
            words = self.line(f"the header of {name}")
            if len(words) < 3:
                self.refuse(f"is not the header of {name}: atomic number, mass, lattice constant and lattice")
            masses[kind] = self.number(words[1], f"the mass of {name}")
            embedding[kind] = self.column(rows, f"the embedding energy of {name}")
            for other in range(blocks):
                of = f" at {names[other]}" if blocks > 1 else ""
                made[kind, other] = self.column(points, f"the density of {name}{of}")
        pair = np.empty((count, count, points))
        for first in range(count):
            for second in range(first + 1):
                values = self.column(points, f"the pair energy of {names[first]} and {names[second]}")
                pair[first, second] = pair[second, first] = values
        if left := [line for line in self.lines[self.next :] if line.split()]:
            self.next += 1
            self.refuse(f"goes on with {left[0].split()[0][:30]!r} after the last table; check the numbers of line 5")
        # The file names the element that makes a density first, and the one that receives it second.
        density = np.broadcast_to(np.moveaxis(made, 1, 0), (count, count, points))
        return AtomTables(names, masses, cutoff, density_step, distance_step, embedding, density, pair)


_TABLES = "which has a range of its own and acts between all particles"


@part(
    keys={
        "file": text("file in the format setfl (`eam.alloy`) or Finnis-Sinclair (`eam.fs`) of LAMMPS"),
        "text": text("its content; by default it is read", None),
        "elements": named("element of a species, where it has another name", line("an element of the file")),
    },
    excludes=dict.fromkeys(("between", "cutoff", "ending", "switch_on", "tail", "method", "skin", "one_four"), _TABLES),
)
def embedded_atom_tables(file: str, text: str | None, elements: Mapping[str, str]) -> ManyBody:
    """Return the embedded-atom interaction of a file of tables as scenario files name it."""
    content = read_text(file, "interactions.file") if text is None else text
    tables = parse_embedded_atom(content, file)

    def made(atoms: Atoms) -> Interaction:
        for name in elements:
            known(name, atoms.names, "elements")
        chosen = tables.of([elements.get(name, name) for name in atoms.names])
        return tabulated_embedded_atom(chosen, species=atoms.species.tolist())

    lengths, stiffnesses = tables.bond()

    def bond() -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(lengths, float), jnp.asarray(stiffnesses, float)

    return ManyBody(made, lambda: jnp.asarray(tables.cutoff, float), bond, of_one_species=False)


def tabulated_embedded_atom(
    tables: AtomTables,
    *,
    species: Sequence[int] | None = None,
    parameter: str | None = None,
    method: Method = "auto",
    skin: float = 0.1,
    capacity: int | None = None,
) -> Interaction:
    """Return the embedded-atom interaction of tables.

    Beyond the largest density of the table an embedding energy goes on along its slope there.

    Args:
        tables: such as of `read_embedded_atom`, for the species in their order.
        species: species of each particle, integers in [0, S); ``None`` if all are the first.
        parameter: name of the branch of params with the tables, as of ``tables.values``, where they are to be swept or
            differentiated; ``None``: they are constants.
        method: as for `simkit.molecular.interactions.pair_interaction`.
        skin: of the list beyond the cut-off, in units of the cut-off.
        capacity: neighbors per particle that the list can hold; ``None`` for a capacity that suffices for a liquid.

    Raises:
        UserError: if a species is not in the tables; as for `simkit.molecular.interactions.embedded_atom`.

    Example:
        >>> r, rho = 0.1 * np.arange(31), 0.1 * np.arange(41)
        >>> tables = molecular.interactions.AtomTables(
        ...     ("X",), np.ones(1), cutoff=3.0, density_step=0.1, distance_step=0.1,
        ...     embedding=-rho[None] ** 2, density=(3 - r)[None, None], pair=r[None, None],
        ... )
        >>> acts, x = molecular.interactions.tabulated_embedded_atom(tables), jnp.array([[0.0, 0, 0], [1.5, 0, 0]])
        >>> print(f"{acts.energy(x, None, {}, acts.prepare(x, None, {})):.3f} = 1 - 2 (3 - 1.5)^2")
        -3.500 = 1 - 2 (3 - 1.5)^2

    Reference: https://docs.lammps.org/pair_eam.html.
    """
    count = len(tables.elements)
    for index in () if species is None else set(species):
        check_integer("species", index, 0, count - 1)
    kinds = (
        np.zeros((), np.int32)
        if species is None or count == 1
        else np.arange(count**2, dtype=np.int32).reshape(count, count)
    )
    each = np.zeros((), np.int32) if species is None else np.asarray(species, np.int32)

    def of(name: str, kind: np.ndarray) -> Callable[[Params], Mapping[str, jax.Array]]:
        def taken(params: Params) -> Mapping[str, Any]:
            values = tables.values[name] if parameter is None else params[parameter][name]
            return {"kind": jnp.asarray(kind), "cubics": jnp.ravel(_cubics(values))}

        return taken

    points, densities = tables.pair.shape[-1], tables.embedding.shape[-1]
    most = (densities - 1) * tables.density_step

    per_step = 1 / tables.distance_step

    def density(r: jax.Array, **table: jax.Array) -> jax.Array:
        return _interpolated(r * per_step, points, **table)

    def density_force(r: jax.Array, **table: jax.Array) -> jax.Array:
        return -per_step * _with_slope(r * per_step, points, **table)[1]

    def embedding(rho: jax.Array, **table: jax.Array) -> jax.Array:
        # The slope at the end of the last cubic.
        last = table["kind"] * (densities - 1) + densities - 2
        end = table["cubics"].astype(rho.dtype).reshape(-1, 4).at[last].get(mode="promise_in_bounds")
        slope = (end[..., 1] + 2 * end[..., 2] + 3 * end[..., 3]) / tables.density_step
        return _interpolated(rho / tables.density_step, densities, **table) + slope * jnp.maximum(rho - most, 0)

    def pair(r: jax.Array, **table: jax.Array) -> jax.Array:
        return _interpolated(r * per_step, points, **table) / jnp.where(r > 0, r, 1)

    def pair_force(r: jax.Array, **table: jax.Array) -> jax.Array:
        inverse = 1 / jnp.where(r > 0, r, 1)
        value, slope = _with_slope(r * per_step, points, **table)
        return (value * inverse - per_step * slope) * inverse

    # Forces by differentiation of energies would take half as long again.
    return embedded_atom(
        PairPotential(energy=density, force=density_force),
        embedding,
        PairPotential(energy=pair, force=pair_force),
        cutoff=tables.cutoff,
        parameters=of("pair", kinds),
        density_parameters=of("density", kinds),
        embedding_parameters=of("embedding", each),
        species=species,
        method=method,
        skin=skin,
        capacity=capacity,
    )


def _slopes(values: Any) -> Any:
    """Return the slopes per step at the points of tables, of their shape (..., M)."""
    numpy = np if isinstance(values, np.ndarray) else jnp
    ahead = values[..., 1:] - values[..., :-1]
    near = (values[..., 2:] - values[..., :-2]) / 2
    inner = (8 * (values[..., 3:-1] - values[..., 1:-3]) - (values[..., 4:] - values[..., :-4])) / 12
    return numpy.concatenate([ahead[..., :1], near[..., :1], inner, near[..., -1:], ahead[..., -1:]], axis=-1)


def _cubics(values: Any) -> Any:
    """Return the coefficients of the cubics between the points of tables, from the constant on, (..., M - 1, 4)."""
    numpy = np if isinstance(values, np.ndarray) else jnp
    slopes = _slopes(values)
    rise, start, end = values[..., 1:] - values[..., :-1], slopes[..., :-1], slopes[..., 1:]
    return numpy.stack([values[..., :-1], start, 3 * rise - 2 * start - end, start + end - 2 * rise], axis=-1)


def _interpolated(place: jax.Array, count: int, kind: jax.Array, cubics: jax.Array) -> jax.Array:
    """Return tables at places, see `_with_slope`."""
    return _with_slope(place, count, kind, cubics)[0]


def _with_slope(place: jax.Array, count: int, kind: jax.Array, cubics: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return tables at places counted in steps from the first point, constant beyond the last one, and their slopes.

    Args:
        place: of any shape.
        count: number of points of each table.
        kind: which table, of the shape of the places or scalar.
        cubics: of all tables, one after the other, flat.
    """
    # A place that is NaN, whose index would be out of bounds, is none of the first cubic either.
    below = jnp.where(place >= 0, jnp.minimum(jnp.floor(jax.lax.stop_gradient(place)), count - 2), 0)
    t = jnp.minimum(place - below, 1)
    at = kind * (count - 1) + below.astype(jnp.int32)
    # One row is read at once, and the barrier keeps it from being read again for each of its numbers.
    rows = cubics.astype(place.dtype).reshape(-1, 4).at[at].get(mode="promise_in_bounds")
    a, b, c, d = (computed_once_on_cpu(rows)[..., power] for power in range(4))
    slope = b + t * (2 * c + t * 3 * d)
    return a + t * (b + t * (c + t * d)), jnp.where(place - below <= 1, slope, 0)
