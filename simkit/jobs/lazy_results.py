"""Lazy results of sweeps: arrays of all members that stay on disk, read from chunks when they are indexed."""

import abc
import importlib.util
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


class _ItemsOnGrid(BackendArray):
    """Arrays of one shape along a grid, as one array for xarray, which reads the indexed parts.

    Args:
        grid: lengths of the axes of the grid.
        shape: shape of each item.
        dtype: dtype of each item.
    """

    def __init__(self, grid: Sequence[int], shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self._grid = tuple(grid)
        self.shape, self.dtype = (*self._grid, *shape), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Read and return the indexed part."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Return the part at an integer, slice or index array along each axis."""
        across, within = key[: len(self._grid)], key[len(self._grid) :]
        places = [np.atleast_1d(np.arange(length)[k]) for length, k in zip(self._grid, across, strict=True)]
        chosen = np.ravel_multi_index(np.ix_(*places), self._grid).ravel()
        item = _outer(np.broadcast_to(np.zeros((), self.dtype), (1, *self.shape[len(self._grid) :])), within)
        found = np.empty((len(chosen), *item.shape[1:]), self.dtype)
        self._fill(found, chosen, within)
        found = found.reshape(*map(len, places), *item.shape[1:])
        return found[tuple(0 if isinstance(k, int | np.integer) else slice(None) for k in across)]

    @abc.abstractmethod
    def _fill(self, found: np.ndarray, chosen: np.ndarray, within: tuple[Any, ...]) -> None:
        """Read parts of items.

        Args:
            found: array to fill, (n, ...).
            chosen: flat indices of the items in the grid, int (n,).
            within: index along each axis of an item.
        """


class MembersArray(_ItemsOnGrid):
    """An array of all members of a sweep, as an array for xarray.

    Args:
        reader: reader of the chunks.
        stored: the array in the chunks.
        grid: shape of the members, points and seeds.
    """

    def __init__(self, reader: ChunkReader, stored: StoredArray, grid: Sequence[int]) -> None:
        self._reader, self._stored = reader, stored
        super().__init__(grid, stored.shape, stored.dtype if stored.words is None else stored.words.dtype)

    def _fill(self, found: np.ndarray, chosen: np.ndarray, within: tuple[Any, ...]) -> None:
        chunks = chosen // self._reader.length
        for index in np.unique(chunks).tolist():
            here = np.flatnonzero(chunks == index)
            arrays = self._reader.read(index)
            part = self._stored.of(arrays[self._stored.name])[chosen[here] - index * self._reader.length]
            found[here] = _outer(part, within)


def _outer(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """Return the part of an array at an integer, slice or index array along each axis but the first."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * (axis + 1) + (key[axis],)]
    return array


def lazy_variable(reader: ChunkReader, stored: StoredArray, grid: Mapping[str, int], dims: Sequence[str]) -> Variable:
    """Return an array of all members as a variable of a data set, a Dask array if Dask is installed.

    Args:
        reader: reader of the chunks.
        stored: the array in the chunks.
        grid: names and lengths of the axes of points and seeds.
        dims: names of the axes of one member.
    """
    array = MembersArray(reader, stored, tuple(grid.values()))
    together = dict(zip(grid, block_lengths(tuple(grid.values()), reader.length), strict=True))
    return _of_dask(Variable((*grid, *dims), indexing.LazilyIndexedArray(array)), together)


class StackedArray(_ItemsOnGrid):
    """Arrays of several configurations as one, each read when its part is indexed.

    Args:
        arrays: one array per configuration, all of one shape, the last key varying first.
        lengths: number of values of each key.
    """

    def __init__(self, arrays: "Sequence[xarray.DataArray]", lengths: Sequence[int]) -> None:
        self._arrays = list(arrays)
        super().__init__(lengths, arrays[0].shape, arrays[0].dtype)

    def _fill(self, found: np.ndarray, chosen: np.ndarray, within: tuple[Any, ...]) -> None:
        for row, index in enumerate(chosen.tolist()):
            found[row] = self._arrays[index][within].values


def stacked_variable(arrays: "Sequence[xarray.DataArray]", configs: Mapping[str, int]) -> Variable:
    """Return arrays of all configurations as one variable, whose parts are read when they are indexed.

    Args:
        arrays: one array per configuration, made by `lazy_variable`.
        configs: number of values of each key.
    """
    first = arrays[0]
    array = indexing.LazilyIndexedArray(StackedArray(arrays, tuple(configs.values())))
    together = dict.fromkeys(configs, 1) | first.encoding["preferred_chunks"]
    return _of_dask(Variable((*configs, *map(str, first.dims)), array, first.attrs), together)


def _of_dask(variable: Variable, together: Mapping[str, int]) -> Variable:
    """Return a variable as a Dask array, if Dask is installed, in chunks of members that are read together."""
    variable.encoding["preferred_chunks"] = dict(together)
    return variable.chunk(together) if importlib.util.find_spec("dask") else variable
