"""Molecules at random: chains as random walks, given shapes turned at random, and the steps that part overlaps."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Params
from simkit.molecular.description.bonded_energies import BondedEnergy
from simkit.molecular.description.formulas import Names
from simkit.molecular.description.molecules import MoleculeKind, Molecules
from simkit.molecular.description.particles import Particles
from simkit.molecular.potentials import PairPotential


class Walk(NamedTuple):
    """Molecules without coordinates, whose bonds point anywhere at first.

    Attributes:
        particles: (count, n).
        path: 0 and 1, (n, n): row i selects the bonds that lead from the first atom to atom i.
        length: length of the bond of each atom to the one before it, (n,); zero for the first.
        bonds: pairs of particles, (K, 2): those bonded, and the ends of angles whose potential declares one.
        lengths: of the bonds, and the distances of the ends, (K,).
    """

    particles: np.ndarray
    path: np.ndarray
    length: np.ndarray
    bonds: np.ndarray
    lengths: np.ndarray


class Shape(NamedTuple):
    """Molecules with coordinates, which are turned and moved as a whole.

    Attributes:
        particles: (count, n).
        places: of the atoms about their center, (n, d).
        radius: distance of the furthest atom from the center, above zero.
    """

    particles: np.ndarray
    places: np.ndarray
    radius: float


@dataclasses.dataclass(frozen=True)
class Packing:
    """Molecules to be placed at random.

    Attributes:
        walks: those without coordinates.
        shapes: those with coordinates.
        apart: pairs of particles whose distance is not looked at, since they are of one shape, bonded or excluded,
            (K, 2).
        count: number of particles, N.
    """

    walks: tuple[Walk, ...]
    shapes: tuple[Shape, ...]
    apart: np.ndarray
    count: int

    def drawn(self, position: jax.Array, key: jax.Array) -> jax.Array:
        """Return positions in which molecules stand where their first atoms are, (N, d).

        Args:
            position: positions of single particles and first atoms, (N, d).
            key: random key.
        """
        kind, dimension = position.dtype, position.shape[1]
        for index, walk in enumerate(self.walks):
            heading = jax.random.normal(jax.random.fold_in(key, index), (*walk.particles.shape, dimension), kind)
            heading = heading / jnp.sqrt(jnp.sum(heading**2, axis=-1, keepdims=True))
            steps = heading * jnp.asarray(walk.length, kind)[:, None]
            offsets = jnp.einsum("ij,mjd->mid", jnp.asarray(walk.path, kind), steps, precision="highest")
            position = position.at[walk.particles].set(position[walk.particles[:, :1]] + offsets)
        for index, shape in enumerate(self.shapes):
            turn = jax.random.normal(jax.random.fold_in(key, len(self.walks) + index), (len(shape.particles), 4), kind)
            offsets = _oriented(jnp.asarray(shape.places, kind), turn)
            center = position[shape.particles[:, 0]][:, None]
            position = position.at[shape.particles].set(center + offsets)
        return position

    def coordinates(self, position: jax.Array) -> jax.Array:
        """Return the unknowns that part overlaps: positions, and turns of shapes, times their radius, that are zero."""
        turns = sum(len(shape.particles) for shape in self.shapes)
        return jnp.concatenate([position, jnp.zeros((turns, position.shape[1]), position.dtype)])

    def positions(self, unknowns: jax.Array, start: jax.Array) -> jax.Array:
        """Return the positions of unknowns, (N, d): of a shape its first atom is moved, and all are turned about it.

        Args:
            unknowns: of `coordinates`, moved.
            start: positions to which these belong, (N, d).
        """
        position, first = unknowns[: self.count], self.count
        for shape in self.shapes:
            last = first + len(shape.particles)
            turn = unknowns[first:last] / (2 * shape.radius)
            anchor = shape.particles[:, :1]
            offsets = _turned(start[shape.particles] - start[anchor], turn)
            position = position.at[shape.particles].set(position[anchor] + offsets)
            first = last
        return position

    def strain(self, position: jax.Array) -> jax.Array:
        """Return the energy of stretched bonds of walks, with relative lengths and a stiffness of 1."""
        total = jnp.zeros((), position.dtype)
        for walk in self.walks:
            first, second = (position[atoms] for atoms in walk.bonds.T)
            squared = jnp.sum((first - second) ** 2, axis=1) / jnp.asarray(walk.lengths, position.dtype) ** 2
            total = total + jnp.sum((jnp.sqrt(squared) - 1) ** 2) / 2
        return total


def _oriented(places: jax.Array, turn: jax.Array) -> jax.Array:
    """Return a shape in random orientations, (M, n, d), of normal numbers (M, 4): quaternions, or angles in a plane."""
    if places.shape[1] == 2:
        cosine, sine = (turn[:, :2] / jnp.sqrt(jnp.sum(turn[:, :2] ** 2, axis=1, keepdims=True))).T[..., None]
        x, y = places.T
        return jnp.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)
    real, imaginary = turn[:, None, :1], turn[:, None, 1:]
    return _rotated(jnp.broadcast_to(places, (len(turn), *places.shape)), real, imaginary)


def _turned(vectors: jax.Array, turn: jax.Array) -> jax.Array:
    """Return vectors (M, n, d) turned by ``2 arctan |t|`` about t, (M, d); in a plane about the first of t."""
    if vectors.shape[-1] == 3:
        return _rotated(vectors, jnp.ones((len(turn), 1, 1), turn.dtype), turn[:, None])
    t, (x, y) = turn[:, :1], jnp.moveaxis(vectors, -1, 0)
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return jnp.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)


def _rotated(vectors: jax.Array, real: jax.Array, imaginary: jax.Array) -> jax.Array:
    """Return vectors (M, n, 3) rotated by quaternions of any length."""
    once = jnp.cross(imaginary, vectors)
    size = real**2 + jnp.sum(imaginary**2, axis=-1, keepdims=True)
    return vectors + 2 / size * (real * once + jnp.cross(imaginary, once))


def packing_of(
    particles: Particles, energies: Sequence[BondedEnergy], names: Names, params: Params, dimension: int
) -> Packing | None:
    """Return the molecules that are placed at random; ``None`` if there are none.

    Args:
        particles: the particles.
        energies: bonded energies, of which bonds without a length of their own take it.
        names: names that formulas may use.
        params: default parameters.
        dimension: dimension of space.

    Raises:
        UserError: if coordinates are of another dimension, or a bond has no length.
    """
    molecules = particles.molecules
    if not molecules.kinds:
        return None
    walks, shapes, apart = [], [], [particles.excluded, molecules.bonds]
    for kind in molecules.kinds:
        if kind.shape is None:
            walks.append(_walk(kind, molecules, energies, names, params))
            continue
        key = "structure" if kind.settings["structure"] is not None else "coordinates"
        places = kind.shape
        if places.shape[1] == 3 and dimension == 2 and not places[:, 2].any():
            places = places[:, :2]
        if places.shape[1] != dimension:
            problem = f"has {places.shape[1]} dimensions, and the system {dimension}; make them the same"
            raise kind.settings.refuse(key, problem)
        places = places - places.mean(axis=0)
        shapes.append(Shape(kind.particles, places, float(np.linalg.norm(places, axis=1).max()) or 1.0))
        apart.append(kind.repeated(np.stack(np.triu_indices(kind.size, 1), axis=1)))
    pairs = np.unique(np.sort(np.concatenate(apart), axis=1), axis=0)
    return Packing(tuple(walks), tuple(shapes), pairs, particles.count)


def _walk(
    kind: MoleculeKind, molecules: Molecules, energies: Sequence[BondedEnergy], names: Names, params: Params
) -> Walk:
    """Return molecules whose bonds have the length of their settings, or that of the bonds' potential."""
    parent, path = kind.tree()
    loose = np.flatnonzero(parent[1:] == np.arange(1, kind.size))
    if len(loose):
        problem = f"is missing: atom {loose[0] + 1} (the first is 0) is not bonded to those before it; give all places"
        raise kind.settings.refuse("coordinates", problem)
    bonds = kind.topology.bonds
    if kind.settings["bond_length"] is not None:
        lengths = np.full(len(bonds), float(names.number(kind.settings["bond_length"]).number(params)))
    else:
        lengths = _declared_lengths(kind, bonds, energies, params)
    of_bond = {tuple(sorted(bond)): length for bond, length in zip(bonds.tolist(), lengths, strict=True)}
    own = [of_bond.get((min(atom, up), max(atom, up)), 0.0) for atom, up in enumerate(parent.tolist())]
    ends, apart = _bent(kind, of_bond, energies, params)
    joined = np.concatenate([bonds, ends]), np.concatenate([lengths, apart])
    return Walk(kind.particles, path, np.array(own), kind.repeated(joined[0]), np.tile(joined[1], kind.count))


def _bent(
    kind: MoleculeKind, of_bond: dict[tuple[int, ...], float], energies: Sequence[BondedEnergy], params: Params
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the angles of one molecule that potentials declare, (K, 2), and their distances, (K,)."""
    ends, apart = [], []
    for energy in energies:
        rest = getattr(energy.potential, "rest", None)
        if rest is None:
            continue
        members = energy.terms.members - kind.first
        kinds = np.zeros(len(members), int) if energy.terms.kinds is None else energy.terms.kinds
        angles = np.ravel(rest(**energy.values(params)))
        for (first, vertex, last), which in zip(members.tolist(), kinds.tolist(), strict=True):
            legs = [of_bond.get((min(vertex, end), max(vertex, end)), 0.0) for end in (first, last)]
            # Not terms of other molecules, nor of atoms that are not bonded.
            if all(legs):
                ends.append((first, last))
                apart.append(abs(legs[0] - legs[1] * np.exp(1j * angles[which])))
    return np.array(ends, int).reshape(-1, 2), np.array(apart)


def _declared_lengths(
    kind: MoleculeKind, bonds: np.ndarray, energies: Sequence[BondedEnergy], params: Params
) -> np.ndarray:
    """Return the length of each bond of one molecule that its potential declares, (K,)."""
    of_bond: dict[tuple[int, ...], float] = {}
    for energy in energies:
        potential = energy.potential
        if not isinstance(potential, PairPotential) or potential.bond is None:
            continue
        values = energy.values(params)
        length, _ = potential.bond(**values)
        # Where a bond is torn at its declared length this is no length to begin with.
        is_finite = jnp.isfinite(potential.energy(length, **values))
        each = np.where(is_finite, length, 0.0)
        kinds = np.zeros(len(energy.terms.members), int) if energy.terms.kinds is None else energy.terms.kinds
        for pair, number in zip(energy.terms.members.tolist(), kinds.tolist(), strict=True):
            of_bond[tuple(pair)] = float(np.ravel(each)[number] if each.ndim else each)
    lengths = np.array([of_bond.get(tuple((bond + kind.first).tolist()), 0.0) for bond in bonds])
    if len(lengths) and not (lengths > 0).all():
        first, second = bonds[int(np.argmin(lengths))].tolist()
        problem = f"is missing, and the potential of the bond of atoms {first} and {second} declares none that it takes"
        raise kind.settings.refuse("bond_length", f"{problem}; give it, or coordinates")
    return lengths


def overlapping(packing: Packing | None, apart: np.ndarray) -> np.ndarray:
    """Return a table of distances, (N, N), that is infinite for the pairs whose distance is not looked at."""
    if packing is not None and len(packing.apart):
        first, second = packing.apart.T
        apart[first, second] = apart[second, first] = np.inf
    return apart


def unwrapped(fractions: np.ndarray, molecules: Molecules, periodic: Sequence[bool]) -> np.ndarray:
    """Return positions in units of the edges of a cell in which molecules are whole, (N, d).

    Args:
        fractions: (N, d); bonded atoms may be on opposite sides.
        molecules: the molecules.
        periodic: axes along which the cell repeats.
    """
    fractions = np.array(fractions, float)
    for kind in molecules.kinds:
        parent, path = kind.tree()
        places = fractions[kind.particles]
        steps = places - places[:, parent]
        steps -= np.where(np.asarray(periodic), np.round(steps), 0)
        root = parent
        while (root != parent[root]).any():
            root = parent[root]
        fractions[kind.particles] = places[:, root] + np.einsum("ij,mjd->mid", path, steps)
    return fractions


def anchors(particles: Particles) -> np.ndarray:
    """Return the particle with which each one moves when the cell changes: the first atom of its molecule, (N,)."""
    anchor = np.arange(particles.count)
    for kind in particles.molecules.kinds:
        anchor[kind.particles] = kind.particles[:, :1]
    return anchor
