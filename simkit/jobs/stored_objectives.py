"""Objectives of a large sweep's members: one file beside the chunks, computed from them one after another."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from simkit.jobs.members import Members
from simkit.jobs.stored_arrays import member_axis
from simkit.jobs.sweep_objectives import MemberObjectives, objectives_to_compute
from simkit.storage import datasets
from simkit.storage.archives import read_arrays, write_arrays
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation

OBJECTIVES = "objectives.npz"
_SEAL = "objectives"


def store_objectives(
    sweep: Members, simulation: "Simulation", directory: RunDirectory, chunks: Iterable[Mapping[str, np.ndarray]]
) -> None:
    """Compute the objectives of all members from the stored chunks of a sweep, and store them.

    Args:
        sweep: the sweep.
        simulation: simulation of one member.
        directory: run directory of the sweep.
        chunks: arrays of every chunk, in order; one is in memory at a time.
    """
    wanted, measures, parts = objectives_to_compute(sweep.objectives), None, list[dict[str, np.ndarray]]()
    if not wanted:
        return
    missing = sweep.members
    for chunk in chunks:
        # The last chunk may be padded.
        arrays = {name: np.moveaxis(array, member_axis(name), 0)[:missing] for name, array in chunk.items()}
        observed, diagnosed = datasets.split(arrays)
        measures = measures or MemberObjectives(simulation, sweep.scenario, wanted, observed, diagnosed)
        parts.append(measures.values(observed, diagnosed, arrays["status"]))
        missing -= len(arrays["status"])
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Of an objective that was not computed the array is empty.
    stored = {name: joined.get(name, np.zeros(0, sweep.scenario.run.precision)) for name in wanted}
    write_arrays(directory.path / OBJECTIVES, stored, directory.seal.of(_SEAL))


def read_objectives(sweep: Members, directory: RunDirectory) -> dict[str, np.ndarray]:
    """Read the objectives of all members of a large sweep that were computed, each (members,), by name.

    Args:
        sweep: the sweep.
        directory: its run directory.

    Raises:
        DamagedFileError: if the file is missing, damaged or of another sweep.
        UserError: if its path is not a regular file.
    """
    wanted = objectives_to_compute(sweep.objectives)
    if not wanted:
        return {}
    path = directory.path / OBJECTIVES
    found = read_arrays(path, directory.seal.of(_SEAL))
    dtype, shapes = np.dtype(sweep.scenario.run.precision), ((sweep.members,), (0,))
    if found.keys() != wanted.keys() or any(a.dtype != dtype or a.shape not in shapes for a in found.values()):
        raise DamagedFileError(f"{path}: it does not hold the objectives of this sweep")
    return {name: array for name, array in found.items() if array.size}
