"""Weights of learned energies, and other branches of parameters, as files of safetensors."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.errors import UserError, argument, one_line, package
from simkit.export.replacing import check_replaceable
from simkit.storage.files import write_bytes

LIBRARY = ("safetensors.numpy", "a file of weights", "simkit-physics[safetensors]")
# Bytes of the number before the header of such a file, and the first of the header.
HEADER = 8


def save_weights(weights: Any, file: Path | str, *, overwrite: bool = False) -> Path:
    """Write a tree of arrays as a file of safetensors (`pip install 'simkit-physics[safetensors]'`).

    Args:
        weights: nested dictionaries, lists and other pytrees of arrays, such as a branch of ``params``; each array is
            named by its path, such as ``layers.0.weight``.
        file: where to write; its folder must exist.
        overwrite: replace an existing file of safetensors, by a complete one only.

    Returns:
        The file.

    Raises:
        UserError: if the file exists or cannot be written, there is no array, or safetensors is not installed.

    Example:
        >>> import importlib.util, pathlib, tempfile
        >>> if importlib.util.find_spec("safetensors") is not None:
        ...     weights = {"layers": [{"weight": jnp.ones((2, 3))}]}
        ...     file = simkit.export.save_weights(weights, pathlib.Path(tempfile.mkdtemp()) / "model.safetensors")
        ...     read = simkit.export.load_weights(file, like=weights)
        ...     assert read["layers"][0]["weight"].tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    path = Path(file)
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in paths.leaves(weights).items()}
    if not arrays or "" in arrays or any(array.dtype.kind in "OUS" for array in arrays.values()):
        raise UserError("save_weights: weights are no tree of named arrays; give a dictionary of them")
    content = package(*LIBRARY).save(arrays)
    check_replaceable(path, overwrite, is_earlier=lambda old: old[HEADER : HEADER + 1] == b"{")
    write_bytes(path, content)
    return path


def load_weights(file: Path | str, like: Any) -> Any:
    """Return the arrays of a file of safetensors as a tree (`pip install 'simkit-physics[safetensors]'`).

    Args:
        file: as `save_weights` writes it, or of another program with the same names.
        like: a tree of arrays of the same names and shapes, whose types the result has.

    Returns:
        The tree, for `simkit.Simulation.with_params` or as a branch of ``params``.

    Raises:
        UserError: if the file cannot be read, or a name or shape differs; names it.

    Example:
        >>> import importlib.util, pathlib, tempfile
        >>> if importlib.util.find_spec("safetensors") is not None:
        ...     file = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        ...     file = simkit.export.save_weights({"bias": jnp.arange(3.0)}, file)
        ...     assert simkit.export.load_weights(file, like={"bias": jnp.zeros(3)})["bias"].tolist() == [0.0, 1.0, 2.0]
    """
    path, where = Path(file), f"load_weights: {one_line(str(file), 60)}"
    library = package(*LIBRARY)
    try:
        arrays = library.load(path.read_bytes())
    except OSError as error:
        raise UserError(f"{where} cannot be read: {error.strerror}; check the path") from None
    except Exception as error:  # of the library, which has types of its own
        raise UserError(f"{where} is no file of safetensors: {one_line(str(error), 80)}; give another") from None
    leaves = paths.leaves(like)
    if different := sorted(leaves.keys() ^ arrays.keys()):
        place = "is missing in the file" if different[0] in leaves else f"is not among those of {argument('like')}"
        raise UserError(f"{where}: '{different[0]}' {place}, of {len(different)} such; give weights of this model")
    for name, leaf in leaves.items():
        if not np.can_cast(arrays[name].dtype, jnp.result_type(leaf), "same_kind"):
            problem = f"holds {arrays[name].dtype}, and that of this model {jnp.result_type(leaf)}"
            raise UserError(f"{where}: '{name}' {problem}; give weights of this model")
        if arrays[name].shape != np.shape(leaf):
            problem = f"has shape {arrays[name].shape}, and that of this model {np.shape(leaf)}"
            raise UserError(f"{where}: '{name}' {problem}; give weights of this model")
    return paths.mapped(lambda name, leaf: jnp.asarray(arrays[name], jnp.result_type(leaf)), like)
