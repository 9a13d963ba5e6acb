"""Stores of work in progress: segments and checkpoints, written at once or at intervals."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.pytrees import keyed, plain
from simkit.core.status import Status
from simkit.storage import files

CHECKPOINTS = ("checkpoint.npz", "checkpoint_previous.npz")


class Store:
    """The segments and checkpoints of one run in one folder.

    A segment is written before the checkpoint that follows it, and the previous checkpoint is kept, so that after a
    crash at any moment, or damage to any one file, the run resumes from an intact state.

    Args:
        folder: folder of the files.
        seal: seal of the run or chunk.
        layout: layout of the segments; ``None`` accepts any.
    """

    def __init__(self, folder: Path, seal: files.Seal = files.UNBOUND, layout: files.Layout | None = None) -> None:
        self.folder = folder
        self.segments = folder / "segments"
        self._seal, self._layout = seal, layout

    def create(self) -> None:
        """Create the folders."""
        # A run directory may be a link that the user made; the folders in it may not be links.
        if not self.folder.is_dir():
            files.make_folder(self.folder)
        if not files.check_folder(self.segments):
            files.make_folder(self.segments)

    def write(self, index: int, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Store the arrays of segment ``index`` (0 for the initial frame, then 1, 2, ...) and the state at its end."""
        self.write_segment(index, arrays)
        self.write_checkpoint(index, state)

    def write_segment(self, index: int, arrays: dict[str, np.ndarray]) -> None:
        """Store segment ``index``, before the state at its end."""
        files.write_arrays(self.path_of(index), arrays, self._seal.of(f"segment {index}"))

    def write_checkpoint(self, index: int, state: Any) -> None:
        """Store the state at the end of segment ``index``, which is stored; the state stored last is kept too."""
        current, previous = (self.folder / name for name in CHECKPOINTS)
        if files.check_regular(current):
            files.check_regular(previous)
            current.replace(previous)
        arrays = {name: np.asarray(array) for name, array in arrays_of_state(state).items()}
        files.write_arrays(current, {"segment": np.asarray(index, np.int64), **arrays}, self._seal.of("checkpoint"))

    def restore(
        self, template: Any, warn: Callable[[str], None], *, advance: Callable[[Any], Any] | None = None
    ) -> tuple[int, Any, dict[str, np.ndarray]] | None:
        """Read the newest state from which the run can resume, and remove all later segments.

        Args:
            template: pytree with the state's structure, shapes and dtypes (from ``jax.eval_shape``).
            warn: called with one line about damaged files.
            advance: function of the state, given if its buffers may have grown since the start; their sizes are then
                taken from the file, and `advance` must be traceable with them.

        Returns:
            ``(index, state, arrays)`` of the newest intact checkpoint whose segments are intact, with the arrays of
            the last of them; ``None`` if the run must restart from the beginning.
        """
        files.check_folder(self.segments)
        newest, source, damaged = None, None, {}
        for name in CHECKPOINTS:
            if not files.check_regular(self.folder / name):
                continue
            try:
                checkpoint = self._read_checkpoint(name, template, advance)
                if newest is None:
                    newest, source = (*checkpoint, self._read_segments(checkpoint[0])), name
            except files.DamagedFileError as error:
                damaged[name] = f"{name} cannot be used ({error})"
        if damaged:
            remedy = f"resuming from segment {newest[0]}" if newest else "starting from the beginning"
            if source == CHECKPOINTS[0]:
                remedy = f"{source} takes its place"
            warn(f"{'; '.join(damaged.values())}; {remedy}")
        for name in damaged:
            # A damaged file must not replace the previous checkpoint, which may be the only intact one.
            (self.folder / name).unlink()
        if source == CHECKPOINTS[0] and damaged:
            files.write_bytes(self.folder / CHECKPOINTS[1], files.read_bytes(self.folder / source))
        self._discard_after(newest[0] if newest else -1)
        return newest

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return the stored segments in order."""
        files.check_folder(self.segments)
        return [self._read_segment(index) for index in range(max(self._indices(), default=-1) + 1)]

    def written(self) -> list[Path]:
        """Return the files of the stored segments, in order."""
        return [self.path_of(index) for index in sorted(self._indices())] if files.check_folder(self.segments) else []

    def read_segment(self, path: Path) -> dict[str, np.ndarray]:
        """Return a stored segment, by its path, one of `written`."""
        return self._read_segment(int(path.stem))

    def path_of(self, index: int) -> Path:
        """Return the path of a segment."""
        return self.segments / f"{index:06d}.npz"

    def check(self) -> None:
        """Check the checkpoints as far as possible without the simulation."""
        for name in CHECKPOINTS:
            if name == CHECKPOINTS[0] or files.check_regular(self.folder / name):
                self._read_checkpoint_arrays(name)

    def _read_checkpoint_arrays(self, name: str) -> tuple[int, dict[str, np.ndarray]]:
        path = self.folder / name
        arrays = files.read_arrays(path, self._seal.of("checkpoint"))
        index = arrays.pop("segment", None)
        if index is None or index.shape or index.dtype != np.int64 or index < 0:
            raise files.DamagedFileError(f"{path}: it names no segment")
        return int(index), arrays

    def _read_checkpoint(self, name: str, template: Any, advance: Callable[[Any], Any] | None) -> tuple[int, Any]:
        index, arrays = self._read_checkpoint_arrays(name)
        state = state_of_arrays(arrays, template, self.folder / name, resizable=advance is not None)
        if advance is not None:
            try:
                jax.eval_shape(advance, state)
            except (TypeError, ValueError, IndexError):
                raise files.DamagedFileError(
                    f"{self.folder / name}: the sizes of its arrays are inconsistent"
                ) from None
        return index, state

    def _read_segments(self, index: int) -> dict[str, np.ndarray]:
        """Check all segments up to ``index``, and return the last one."""
        for earlier in range(index):
            self._read_segment(earlier)
        return self._read_segment(index)

    def _read_segment(self, index: int) -> dict[str, np.ndarray]:
        arrays = files.read_arrays(self.path_of(index), self._seal.of(f"segment {index}"), self._layout)
        if not np.isin(arrays.get("status", Status.OK), list(Status)).all():
            raise files.DamagedFileError(f"{self.path_of(index)}: it holds an unknown status code")
        return arrays

    def _indices(self) -> list[int]:
        numbers = (int(path.stem) for path in self.segments.glob("*.npz") if path.stem.isdecimal())
        # Skip names of another form, such as 99.npz.
        return [number for number in numbers if os.path.lexists(self.path_of(number))]

    def _discard_after(self, index: int) -> None:
        for later in self._indices():
            if later > index and files.check_regular(self.path_of(later)):
                self.path_of(later).unlink()
        for folder in (self.folder, self.segments):
            files.remove_leftovers(folder)


def arrays_of_state(state: Any) -> dict[str, jax.Array]:
    """Return the arrays of a state, a pytree, by name, random keys as integers."""
    return {name: plain(leaf) for name, leaf in _named_leaves(state)}


def state_of_arrays(arrays: dict[str, np.ndarray], template: Any, path: Path, *, resizable: bool = False) -> Any:
    """Return a state from its arrays.

    Args:
        arrays: as from `arrays_of_state`.
        template: pytree with the state's structure, shapes and dtypes.
        path: file of the arrays, named in the error.
        resizable: whether their sizes may differ from those of the template.

    Raises:
        DamagedFileError: if they are not the arrays of such a state.
    """
    named = dict(_named_leaves(template))
    shapes = {name: jax.eval_shape(plain, leaf) for name, leaf in named.items()}
    free = {name: tuple(f"{name} {axis}" for axis in range(shape.ndim)) for name, shape in shapes.items()}
    layout = {n: (str(shape.dtype), free[n] if resizable else shape.shape) for n, shape in shapes.items()}
    files.Layout(layout).check(path, arrays)
    leaves = [keyed(leaf, jnp.asarray(arrays[name])) for name, leaf in named.items()]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(f"state{jax.tree_util.keystr(path)}", leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


# Seconds between two writes: about as much work as a crash may cost, and a hundred times what writing a segment takes.
INTERVAL = 0.5


class LateStore(Store):
    """A `Store` that keeps segments in memory and writes them at intervals, and in an orderly stop.

    It is a context manager: if the work is left by an exception, what is not yet written is written. Work that ends
    within an interval writes nothing: its result is stored elsewhere. Arguments as for `Store`.
    """

    def __enter__(self) -> "LateStore":
        """Begin the first interval."""
        self._held: list[dict[str, np.ndarray]] = []
        self._unwritten: list[tuple[int, dict[str, np.ndarray]]] = []
        self._state: Any = None
        self._written_at = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is held back, if the work was interrupted."""
        if kind is not None:
            self._flush()

    def create(self) -> None:
        """Do nothing: the folders are created when the first segment is written."""

    def write(self, index: int, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Hold segment ``index`` and the state at its end, and write what is held if the interval is over."""
        self._held.append(arrays)
        self._unwritten.append((index, arrays))
        self._state = state
        if time.monotonic() - self._written_at >= INTERVAL:
            self._flush()

    def restore(
        self, template: Any, warn: Callable[[str], None], *, advance: Callable[[Any], Any] | None = None
    ) -> tuple[int, Any, dict[str, np.ndarray]] | None:
        """Read the newest state from which the work can resume, as `Store.restore`, and the segments before it."""
        restored = super().restore(template, warn, advance=advance)
        self._held = super().read() if restored else []
        return restored

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return all segments in order."""
        return list(self._held)

    def _flush(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        if unwritten:
            super().create()
            for index, arrays in unwritten:
                self.write_segment(index, arrays)
            self.write_checkpoint(unwritten[-1][0], self._state)
        self._written_at = time.monotonic()
