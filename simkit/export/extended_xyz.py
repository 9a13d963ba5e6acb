"""The frames of a stored run as extended XYZ, which OVITO, VMD, ASE and other tools read."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simkit.errors import UserError
from simkit.export.replacing import check_replaceable
from simkit.jobs.outcome import Outcome
from simkit.molecular.structures.extended_xyz import write_extended_xyz
from simkit.molecular.structures.structures import RESERVED_ARRAYS, RESERVED_INFO, Structure
from simkit.storage import datasets
from simkit.storage.files import write_bytes

# Observed arrays of the geometry, which are not columns of the file.
GEOMETRY = ("position", "cell", "box")


@dataclasses.dataclass(frozen=True)
class ExportedFrames:
    """A file of frames that was written.

    Attributes:
        file: extended XYZ.
        frames: number of frames.
        particles: number of particles in each frame.
    """

    file: Path
    frames: int
    particles: int


def export_frames(outcome: Outcome, file: Path, overwrite: bool = False) -> ExportedFrames:
    """Write every frame of a run of particles.

    Columns are position, diameter and every other observed array of the particles. The comment line holds the cell and
    every diagnostic; for dynamics ``energy`` is the potential energy, and ``total_energy`` the sum with the kinetic
    one. A name that is both observed and diagnosed, or reserved in extended XYZ, is prefixed with ``observed_`` or
    ``diagnosed_``.

    Args:
        outcome: a run, stored or in memory.
        file: where to write; its folder must exist.
        overwrite: replace an existing file, by a complete one only.

    Raises:
        UserError: if its frames hold no particles, or the file exists or cannot be written.
    """
    check_replaceable(file, overwrite, is_earlier=_is_extended_xyz)
    frames = list(structures(outcome))
    write_bytes(file, write_extended_xyz(frames).encode())
    return ExportedFrames(file=file, frames=len(frames), particles=len(frames[0]))


def _is_extended_xyz(content: bytes) -> bool:
    number, *lines = content.split(b"\n", 2)
    return number.strip().isdigit() and bool(lines) and b"Properties=" in lines[0]


def structures(outcome: Outcome) -> Iterator[Structure]:
    """Yield the frames of a run as structures.

    Args:
        outcome: a run of particles; a species whose name is not a chemical symbol gets ``X``.

    Raises:
        UserError: if its frames hold no particles.
    """
    from ase.data import atomic_numbers, chemical_symbols

    observed, diagnosed = datasets.split(outcome.arrays)
    position = observed.get("position")
    if position is None or position.ndim != 3 or position.shape[2] not in (2, 3):
        raise UserError(
            f"{outcome.scenario.name}: its frames hold {', '.join(sorted(observed))}, and no particles with a position "
            "in space; extended_xyz writes runs of particles only"
        )
    dimensions = outcome.labels["dimensions"]
    particle = dimensions["position"][0]
    columns = {
        f"observed_{name}" if name in RESERVED_ARRAYS or name in diagnosed else name: array
        for name, array in observed.items()
        if name not in GEOMETRY and array.ndim in (2, 3) and dimensions[name][0] == particle
    }
    if "potential_energy" in diagnosed:
        # In extended XYZ, ``energy`` is the potential energy.
        renamed = {"energy": "total_energy", "potential_energy": "energy"}
        diagnosed = {renamed.get(name, name): array for name, array in diagnosed.items()}
    info = {
        f"diagnosed_{name}" if name in RESERVED_INFO or name in ("stress", "virial") else name: array
        for name, array in diagnosed.items()
    }
    # Atomic number of each species, (species,); 0, the symbol X, where the name is not a chemical symbol.
    names = outcome.labels["coordinates"].get("species_names", [])
    of_species = np.array([atomic_numbers.get(name, 0) for name in names] or [0], np.int32)
    species = observed["species"].astype(int) if names else np.zeros(position.shape[:2], int)
    periodic = outcome.labels["coordinates"].get("periodic", True)
    for index in range(len(position)):
        cell = _cell(observed, index)
        yield Structure(
            symbols=tuple(chemical_symbols[number] for number in of_species[species[index]]),
            position=position[index],
            cell=cell,
            periodic=cell is not None and tuple(np.broadcast_to(np.asarray(periodic, bool), len(cell)).tolist()),
            arrays={name: array[index] for name, array in columns.items()},
            info={name: array[index].item() for name, array in info.items()},
        )


def _cell(observed: dict[str, np.ndarray], index: int) -> np.ndarray | None:
    """Return the lattice vectors of a frame, ``None`` in free space."""
    if "cell" in observed:
        return observed["cell"][index]
    if "box" not in observed:
        return None
    box = observed["box"][index]
    return np.diag(box) if np.isfinite(box).all() and (box > 0).all() else None
