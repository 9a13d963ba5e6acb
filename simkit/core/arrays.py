"""Arrays that a value names: of a file, of a frame of a stored run, or given in Python."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.files import FRAME, content_of, frame_text, is_frame, read_text
from simkit.core.settings.setting import Setting, shown
from simkit.errors import UserError, one_line

# A compressed file may declare a thousand times its own size.
LARGEST = 2**30


class Stored(dict[str, np.ndarray]):
    """Arrays of a frame of a stored run, or of a data set, which has more than what is asked for."""


def arrays(doc: str) -> Setting:
    """Return a setting that is arrays by name, kept as a dictionary; a single one of a ``.npy`` file is named "".

    Args:
        doc: their meaning.
    """

    def check(value: Any, where: str) -> dict[str, np.ndarray]:
        if isinstance(value, Mapping) and "file" in value:
            value = value.get("text") or read_text(Path(str(value["file"])), f"{where}.file")
        elif isinstance(value, Mapping) and is_frame(value):
            value = frame_text(str(value["run"]), value.get("frame", -1), where)
        if isinstance(value, str):
            content, name = content_of(value, where)
            named = _loaded(content, f"{where}: {one_line(name, 60)}" if name else where)
            # Scenarios kept by earlier versions do not name what they keep.
            kind = Stored if name in (FRAME, "") else dict
        elif isinstance(value, Mapping):
            named = {str(name): _in_order(array) for name, array in value.items()}
            kind = Stored if hasattr(value, "data_vars") else dict
        else:
            ways = 'write { file = "start.npz" }, { run = "runs/demo", frame = -1 }, or arrays by name'
            raise UserError(f"{where} = {shown(value)} has no arrays; {ways}")
        return kind((name, _checked(array, f"{where}.{name}".rstrip("."))) for name, array in named.items())

    schema = {"type": ["object", "string"]}
    return Setting("arrays by name", doc, check, describe=lambda: schema, form="arrays")


def _in_order(array: Any) -> Any:
    """Return a labeled array with its axes in the order of their names, as x, y and z; any other unchanged."""
    return array.transpose(*sorted(array.dims)) if hasattr(array, "dims") else array


def _checked(array: Any, where: str) -> np.ndarray:
    try:
        array = np.asarray(array)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    if array.dtype.kind not in "fiu":
        raise UserError(f"{where} has the type {array.dtype}; give an array of real numbers")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = [int(index) for index in wrong[0]]
        raise UserError(f"{where}: the number at index {place} of {list(array.shape)} is not finite; replace it")
    return array


def _loaded(content: bytes, where: str) -> dict[str, np.ndarray]:
    try:
        if not content.startswith(b"PK"):
            return {"": np.load(io.BytesIO(content), allow_pickle=False)}
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise ValueError("its arrays are over 1 GiB")
        with np.load(io.BytesIO(content), allow_pickle=False) as members:
            return dict(members)
    except Exception as error:  # zipfile and numpy raise many types of errors on malformed bytes
        reason = one_line(error, 60)
        raise UserError(f"{where} is cut short or no file of arrays ({reason}); write it with numpy.savez") from None
