"""Structures: atoms with cell and further arrays, as NumPy arrays and as ``Atoms`` of ASE."""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    from ase import Atoms

MAX_ATOMS = 100_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
# Names with a meaning of their own in ASE and extended XYZ.
RESERVED_ARRAYS = frozenset(
    ("species", "symbols", "numbers", "Z", "pos", "positions", "move_mask", "initial_charges", "charge")
)
RESERVED_INFO = frozenset(("Lattice", "Properties", "pbc", "uid"))
# Name of the array of the atoms that are held in place, (N,) booleans.
FROZEN = "frozen"


@dataclasses.dataclass(frozen=True, eq=False)
class Structure:
    """Contents of one frame of a structure file.

    Attributes:
        symbols: chemical symbol of each atom; ``"X"`` for an atom without species.
        position: length, (N, 3), or (N, 2) for a structure in the plane.
        cell: lattice vectors as rows, length, (d, d); ``None`` for free space.
        periodic: whether the cell is periodic, one flag for all lattice vectors or one for each.
        arrays: further arrays, one entry per atom, by name, (N,) or (N, k); ``frozen``, booleans, holds atoms in place.
        info: numbers, words and arrays of the whole structure, by name.

    Example:
        >>> water = molecular.structures.Structure(
        ...     symbols=("O", "H", "H"),
        ...     position=np.array([[0.0, 0.0, 0.0], [0.76, 0.59, 0.0], [-0.76, 0.59, 0.0]]),
        ...     cell=None,
        ...     periodic=False,
        ... )
        >>> print(f"O-H {np.linalg.norm(water.position[1] - water.position[0]):.2f} A")
        O-H 0.96 A
    """

    symbols: tuple[str, ...]
    position: np.ndarray
    cell: np.ndarray | None = None
    periodic: bool | tuple[bool, ...] = False
    arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    info: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse arrays with inconsistent shapes and reserved names."""
        if problem := next(self._problems(), ""):
            raise UserError(problem)

    def _problems(self) -> Iterator[str]:
        """Yield what is wrong, with the remedy."""
        count = len(self.symbols)
        if not 1 <= count <= MAX_ATOMS:
            yield f"a structure has 1 to {MAX_ATOMS} atoms, and this one has {count}"
        if self.position.shape not in ((count, 2), (count, 3)) or self.position.dtype.kind not in "fiu":
            shape, kind = self.position.shape, self.position.dtype
            yield f"position is {kind} of shape {shape}; give ({count}, 3) or ({count}, 2) real numbers"
        dimension = self.position.shape[1]
        if self.cell is not None and self.cell.shape != (dimension, dimension):
            yield f"cell has shape {self.cell.shape}; give {dimension} lattice vectors as rows"
        if np.shape(self.periodic) not in ((), (dimension,)) or (np.any(self.periodic) and self.cell is None):
            yield "a periodic structure needs a cell, and one flag for all its lattice vectors or one for each"
        for name, array in self.arrays.items():
            if not NAME.fullmatch(name) or name in RESERVED_ARRAYS:
                yield f"'{name}' cannot name an array of a structure; choose another name"
            if array.ndim not in (1, 2) or len(array) != count or array.size == 0:
                yield f"array '{name}' has shape {array.shape}; give ({count},) or ({count}, k)"
            if name == FROZEN and (array.ndim > 1 or array.dtype != bool):
                yield f"array '{name}' of a structure is true or false for each atom, shape ({count},)"
        for name, value in self.info.items():
            if not NAME.fullmatch(name) or name in RESERVED_INFO:
                yield f"'{name}' cannot name an entry of info of a structure; choose another name"
            if name in ("stress", "virial") and np.shape(value) != (3, 3):
                yield f"'{name}' of a structure is a (3, 3) tensor; choose another name for something else"
            if isinstance(value, str) and not value.isprintable():
                yield f"'{name}' of a structure is a text over several lines; write it on one"

    def __len__(self) -> int:
        """Return the number of atoms."""
        return len(self.symbols)


def spans_space(cell: np.ndarray) -> bool:
    """Return whether lattice vectors, rows (d, d), are linearly independent."""
    with np.errstate(all="ignore"):  # overflow of huge lengths, which fail the test
        return 1e-9 * np.prod(np.linalg.norm(cell, axis=1)) < abs(np.linalg.det(cell)) < np.inf


def spanning(cell: np.ndarray, periodic: tuple[bool, ...], height: float = 1.0) -> np.ndarray:
    """Return lattice vectors with those that are zero and not periodic perpendicular to the others.

    Args:
        cell: lattice vectors as rows, (3, 3).
        periodic: which of them are periodic.
        height: length of the new vectors.
    """
    missing = [row for row in range(3) if not periodic[row] and not cell[row].any()]
    if not missing:
        return cell
    from ase.geometry import complete_cell

    whole = cell.copy()
    whole[missing] = height * complete_cell(cell)[missing]
    return whole


def from_atoms(atoms: "Atoms", where: str = "atoms") -> Structure:
    """Return the structure of an ``Atoms`` object of ASE.

    Its arrays keep their names, such as ``momenta`` or ``forces``. Results of a finished calculation (``energy``,
    ``forces``) are copied too; other objects attached to it are not.

    Args:
        atoms: from `ase.io.read` or built with ASE.
        where: name of the structure in errors.

    Raises:
        UserError: if it is empty, periodic without three independent lattice vectors, not finite, or has constraints
            other than atoms held in place.

    Example:
        >>> from ase import build
        >>> copper = molecular.structures.from_atoms(build.bulk("Cu", cubic=True))
        >>> copper.symbols, copper.cell.diagonal().tolist()
        (('Cu', 'Cu', 'Cu', 'Cu'), [3.61, 3.61, 3.61])
    """
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.constraints import FixAtoms

    cell, axes = np.array(atoms.cell, dtype=float), tuple(map(bool, atoms.pbc))
    odd = [type(each).__name__ for each in atoms.constraints if not isinstance(each, FixAtoms)]
    problem = "there are no atoms; a structure has at least one" if not len(atoms) else ""
    if odd:
        problem = f"{odd[0]} holds atoms in part; hold them in place, or remove it"
    if any(axes):
        # A height that holds all atoms; it has no meaning along an axis that is not periodic.
        extent = float(np.ptp(atoms.positions, axis=0).max()) if len(atoms) else 1.0
        cell = spanning(cell, axes, extent if 0 < extent < np.inf else 1.0)
        if not spans_space(cell):
            problem = "its lattice vectors do not span space; give three that are independent"
    results = dict(atoms.calc.results) if isinstance(atoms.calc, SinglePointCalculator) else {}
    per_atom = {name: array for name, array in atoms.arrays.items() if name not in ("numbers", "positions")}
    per_atom |= {name: array for name, array in results.items() if np.ndim(array) and len(array) == len(atoms)}
    whole = dict(atoms.info) | {name: value for name, value in results.items() if np.ndim(value) == 0}
    arrays = {name: _plain(np.asarray(array)) for name, array in per_atom.items() if NAME.fullmatch(name)}
    info = {name: kept for name, value in whole.items() if (kept := _remark(name, value)) is not None}
    for held in (each for each in atoms.constraints if isinstance(each, FixAtoms)):
        arrays.setdefault(FROZEN, np.zeros(len(atoms), bool))[held.index] = True
    position = np.array(atoms.positions, dtype=float)
    numbers = {"position": position, "cell": cell, **arrays, **info}
    for name, value in numbers.items():
        if np.asarray(value).dtype.kind == "f" and not np.isfinite(value).all():
            problem = f"{name} is not finite; write finite numbers"
    if problem:
        raise UserError(f"{where}: {problem}")
    return Structure(
        symbols=tuple(atoms.get_chemical_symbols()),
        position=position,
        cell=cell if cell.any() else None,
        periodic=all(axes) or (any(axes) and axes),
        arrays=arrays,
        info=info,
    )


def to_atoms(structure: Structure) -> "Atoms":
    """Return a structure as an ``Atoms`` object of ASE.

    A structure in the plane is put at z = 0, periodic along x and y only if it is periodic.

    Args:
        structure: its ``arrays`` and ``info`` keep their names.

    Example:
        >>> dimer = molecular.structures.Structure(
        ...     symbols=("Ar", "Ar"), position=np.array([[0.0, 0.0, 0.0], [3.8, 0.0, 0.0]]), cell=None, periodic=False
        ... )
        >>> print(f"{molecular.structures.to_atoms(dimer).get_distance(0, 1):.2f} A")
        3.80 A
    """
    from ase import Atoms
    from ase.constraints import FixAtoms

    position, cell, periodic = in_space(structure)
    atoms = Atoms(structure.symbols, positions=position, cell=cell, pbc=periodic, info=dict(structure.info))
    for name, array in structure.arrays.items():
        if name == FROZEN:
            atoms.set_constraint(FixAtoms(mask=array))
        else:
            atoms.new_array(name, np.array(array))
    return atoms


def in_space(structure: Structure) -> tuple[np.ndarray, np.ndarray | None, list[bool]]:
    """Return positions (N, 3), cell (3, 3) or ``None``, and three flags of periodicity.

    Args:
        structure: in space, or in the plane: then at z = 0, in a cell of height 1 that is not periodic along z.
    """
    count, dimension = structure.position.shape
    periodic = [*np.broadcast_to(structure.periodic, dimension).tolist(), *[False] * (3 - dimension)]
    if dimension == 3:
        return structure.position, structure.cell, periodic
    position = np.concatenate([structure.position, np.zeros((count, 1), structure.position.dtype)], axis=1)
    if structure.cell is None:
        return position, None, periodic
    cell = np.eye(3, dtype=structure.cell.dtype)
    cell[:2, :2] = structure.cell
    return position, cell, periodic


def _plain(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array, with strings instead of objects."""
    return array.astype(str) if array.dtype == object else array.copy()


def _remark(name: str, value: Any) -> Any:
    """Return the value of an entry of ``atoms.info`` as stored in ``Structure.info``, or ``None`` if it is dropped."""
    if not NAME.fullmatch(name) or name in RESERVED_INFO:
        return None
    if isinstance(value, bool | np.bool_ | int | np.integer | float | np.floating):
        kept = value.item() if isinstance(value, np.generic) else value
    elif isinstance(value, str):
        kept = str(value) if value.isprintable() and value else None
    else:
        array = np.asarray(value) if isinstance(value, list | np.ndarray) else np.empty(0)
        kept = array if array.size and array.dtype.kind in "bif" else None
    is_tensor = isinstance(kept, np.ndarray) and kept.shape == (3, 3)
    return None if name in ("stress", "virial") and not is_tensor else kept


def shown(text: str) -> str:
    """Return a text for an error message: in quotes, on one line, shortened."""
    quoted = repr(text[:80].strip())
    return quoted if len(quoted) <= 60 else f"{quoted[:57]}..."
