"""What a run leaves on disk while it runs: one file per segment, and the last two checkpoints."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.runtime.files import DamagedFileError, read_arrays, remove_leftovers, write_arrays

CHECKPOINTS = ("checkpoint.npz", "checkpoint_previous.npz")


class Store:
    """The segments and checkpoints of one run in one folder.

    A segment is written before the checkpoint that follows it, and the previous checkpoint is kept, so that after a
    crash at any moment, or damage to any one file, the run goes on from a state that is known to be whole.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments = folder / "segments"

    def create(self) -> None:
        """Make the folders."""
        self.segments.mkdir(parents=True, exist_ok=True)

    def write(self, index: int, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Store segment ``index`` and the state in which it ends.

        Args:
            index: 0 for the initial frame, then 1, 2, ...
            state: a pytree of arrays.
            arrays: the frames and diagnostics of the segment.
        """
        write_arrays(self._segment(index), arrays)
        current, previous = (self.folder / name for name in CHECKPOINTS)
        if current.exists():
            current.replace(previous)
        write_arrays(current, {"segment": np.asarray(index), **_state_to_arrays(state)})

    def restore(
        self, template: Any, warn: Callable[[str], None], *, resizable: bool = False
    ) -> tuple[int, Any, dict[str, np.ndarray]] | None:
        """Find the newest state from which the run can go on, and remove what was written after it.

        Args:
            template: a pytree of the state's structure, shapes and dtypes (from ``jax.eval_shape``).
            warn: told in one line what is damaged.
            resizable: whether arrays may have grown since the beginning: their sizes are then taken from the file.

        Returns:
            ``(index, state, arrays)`` of the newest checkpoint that is whole and whose segments are whole too, with
            the last of those segments; or ``None`` if the run has to start from the beginning.
        """
        found, damaged = None, {}
        for name in CHECKPOINTS:
            if found or not (self.folder / name).exists():
                continue
            try:
                found = self._read_checkpoint(name, template, resizable)
            except DamagedFileError as error:
                damaged[name] = f"{name} cannot be used ({error})"
        if damaged:
            remedy = f"going on from segment {found[0]}" if found else "starting from the beginning"
            warn(f"{'; '.join(damaged.values())}; {remedy}")
        for name in damaged:
            # It must not become the previous checkpoint, which may be the only one that is whole.
            (self.folder / name).unlink()
        self._discard_after(found[0] if found else -1)
        return found

    def read(self) -> list[dict[str, np.ndarray]]:
        """Return the stored segments in order.

        Raises:
            DamagedFileError: if a segment is damaged or missing.
        """
        return [read_arrays(self._segment(index)) for index in range(max(self._indices(), default=-1) + 1)]

    def _read_checkpoint(self, name: str, template: Any, resizable: bool) -> tuple[int, Any, dict[str, np.ndarray]]:
        path = self.folder / name
        arrays = read_arrays(path)
        index = arrays.pop("segment", None)
        if index is None or index.shape or index < 0:
            raise DamagedFileError(f"{path}: names no segment")
        state = _state_from_arrays(arrays, template, path, resizable)
        for earlier in range(int(index)):
            read_arrays(self._segment(earlier))
        return int(index), state, read_arrays(self._segment(int(index)))

    def _segment(self, index: int) -> Path:
        return self.segments / f"{index:06d}.npz"

    def _indices(self) -> list[int]:
        return [int(path.stem) for path in self.segments.glob("*.npz") if path.stem.isdecimal()]

    def _discard_after(self, index: int) -> None:
        for later in self._indices():
            if later > index:
                self._segment(later).unlink()
        for folder in (self.folder, self.segments):
            remove_leftovers(folder)


def _state_to_arrays(state: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(_plain(leaf)) for name, leaf in _named_leaves(state)}


def _state_from_arrays(arrays: dict[str, np.ndarray], template: Any, path: Path, resizable: bool) -> Any:
    named = _named_leaves(template)
    if set(arrays) != {name for name, _ in named}:
        raise DamagedFileError(f"{path}: holds other fields than this simulation's state")
    leaves = []
    for name, leaf in named:
        array, plain = arrays[name], jax.eval_shape(_plain, leaf)
        fits = array.ndim == plain.ndim if resizable else array.shape == plain.shape
        if not fits or array.dtype != plain.dtype:
            raise DamagedFileError(
                f"{path}: field {name} is {array.dtype}{array.shape}, not {plain.dtype}{plain.shape}"
            )
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        leaves.append(jax.random.wrap_key_data(jnp.asarray(array)) if is_key else jnp.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(f"state{jax.tree_util.keystr(path)}", leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
