"""Systems read from elsewhere: the keywords of ``molecular.system``, with molecules found from bonded terms."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simkit.core.simulation import Simulation
from simkit.molecular.description.system import system


@dataclasses.dataclass(frozen=True, eq=False)
class ImportedSystem:
    """A system of another program as data.

    Attributes:
        settings: keywords of `simkit.molecular.system`: numbers, texts, lists and tables of them. Coefficients are
            ``parameters``, which may be swept and differentiated.
        order: index in the source, from 0, of each particle, int32, (N,): molecules of one kind follow each other.
        velocity: of each particle, (N, d), in the units of the source; ``None`` if it has none. Dynamics draws its own.

    Example:
        >>> pair = '''two atoms
        ...
        ... 2 atoms
        ... 1 atom types
        ... 0 9 xlo xhi
        ... 0 9 ylo yhi
        ... 0 9 zlo zhi
        ...
        ... Atoms # atomic
        ...
        ... 1 1 1.0 0.5 0.5
        ... 2 1 8.9 0.5 0.5
        ... '''
        >>> argon = molecular.from_lammps(pair, '''
        ... pair_style lj/cut 2.5
        ... pair_coeff 1 1 1.0 1.0
        ... mass 1 1.0
        ... ''')
        >>> isinstance(argon, molecular.imports.ImportedSystem), argon.order.tolist()
        (True, [0, 1])
        >>> argon.settings["parameters"]
        {'epsilon_1_1': 1.0, 'sigma_1_1': 1.0}
    """

    settings: dict[str, Any]
    order: np.ndarray
    velocity: np.ndarray | None = None

    def system(self, *, parameters: Mapping[str, Any] | None = None, **further: Any) -> Simulation:
        """Return the simulation, see `simkit.molecular.system`.

        Args:
            parameters: further parameters, or other values of those of the source.
            **further: further keywords, such as ``task`` and ``dynamics``, or others in place of those of the source.

        Raises:
            UserError: as for `simkit.molecular.system`.

        Example:
            >>> rows = ("two atoms", "2 atoms", "1 atom types", "0 9 xlo xhi", "0 9 ylo yhi", "0 9 zlo zhi")
            >>> rows += ("Masses", "1 1.0", "Atoms # atomic", "1 1 1 1 1", "2 1 2.2 1 1")
            >>> read = molecular.from_lammps(chr(10).join(rows), {"pair_style": "lj/cut 2.5", "pair_coeff": "1 1 2 1"})
            >>> sorted(read.system(relax={"force_tolerance": 1e-5}).params)
            ['epsilon_1_1', 'sigma_1_1']
        """
        every = {**self.settings["parameters"], **(parameters or {})}
        keywords: dict[str, Any] = {**self.settings, **further, "parameters": every}
        return system(**keywords)


class Terms(NamedTuple):
    """Terms of one energy.

    Attributes:
        key: of a molecule's settings: ``"bonds"``, ``"angles"``, ``"dihedrals"``, ``"impropers"``, ``"rigid"``.
        table: entries of that key without the members.
        members: atoms of each term, (K, m).
    """

    key: str
    table: Mapping[str, Any]
    members: np.ndarray


class FoundMolecules(NamedTuple):
    """Molecules found from terms.

    Attributes:
        molecules: settings of each kind of molecules, by name.
        singles: number of atoms of each species that belong to no molecule, (S,).
        order: index of each particle in the source, int32, (N,).
    """

    molecules: dict[str, Any]
    singles: np.ndarray
    order: np.ndarray


def molecules_from(
    species: np.ndarray, names: Sequence[str], terms: Sequence[Terms], usual: Mapping[str, Any]
) -> FoundMolecules:
    """Return atoms that terms join as molecules, those of equal atoms and terms as one kind.

    Args:
        species: index of the species of each atom, (N,).
        names: of the species.
        terms: all terms.
        usual: further settings of every kind.
    """
    from scipy import sparse

    count = len(species)
    ends = [each.members[:, [a, a + 1]] for each in terms for a in range(each.members.shape[1] - 1)]
    joins = np.concatenate([np.zeros((0, 2), int), *ends])
    graph = sparse.coo_matrix((np.ones(len(joins)), (joins[:, 0], joins[:, 1])), shape=(count, count))
    molecule = sparse.csgraph.connected_components(graph, directed=False)[1]
    by_molecule = np.argsort(molecule, kind="stable")
    sizes = np.bincount(molecule)
    firsts = np.cumsum(sizes) - sizes
    place = np.empty(count, int)
    place[by_molecule] = np.arange(count) - np.repeat(firsts, sizes)
    atoms = np.split(by_molecule, firsts[1:])
    # Rows of each molecule in its own numbering, sorted, so that equal molecules have equal rows.
    rows: list[list[np.ndarray]] = []
    for each in terms:
        of_each = molecule[each.members[:, 0]]
        local = place[each.members]
        sequence = np.lexsort((*local.T[::-1], of_each))
        cuts = np.searchsorted(of_each[sequence], np.arange(1, len(sizes)))
        rows.append(np.split(local[sequence], cuts))
    kinds: dict[tuple, list[int]] = {}
    for index in np.flatnonzero(sizes > 1).tolist():
        signature = (species[atoms[index]].tobytes(), *(each[index].tobytes() for each in rows))
        kinds.setdefault(signature, []).append(index)
    molecules: dict[str, Any] = {}
    for number, members in enumerate(kinds.values(), 1):
        one = members[0]
        of_atoms = [names[kind] for kind in species[atoms[one]]]
        alike = len(set(of_atoms)) == 1
        settings: dict[str, Any] = {"atoms": {of_atoms[0]: len(of_atoms)} if alike else of_atoms}
        settings |= {"count": len(members), **usual}
        for each, found in zip(terms, rows, strict=True):
            if len(found[one]):
                settings.setdefault(each.key, []).append({**each.table, "members": found[one].tolist()})
        molecules[f"molecule_{number}"] = settings
    single = np.flatnonzero(sizes[molecule] == 1)
    single = single[np.argsort(species[single], kind="stable")]
    order = np.concatenate([*(atoms[index] for members in kinds.values() for index in members), single])
    return FoundMolecules(molecules, np.bincount(species[single], minlength=len(names)), order.astype(np.int32))


def species_settings(
    found: FoundMolecules, species: np.ndarray, names: Sequence[str], values: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Return the settings of all species.

    Args:
        found: molecules.
        species: index of the species of each atom of the source, (N,).
        names: of the species.
        values: ``mass``, ``charge`` and so on, of each atom of the source, (N,).
    """
    ordered, tables = species[found.order], {}
    for kind, name in enumerate(names):
        table: dict[str, Any] = {"count": int(found.singles[kind])} if found.singles[kind] else {}
        for key, value in values.items():
            numbers = value[found.order][ordered == kind]
            table[key] = float(numbers[0]) if (numbers == numbers[0]).all() else numbers.tolist()
        tables[name] = table
    return tables


def text_of_positions(position: np.ndarray) -> str:
    """Return positions, (N, d), as text that is read back unchanged."""
    return "\n".join(" ".join(map(repr, row)) for row in position.tolist())
