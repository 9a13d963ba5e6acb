"""Topology of molecules: bonds, angles, dihedrals and impropers as arrays of atoms, and the pairs that they exclude."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np

from simkit.core.arguments import check_distinct, check_shape
from simkit.errors import UserError

type Members = Sequence[Sequence[int]] | np.ndarray
type Exclusion = Literal["none", "bonds", "angles", "dihedrals"]
# Bonds between the atoms of the furthest pair that does not interact.
EXCLUSIONS = {"none": 0, "bonds": 1, "angles": 2, "dihedrals": 3}
# Atoms of one term.
SIZES = {"bonds": 2, "angles": 3, "dihedrals": 4, "impropers": 4}


@dataclasses.dataclass(frozen=True, eq=False)
class Topology:
    """Which atoms are bonded; see `molecule`, which derives angles and dihedrals of bonds, and `joined`.

    Attributes:
        count: number of atoms, N.
        bonds: int32, (K, 2).
        angles: int32, (K, 3), the vertex in the middle.
        dihedrals: int32, (K, 4), along three bonds.
        impropers: int32, (K, 4), in the order in which their angle is measured.
        molecule: index of the molecule of each atom, int32, (N,).

    Example:
        >>> water = molecular.bonded.molecule(3, [[0, 1], [0, 2]])
        >>> water.angles.tolist(), water.pairs_within("angles").tolist()
        ([[1, 0, 2]], [[0, 1], [0, 2], [1, 2]])
    """

    count: int
    bonds: np.ndarray
    angles: np.ndarray
    dihedrals: np.ndarray
    impropers: np.ndarray
    molecule: np.ndarray

    def pairs_within(self, exclude: Exclusion) -> np.ndarray:
        """Return the pairs of atoms joined by at most so many bonds, (K, 2), the lower index first, in order.

        Args:
            exclude: ``"bonds"`` one, ``"angles"`` two, ``"dihedrals"`` three; ``"none"`` for no pairs.

        Example:
            >>> [len(molecular.bonded.chain(4).pairs_within(each)) for each in ("bonds", "angles", "dihedrals")]
            [3, 5, 6]
        """
        shells = [self.pairs_at(bonds) for bonds in range(1, EXCLUSIONS[exclude] + 1)]
        pairs = np.concatenate([np.zeros((0, 2), np.int32), *shells])
        return pairs[np.lexsort(pairs.T[::-1])]

    def pairs_at(self, bonds: int) -> np.ndarray:
        """Return the pairs of atoms whose shortest path has that number of bonds, (K, 2), the lower index first.

        Args:
            bonds: 1, 2 or 3; 3 gives the 1-4 pairs.

        Example:
            >>> ring = molecular.bonded.molecule(4, [[0, 1], [1, 2], [2, 3], [3, 0]])
            >>> ring.pairs_at(2).tolist(), len(ring.pairs_at(3))
            ([[0, 2], [1, 3]], 0)
        """
        from scipy import sparse

        ends = np.concatenate([self.bonds, self.bonds[:, ::-1]])
        step = sparse.csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(self.count, self.count))
        # Pairs are numbered, so that those of shorter paths are removed as a set.
        atoms = np.arange(self.count, dtype=np.int64)
        near = atoms * (self.count + 1)
        shell = near
        for _ in range(bonds):
            first, second = np.divmod(shell, self.count)
            reached = sparse.csr_matrix((np.ones(len(shell)), (first, second)), shape=step.shape) @ step
            numbers = sparse.coo_matrix(reached)
            shell = np.setdiff1d(numbers.row.astype(np.int64) * self.count + numbers.col, near)
            near = np.union1d(near, shell)
        pairs = np.stack(np.divmod(shell, self.count), axis=1).astype(np.int32)
        return pairs[pairs[:, 0] < pairs[:, 1]]

    def paths(self, bonds: int) -> np.ndarray:
        """Return a shortest path between the atoms of each pair of `pairs_at`, int32, (K, bonds + 1).

        Args:
            bonds: 1, 2 or 3.

        Example:
            >>> molecular.bonded.chain(4).paths(3).tolist()
            [[0, 1, 2, 3]]
        """
        partners: list[list[int]] = [[] for _ in range(self.count)]
        for first, second in self.bonds.tolist():
            partners[first].append(second)
            partners[second].append(first)

        def path(start: int, end: int, left: int) -> list[int] | None:
            if not left:
                return [end] if start == end else None
            steps = (path(each, end, left - 1) for each in partners[start])
            return next(([start, *step] for step in steps if step), None)

        found = [path(first, second, bonds) for first, second in self.pairs_at(bonds).tolist()]
        return np.array(found, np.int32).reshape(-1, bonds + 1)

    def copies(self, number: int) -> "Topology":
        """Return the topology of that number of copies, one after the other."""
        return joined([self] * number)


def molecule(
    count: int,
    bonds: Members,
    *,
    angles: Members | Literal["all"] = "all",
    dihedrals: Members | Literal["all"] = "all",
    impropers: Members = (),
) -> Topology:
    """Return the topology of a molecule from its bonds.

    Args:
        count: number of atoms, N.
        bonds: pairs of atoms, (K, 2), from 0.
        angles: triples with the vertex in the middle, (K, 3), or ``"all"`` for every two bonds that share an atom.
        dihedrals: quadruples, (K, 4), or ``"all"`` for every three bonds in a row.
        impropers: quadruples, (K, 4).

    Raises:
        UserError: if an atom does not exist, occurs twice in a term, or a term is given twice.

    Example:
        >>> butane = molecular.bonded.molecule(4, [[0, 1], [1, 2], [2, 3]])
        >>> butane.angles.tolist(), butane.dihedrals.tolist()
        ([[0, 1, 2], [1, 2, 3]], [[0, 1, 2, 3]])
    """
    from scipy import sparse

    pairs = checked_members(bonds, "bonds", count)
    partners: list[list[int]] = [[] for _ in range(count)]
    for first, second in pairs.tolist():
        partners[first].append(second)
        partners[second].append(first)
    if isinstance(angles, str):
        angles = [
            (first, vertex, second)
            for vertex in range(count)
            for first, second in itertools.combinations(sorted(partners[vertex]), 2)
        ]
    if isinstance(dihedrals, str):
        dihedrals = [
            (first, second, third, fourth)
            for second, third in np.sort(pairs, axis=1).tolist()
            for first in sorted(partners[second])
            for fourth in sorted(partners[third])
            if len({first, second, third, fourth}) == 4
        ]
    graph = sparse.coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return Topology(
        count,
        pairs,
        checked_members(angles, "angles", count),
        checked_members(dihedrals, "dihedrals", count),
        checked_members(impropers, "impropers", count),
        sparse.csgraph.connected_components(graph, directed=False)[1].astype(np.int32),
    )


def chain(count: int) -> Topology:
    """Return the topology of a linear chain, whose atoms are bonded in their order.

    Args:
        count: number of atoms.

    Example:
        >>> len(molecular.bonded.chain(50).bonds)
        49
    """
    atoms = np.arange(count)
    return molecule(count, np.stack([atoms[:-1], atoms[1:]], axis=1))


def joined(parts: Sequence[Topology]) -> Topology:
    """Return the topology of molecules one after the other.

    Args:
        parts: topologies, such as those of two kinds of molecules.

    Example:
        >>> pair = molecular.bonded.joined([molecular.bonded.chain(2), molecular.bonded.chain(3)])
        >>> pair.bonds.tolist(), pair.molecule.tolist()
        ([[0, 1], [2, 3], [3, 4]], [0, 0, 1, 1, 1])
    """
    first = np.cumsum([0, *(part.count for part in parts)])
    before = np.cumsum([0, *(part.molecule.max(initial=-1) + 1 for part in parts)])

    def shifted(name: str) -> np.ndarray:
        arrays = [getattr(part, name) + start for part, start in zip(parts, first, strict=False)]
        return np.concatenate([np.zeros((0, SIZES[name]), np.int32), *arrays]).astype(np.int32)

    molecules = [part.molecule + start for part, start in zip(parts, before, strict=False)]
    index = np.concatenate([np.zeros(0, np.int32), *molecules]).astype(np.int32)
    bonds, angles, dihedrals, impropers = (shifted(name) for name in SIZES)
    return Topology(int(first[-1]), bonds, angles, dihedrals, impropers, index)


def checked_members(rows: Members, name: str, count: int, where: str = "") -> np.ndarray:
    """Return the atoms of each term, int32, (K, m).

    Args:
        rows: atoms of each.
        name: ``"bonds"``, ``"angles"``, ``"dihedrals"`` or ``"impropers"``.
        count: number of atoms of the molecule.
        where: what holds the rows, for messages; empty for the name.

    Raises:
        UserError: as for `molecule`.
    """
    size, path = SIZES[name], where or name
    for index, row in enumerate(rows):
        at = f"{path}[{index}]"
        check_shape(at, row, f"{size} atoms", (size,))
        if not all(0 <= atom < count for atom in row):
            raise UserError(f"{at} = {np.asarray(row).tolist()} names no atom; the atoms are 0 to {count - 1}")
        check_distinct(at, map(int, row))
    array = np.asarray(rows, np.int32).reshape(-1, size)
    if name != "impropers":
        ordered = np.where(array[:, :1] < array[:, -1:], array, array[:, ::-1])
        check_distinct(path, map(tuple, ordered.tolist()))
    return array
