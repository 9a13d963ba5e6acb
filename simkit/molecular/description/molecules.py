"""Molecules of a system: their atoms, topology, and the pairs that do not interact because they are bonded."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from simkit.core.arguments import check_distinct
from simkit.core.settings import Settings
from simkit.errors import known
from simkit.molecular.bonded.sites import VirtualSites
from simkit.molecular.bonded.topology import SIZES, Topology, checked_members, molecule
from simkit.molecular.structures.extended_xyz import parse_extended_xyz

# Kinds of terms by their number of atoms.
OF_SIZE = {2: "bonds", 3: "angles", 4: "dihedrals"}
# How far the sum of the weights of a virtual site may be from 1, by rounding of what is written.
SUM_OF_WEIGHTS = 1e-6


@dataclasses.dataclass(frozen=True)
class MoleculeKind:
    """Molecules of one kind, whose particles follow each other.

    Attributes:
        settings: its settings.
        species: index of the species of each atom of one molecule, int32, (n,).
        topology: of one molecule.
        count: number of molecules.
        first: index of the first particle of the first of them.
        shape: coordinates of the atoms of one molecule, (n, d); ``None`` where there are none.
    """

    settings: Settings
    species: np.ndarray
    topology: Topology
    count: int
    first: int
    shape: np.ndarray | None

    @property
    def size(self) -> int:
        """Number of atoms of one molecule, n."""
        return len(self.species)

    @property
    def particles(self) -> np.ndarray:
        """Indices of its particles, (count, n)."""
        return self.first + np.arange(self.count * self.size).reshape(self.count, self.size)

    def repeated(self, members: np.ndarray) -> np.ndarray:
        """Return the particles of terms of all its molecules, (count K, m), from the atoms of those of one, (K, m)."""
        starts = self.first + self.size * np.arange(self.count)
        return (members[None] + starts[:, None, None]).reshape(-1, members.shape[1])

    def members(self, kind: str, table: Settings) -> np.ndarray:
        """Return the atoms of each term of a table, (K, m).

        Args:
            kind: ``"bonds"``, ``"pairs"``, ``"angles"``, ``"dihedrals"`` or ``"impropers"``.
            table: one entry of that key.

        Raises:
            UserError: if an atom does not exist, occurs twice, a pair is bonded, or there are no terms.
        """
        rows = "bonds" if kind == "pairs" else kind  # what is checked of their atoms is the same
        members = _members(rows, table, self.size) if rows in ("bonds", "impropers") else table["members"]
        if isinstance(members, str):
            members = getattr(self.topology, kind)
        members = checked_members(members, rows, self.size, table.path("members"))
        if kind == "pairs":
            bonded = set(map(frozenset, self.topology.bonds.tolist()))
            if (wrong := next((pair for pair in members.tolist() if set(pair) in bonded), None)) is not None:
                raise table.refuse("members", f"has {wrong}, atoms that are bonded; give its energy to the bond")
        if not len(members):
            raise table.refuse("members", f"gives no {kind}; leave the table out")
        return members

    def sites(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the virtual sites and their parents, (K, 1 + m) of one molecule, and the weights of these, (m,)."""
        return [(_sites(table, self.size), np.array(table["weights"])) for table in self.settings["sites"]]

    def rigid(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rigid bonds of one molecule, (K, 2), and which of its lengths each has, (K,)."""
        each = [np.asarray(_members("bonds", table, self.size)) for table in self.settings["rigid"]]
        rows = np.concatenate([np.zeros((0, 2), int), *each])
        return rows, np.repeat(np.arange(len(each)), [len(rows) for rows in each])

    def triangle(self) -> tuple[np.ndarray, int, int] | None:
        """Return apex and ends of a rigid isosceles triangle, and which of its lengths are those of legs and base.

        ``None`` for molecules of another shape, or with ends of two species.
        """
        bonds, which = self.rigid()
        if self.size != 3 or len(bonds) != 3 or len(np.unique(np.sort(bonds, axis=1), axis=0)) != 3:
            return None
        counts = np.bincount(which)
        if sorted(counts.tolist()) != [1, 2]:
            return None
        ends = bonds[which == counts.argmin()][0]
        atoms = np.concatenate([np.setdiff1d(np.arange(3), ends), ends])
        return (atoms, int(counts.argmax()), int(counts.argmin())) if len(set(self.species[ends])) == 1 else None

    def measured(self) -> dict[str, np.ndarray]:
        """Return the particles of each coordinate of the first molecule that is measured, by name.

        Raises:
            UserError: if an atom does not exist or occurs twice; names the key.
        """
        where = self.settings.path("measured")
        return {
            name: self.first + checked_members([atoms], OF_SIZE[len(atoms)], self.size, f"{where}.{name}")[0]
            for name, atoms in self.settings["measured"].items()
        }

    def tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bond by which each atom but the first of a part hangs on those before it.

        Returns:
            Parent of each atom, (n,), itself for an atom that hangs on none; and the (n, n) matrix of 0 and 1 whose row
            is the path of an atom: the atoms whose bonds to their parents lead to it.
        """
        parent, partners = np.arange(self.size), [[] for _ in range(self.size)]
        for one, other in self.topology.bonds.tolist():
            partners[one].append(other)
            partners[other].append(one)
        path, is_reached = np.zeros((self.size, self.size)), np.zeros(self.size, bool)
        for root in range(self.size):
            waiting = [] if is_reached[root] else [root]
            is_reached[root] = True
            while waiting:
                atom = waiting.pop(0)
                for other in partners[atom]:
                    if not is_reached[other]:
                        is_reached[other], parent[other] = True, atom
                        path[other] = path[atom]
                        path[other, other] = 1
                        waiting.append(other)
        return parent, path


@dataclasses.dataclass(frozen=True)
class Molecules:
    """All molecules of a system, whose particles come before single ones.

    Attributes:
        kinds: kinds of molecules in the order of the file.
    """

    kinds: tuple[MoleculeKind, ...]

    @property
    def species(self) -> np.ndarray:
        """Index of the species of each particle of the molecules, int32."""
        return np.concatenate([np.zeros(0, np.int32), *(np.tile(kind.species, kind.count) for kind in self.kinds)])

    @property
    def count(self) -> int:
        """Number of molecules."""
        return sum(kind.count for kind in self.kinds)

    @property
    def index(self) -> np.ndarray:
        """Index of the molecule of each particle of the molecules."""
        sizes = np.repeat([kind.size for kind in self.kinds], [kind.count for kind in self.kinds])
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def bonds(self) -> np.ndarray:
        """Pairs of bonded particles, (K, 2)."""
        return self._pairs([kind.topology.bonds for kind in self.kinds])

    @property
    def sites(self) -> VirtualSites | None:
        """The virtual sites; ``None`` if there are none."""
        tables = [(kind.repeated(rows), weights) for kind in self.kinds for rows, weights in kind.sites()]
        if not tables:
            return None
        most = max(len(weights) for _, weights in tables)
        # Of fewer parents the first one fills the row, without weight.
        rows = [np.pad(rows, [(0, 0), (0, most + 1 - rows.shape[1])], constant_values=-1) for rows, _ in tables]
        members = np.concatenate(rows)
        members = np.where(members < 0, members[:, 1:2], members)
        weights = [np.tile(np.pad(each, (0, most - len(each))), (len(rows), 1)) for rows, each in tables]
        return VirtualSites(members[:, 0], members[:, 1:], np.concatenate(weights))

    @property
    def excluded(self) -> np.ndarray:
        """Pairs of particles that do not interact, (K, 2) with the lower index first."""
        return self._pairs([kind.topology.pairs_within(kind.settings["exclude"]) for kind in self.kinds])

    @property
    def one_four(self) -> np.ndarray:
        """Pairs of particles three bonds apart, (K, 2) with the lower index first."""
        return self._pairs([kind.topology.pairs_at(3) for kind in self.kinds])

    def _pairs(self, of_kinds: list[np.ndarray]) -> np.ndarray:
        rows = [kind.repeated(pairs) for kind, pairs in zip(self.kinds, of_kinds, strict=True)]
        return np.concatenate([np.zeros((0, 2), int), *rows])


def molecules_of(table: Mapping[str, Settings], species: tuple[str, ...]) -> Molecules:
    """Return the molecules that settings describe.

    Args:
        table: settings of each kind of molecules.
        species: names of the species.

    Raises:
        UserError: if a species is unknown, or bonds or coordinates do not fit the atoms; names the key.
    """
    kinds: list[MoleculeKind] = []
    first = 0
    for settings in table.values():
        atoms = settings["atoms"]
        names = [name for name, many in atoms.items() for _ in range(many)] if isinstance(atoms, dict) else list(atoms)
        for name in names:
            known(name, species, settings.path("atoms"), "species")
        if not names:
            raise settings.refuse("atoms", "names no atom; name at least one species")
        written = (*settings["bonds"], *settings["rigid"])
        bonds = [_members("bonds", each, len(names)) for each in written]
        for each, table_of in zip(bonds, written, strict=True):
            checked_members(each, "bonds", len(names), table_of.path("members"))
        sites = [_sites(each, len(names)) for each in settings["sites"]]
        check_distinct(settings.path("sites"), placed := [int(atom) for rows in sites for atom in rows[:, 0]])
        if on_sites := sorted({int(atom) for rows in sites for atom in rows[:, 1:].flat} & set(placed)):
            raise settings.refuse(
                "sites", f"place one at atom {on_sites[0]}, a site itself; name the atoms it is between"
            )
        bonds += [rows[:, :2] for rows in sites]
        every = np.concatenate([np.zeros((0, 2), int), *map(np.asarray, bonds)])
        checked_members(every, "bonds", len(names), settings.path("bonds"))
        indices = np.array([species.index(name) for name in names], np.int32)
        topology = molecule(len(names), every)
        kind = MoleculeKind(settings, indices, topology, settings["count"], first, _shape(settings, tuple(names)))
        kinds.append(kind)
        first += kind.count * kind.size
    return Molecules(tuple(kinds))


def _members(kind: str, table: Settings, size: int) -> np.ndarray:
    """Return bonds or impropers as they are written, bonds perhaps as those of a chain."""
    if table["members"] == "chain":
        atoms = np.arange(size)
        return np.stack([atoms[:-1], atoms[1:]], axis=1)
    return checked_members(table["members"], kind, size, table.path("members")).reshape(-1, SIZES[kind])


def _sites(table: Settings, size: int) -> np.ndarray:
    """Return the virtual sites of a table and their parents, (K, 1 + m).

    Raises:
        UserError: if numbers of atoms and weights differ, an atom does not exist, or the weights do not sum to 1.
    """
    rows, weights = table["members"], table["weights"]
    if len(weights) < 2 or abs(sum(weights) - 1) > SUM_OF_WEIGHTS:
        raise table.refuse("weights", f"are {len(weights)} that sum to {sum(weights):g}; give at least 2 that sum to 1")
    for row in rows:
        if len(row) != 1 + len(weights) or len(set(row)) < len(row) or max(row) >= size:
            problem = f"has {list(row)}; give a site and {len(weights)} other atoms, of 0 to {size - 1}"
            raise table.refuse("members", problem)
    return np.array(rows, int).reshape(-1, 1 + len(weights))


def _shape(settings: Settings, names: tuple[str, ...]) -> np.ndarray | None:
    """Return the coordinates of one molecule, (n, d); ``None`` where there are none."""
    key = "structure" if settings["structure"] is not None else "coordinates"
    if settings[key] is None:
        return None
    if key == "structure":
        frame = parse_extended_xyz(settings[key], settings.path(key))[-1]
        position = np.asarray(frame.position, float)
        if frame.symbols != names:
            problem = f"has the atoms {' '.join(frame.symbols)[:60]}, and the molecule {' '.join(names)[:60]}"
            raise settings.refuse(key, f"{problem}; make them the same, in one order")
        return position
    rows = settings[key]
    if len(rows) != len(names) or len({len(row) for row in rows}) > 1:
        problem = f"has {len(rows)} places for {len(names)} atoms"
        raise settings.refuse(key, f"{problem}; give one of [x, y] or [x, y, z] for each")
    return np.array(rows, float)


def angle_names(table: Mapping[str, Settings]) -> tuple[str, ...]:
    """Return the names of the angles of which energies by expression take, such as ``theta``."""
    tables = {
        "theta": [term for each in table.values() for term in each["angles"]],
        "phi": [term for each in table.values() for key in ("dihedrals", "impropers") for term in each[key]],
    }
    return tuple(name for name, terms in tables.items() if any(each["potential"] == "energy" for each in terms))
