"""Files of other formats: NetCDF, Zarr, tables, VTK and extended XYZ."""

import dataclasses
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit import __version__
from simkit.core.settings import word
from simkit.errors import UserError, argument, package
from simkit.export.replacing import check_replaceable
from simkit.jobs.runs import Outcome
from simkit.jobs.sweep_results import RESULT, blocks_of
from simkit.molecular.structures.extended_xyz import write_extended_xyz
from simkit.molecular.structures.structures import RESERVED_ARRAYS, RESERVED_INFO, Structure
from simkit.storage import datasets
from simkit.storage.datasets import to_netcdf_types
from simkit.storage.files import hidden, make_folder, write_bytes, writing
from simkit.storage.run_directory import folder_of

if TYPE_CHECKING:
    import pandas
    import xarray


ENDINGS = {"netcdf": ".nc", "zarr": ".zarr", "csv": ".csv", "parquet": ".parquet", "vtk": "_vtk"}
# Optional package that a format needs.
NEEDS = {"zarr": "zarr", "parquet": "pyarrow", "vtk": "pyevtk"}
# Files of which a folder of each format has at least one.
MARKS = {"zarr": ("zarr.json", ".zgroup"), "vtk": ("frames.pvd",)}
# Attribute of the files that are written here, by which an earlier one is recognized.
MADE_BY = b"simkit_version"
SPACE = ("x", "y", "z")


def data_file(result: "xarray.Dataset", to: str, path: Path | str, overwrite: bool = False) -> Path:
    """Write a result as a file or folder of another format, whole or not at all, and return its path.

    Args:
        result: of `simkit.run`, `simkit.sweep`, `simkit.optimize` or `simkit.open_run`.
        to: ``"netcdf"`` or ``"zarr"``, the whole data set; ``"csv"`` or ``"parquet"``, a row for each frame of a run,
            or for the end of each member of a sweep; ``"vtk"``, a file for each frame and ``frames.pvd``, which
            ParaView opens: fields at cell centers, or particles and bodies as points.
        path: where to write.
        overwrite: replace an earlier file or folder of this format.

    Raises:
        UserError: if the format is unknown, a package is missing, the path exists or cannot be written, or the result
            has no numbers for a table, or no frames of fields or positions for VTK.
    """
    word("format", tuple(ENDINGS)).check(to, "to")
    path = folder_of(path)
    problem, another = "", f"choose another with {argument('output')}"
    if not hasattr(result, "data_vars"):
        problem = f"{type(result).__name__} is no result; give what simkit.run, sweep, optimize or open_run returned"
    elif path.name == RESULT and (path.parent / "manifest.json").exists():
        problem = f"{path} is the result of a sweep, which no export replaces; {another}"
    elif other := next((name for name, ending in ENDINGS.items() if name != to and path.suffix == ending), None):
        problem = f"{path} has the ending of {other}, and {to} is asked for; {another}"
    if problem:
        raise UserError(problem)
    check_replaceable(path, overwrite, MARKS.get(to, ()), is_earlier=lambda content: _is_earlier(content, to, result))
    if to in NEEDS:
        package(NEEDS[to], to, "simkit-physics[data]")
    make_folder(path.parent)
    writers: dict[str, Callable[[Path], Any]] = {
        "netcdf": lambda file: to_netcdf_types(result).to_netcdf(file, engine="scipy"),
        # Consolidated metadata, without which readers warn, is part of format 2 only.
        "zarr": lambda folder: result.to_zarr(folder, mode="w-", zarr_format=2, consolidated=True),
        "csv": lambda file: _write_csv(result, file),
        "parquet": lambda file: _write_parquet(result, file),
        "vtk": lambda folder: _write_vtk(result, folder),
    }
    _write_whole(path, writers[to])
    return path


def _is_earlier(content: bytes, to: str, result: "xarray.Dataset") -> bool:
    """Return whether the content of a file is that of an earlier file of a format; of CSV, with the same columns."""
    if to == "csv":
        header = next(_tables_of(result)).head(0).to_csv(index=False).encode()
        return content.startswith(header)
    return content.startswith(b"CDF" if to == "netcdf" else b"PAR1") and MADE_BY in content


def table_of(result: "xarray.Dataset") -> "pandas.DataFrame":
    """Return the numbers of a result as a table: a row for each frame, or for the end of each member.

    Args:
        result: of a run, a sweep or an optimization.

    Raises:
        UserError: if the result has no numbers along its frames or members.
    """
    if "status" in result.data_vars:  # a sweep
        axes = result["status"].dims
        ended = result.isel(frame=-1) if "frame" in result.dims else result
    else:
        axes = next((array.dims for array in result.data_vars.values() if len(array.dims) == 1), ())
        axes, ended = tuple(axis for axis in axes if axis in ("time", "frame", "iteration")), result
    names = [name for name, array in ended.data_vars.items() if array.dims == axes]
    if not names or not axes:
        raise UserError("the result has no single numbers along time to make a table of; choose netcdf or zarr")
    kept = ended[names]
    others = [name for name, array in kept.coords.items() if not set(array.dims) <= set(axes)]
    return kept.drop_vars(others).to_dataframe().reset_index()


def _tables_of(result: "xarray.Dataset") -> "Iterator[pandas.DataFrame]":
    """Yield the table of a result in parts: at once, or for a large sweep a few members at a time."""
    if "status" not in result.data_vars or "preferred_chunks" not in result["status"].encoding:
        yield table_of(result)
        return
    for _, block in blocks_of(result):
        yield table_of(block)


def _write_csv(result: "xarray.Dataset", path: Path) -> None:
    for index, table in enumerate(_tables_of(result)):
        table.to_csv(path, index=False, header=index == 0, mode="a" if index else "w")


def _write_parquet(result: "xarray.Dataset", path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    tables = (pyarrow.Table.from_pandas(table, preserve_index=False) for table in _tables_of(result))
    first = next(tables)
    schema = first.schema.with_metadata({**(first.schema.metadata or {}), MADE_BY: __version__.encode()})
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def _write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file or folder under a temporary name and rename it, so that a crash leaves nothing unfinished."""
    temporary = hidden(path, f"{os.getpid()}.tmp")
    try:
        with writing(path, f"choose another with {argument('output')}"):
            _remove(temporary)
            write(temporary)
            _remove(path)
            temporary.rename(path)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def _write_vtk(result: "xarray.Dataset", folder: Path) -> None:
    """Write a file for each frame, and ``frames.pvd``, which lists these with their times."""
    from pyevtk.vtk import VtkGroup

    is_run = "status" not in result.data_vars and "time" in result.dims
    shape = result["position"].shape if "position" in result.data_vars else ()
    are_points = len(shape) == 3 and shape[2] in (2, 3)
    if not is_run or not (are_points or any("x" in array.dims for array in result.data_vars.values())):
        raise UserError(
            "vtk files are made of the frames of a run, of positions or fields along x and y; give such a run, not a "
            "sweep or an optimization"
        )
    write = _write_points if are_points else _write_field
    folder.mkdir()
    group = VtkGroup(str(folder / "frames"))
    for index, time in enumerate(result["time"].values):
        file = write(result.isel(time=index), folder / f"frame_{index:05d}")
        group.addFile(filepath=file, sim_time=float(time))
    group.save()


def _write_field(frame: "xarray.Dataset", path: Path) -> str:
    """Write cell-centered fields as point data on the grid of cell centers."""
    from pyevtk.hl import gridToVTK

    axes = tuple(axis for axis in SPACE if axis in frame.dims)
    arrays = {str(n): a.transpose(*axes).values for n, a in frame.data_vars.items() if axes and set(a.dims) == {*axes}}
    points = [np.ascontiguousarray(frame[axis].values, float) if axis in axes else np.zeros(1) for axis in SPACE]
    return gridToVTK(str(path), *points, pointData=_components(arrays, tuple(len(line) for line in points)))


def _write_points(frame: "xarray.Dataset", path: Path) -> str:
    """Write particles or bodies as points, with their scalars and vectors."""
    from pyevtk.hl import pointsToVTK

    position = frame["position"].values
    body, *_ = frame["position"].dims
    arrays = {str(n): a.values for n, a in frame.data_vars.items() if a.dims[:1] == (body,) and n != "position"}
    x, y, z = (np.ascontiguousarray(line, float) for line in _in_space(position))
    data: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            data[name] = np.ascontiguousarray(array)
        elif array.ndim == 2 and array.shape[1] in (2, 3):
            data[name] = tuple(np.ascontiguousarray(line) for line in _in_space(array))
    return pointsToVTK(str(path), x, y, z, data=data)


def _in_space(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three components of vectors in the plane or in space."""
    x, y, *rest = vectors.T
    return x, y, rest[0] if rest else np.zeros_like(x)


def _components(arrays: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return fields reshaped to three dimensions, and ``u``, ``v``, ``w`` also as one vector ``velocity``."""
    data: dict[str, Any] = {name: np.asfortranarray(array.reshape(shape)) for name, array in arrays.items()}
    if {"u", "v"} <= data.keys():
        data["velocity"] = data["u"], data["v"], data.get("w", np.zeros_like(data["u"]))
    return data


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
    kinds = observed["species"] if names else np.zeros(position.shape[:2])
    periodic = outcome.labels["coordinates"].get("periodic", True)
    for index in range(len(position)):
        cell = _cell(observed, index)
        # Particles without a species are the padding of a smaller structure.
        is_there = ~np.isnan(kinds[index].astype(float))
        yield Structure(
            symbols=tuple(chemical_symbols[number] for number in of_species[kinds[index][is_there].astype(int)]),
            position=position[index][is_there],
            cell=cell,
            periodic=cell is not None and tuple(np.broadcast_to(np.asarray(periodic, bool), len(cell)).tolist()),
            arrays={name: array[index][is_there] for name, array in columns.items()},
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
