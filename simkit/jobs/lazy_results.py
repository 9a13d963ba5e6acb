"""Lazy results of sweeps: arrays of all members that stay on disk, read from sealed chunks when they are indexed."""

import importlib.util
import math
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.core import indexing

from simkit.errors import UserError
from simkit.jobs.stored_arrays import StoredArray
from simkit.jobs.totals import block_lengths
from simkit.storage.chunk_files import ChunkFile
from simkit.storage.files import DamagedFileError
from simkit.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import xarray

# Variables of a block are read one after another, and a block may lie in two chunks.
FILES_KEPT = 2


class ChunkReader:
    """Reader of the chunks of a finished sweep, with the last few cached.

    Args:
        directory: run directory of the sweep.
        frames: frames per member, including the initial one.
        length: members in each chunk but the last.
    """

    def __init__(self, directory: RunDirectory, frames: int, length: int) -> None:
        self.directory, self.frames, self.length = directory, frames, length
        self._kept: dict[int, dict[str, np.ndarray]] = {}
        self._lock = threading.Lock()

    def read(self, index: int) -> dict[str, np.ndarray]:
        """Return the checked arrays of a chunk.

        Args:
            index: index of the chunk.

        Raises:
            UserError: naming a chunk that is missing or damaged.
        """
        with self._lock:
            if index not in self._kept:
                try:
                    found = ChunkFile(self.directory, index, self.frames).read_whole()
                except DamagedFileError as error:
                    raise UserError(f"{error}; make it again with: {self.directory.resuming}") from None
                self._kept[index] = found
                while len(self._kept) > FILES_KEPT:
                    del self._kept[next(iter(self._kept))]
            return self._kept[index]

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for pickling to other processes."""
        return {"directory": self.directory, "frames": self.frames, "length": self.length}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)


class _LazyArray(BackendArray):
    """An array that xarray reads in parts: items of equal shape on a grid of members or configurations.

    Args:
        grid: lengths of the axes of the grid.
        shape: shape of each item.
        dtype: dtype of each item.
    """

    def __init__(self, grid: Sequence[int], shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._grid, self.shape, self.dtype = tuple(grid), (*grid, *shape), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read and return the indexed part."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return the part at an integer, slice or index array along each axis."""
        axes = len(self._grid)
        items, within = _part(np.arange(math.prod(self._grid)).reshape(self._grid), key[:axes]), key[axes:]
        shape = _part(np.broadcast_to(np.zeros((), self.dtype), self.shape[axes:]), within).shape
        found = np.empty((items.size, *shape), self.dtype)
        self._fill(found, items.ravel(), within)
        return found.reshape((*items.shape, *shape))

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        """Read the same part of several items, given by flat index in the grid, int (n,), into an array, (n, ...)."""
        raise NotImplementedError


def _part(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """Return the part of an array at an integer, slice or index array along each axis, independent of the others."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * axis + (key[axis],)]
    return array


class _MembersArray(_LazyArray):
    """An array of all members of a sweep, in its chunks."""

    def __init__(self, reader: ChunkReader, stored: StoredArray, grid: Sequence[int]) -> None:
        super().__init__(grid, stored.shape, stored.dtype if stored.words is None else stored.words.dtype)
        self._reader, self._stored = reader, stored

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        chunks, rows = np.divmod(items, self._reader.length)
        for index in np.unique(chunks).tolist():
            here = np.flatnonzero(chunks == index)
            arrays = self._stored.of(self._reader.read(index)[self._stored.name])
            found[here] = _part(arrays[rows[here]], (slice(None), *within))


class _ConfigurationsArray(_LazyArray):
    """Lazy arrays of several configurations, all of one shape, as one."""

    def __init__(self, arrays: "Sequence[xarray.DataArray]", grid: Sequence[int]) -> None:
        super().__init__(grid, arrays[0].shape, arrays[0].dtype)
        self._arrays = arrays

    def _fill(self, found: np.ndarray, items: np.ndarray, within: tuple[Any, ...]) -> None:
        for row, index in enumerate(items.tolist()):
            found[row] = self._arrays[index][within].values


def lazy_variable(reader: ChunkReader, stored: StoredArray, grid: Mapping[str, int], dims: Sequence[str]) -> Variable:
    """Return an array of all members as a variable of a data set, a Dask array if Dask is installed.

    Args:
        reader: reader of the chunks.
        stored: the array in the chunks.
        grid: names and lengths of the axes of points and seeds.
        dims: names of the axes of one member.
    """
    lengths = tuple(grid.values())
    together = dict(zip(grid, block_lengths(lengths, reader.length), strict=True))
    return _variable((*grid, *dims), _MembersArray(reader, stored, lengths), together)


def stacked_variable(arrays: "Sequence[xarray.DataArray]", configs: Mapping[str, int]) -> Variable:
    """Return arrays of all configurations as one variable, whose parts are read when they are indexed.

    Args:
        arrays: one array per configuration, made by `lazy_variable`.
        configs: number of values of each key, the last of which varies first.
    """
    first = arrays[0]
    together = dict.fromkeys(configs, 1) | first.encoding["preferred_chunks"]
    array = _ConfigurationsArray(arrays, tuple(configs.values()))
    return _variable((*configs, *map(str, first.dims)), array, together, first.attrs)


def _variable(dims: Sequence[str], array: _LazyArray, together: Mapping[str, int], attributes: Any = None) -> Variable:
    """Return a variable, as a Dask array if Dask is installed, in chunks of members that are read together."""
    variable = Variable(dims, indexing.LazilyIndexedArray(array), attributes)
    variable.encoding["preferred_chunks"] = dict(together)
    return variable.chunk(together) if importlib.util.find_spec("dask") else variable
