"""Files that a value names: their text, or arrays and stored frames as text, to be kept with what names them."""

import base64
import contextlib
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simkit.errors import UserError, one_line, within
from simkit.plugins import Registry

MAX_FILE_BYTES = 8 * 2**20
# Files of arrays, and how their text begins; its first line goes on with the name of the file, or with `FRAME`.
ARRAYS, BINARY, FRAME = (".npy", ".npz"), "base64:", "frame"
# Characters that TOML does not allow in a multi-line string.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# ``frame``: ``(folder, frame) -> `` content of an ``.npz`` file with the arrays of one frame; added by `simkit`.
RUNS = Registry("stored_run", {})


def read_text(
    path: Path | str, where: str, largest: int = MAX_FILE_BYTES, purpose: str = "to be kept in a scenario"
) -> str:
    """Return the text of a file, with line feeds as line ends; of a file of arrays its bytes as `BINARY` text.

    Args:
        path: the file.
        where: name of the place in errors.
        largest: largest size in bytes.
        purpose: of reading, for the error, such as ``"to be kept in a scenario"``.

    Raises:
        UserError: if it cannot be read, is too large, or is not text.
    """
    path = Path(path)
    content, decoded = b"", ""
    try:
        mode = path.stat().st_mode
        problem = (
            "is a directory; name a text file" if stat.S_ISDIR(mode) else "is not a regular file; name a text file"
        )
        if stat.S_ISREG(mode):
            problem = ""
            with path.open("rb") as file:
                content = file.read(largest + 1)
            if path.suffix in ARRAYS:
                decoded = binary_text(content, path.name)
            else:
                decoded = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        problem = "does not exist; check the path"
    except UnicodeDecodeError as error:
        problem = f"has byte {error.start}, which is not UTF-8 text; give a text file"
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or "its path is malformed"
        problem = f"cannot be read: {reason}; check the path and its permissions"
    if len(content) > largest:
        problem = f"is over {largest // 2**20} MiB, too large {purpose}; give a smaller file"
    elif odd := _CONTROL.search(decoded):
        problem = f"holds the control character {odd[0]!r}; give a text file"
    if problem:
        label = one_line(repr(str(path) if len(str(path)) < 60 else path.name), 60)
        raise UserError(f"{where}: {label} {problem}")
    return decoded


def read_texts(path: Path, where: str) -> str:
    """Return the text of a file, or those of all files of a folder whose names match a pattern, one after the other.

    Args:
        path: the file; with ``*`` in its name, a pattern of names, such as ``relaxed/*.xyz``, in alphabetical order.
        where: name of the place in errors.

    Raises:
        UserError: if one cannot be read, is too large, or is not text; or if no name matches.
    """
    if "*" not in path.name:
        return read_text(path, where)
    if not (files := sorted(path.parent.glob(path.name))):
        raise UserError(f"{where}: no file is named {one_line(str(path), 60)}; check the pattern")
    texts = [read_text(file, where) for file in files]
    if sum(map(len, texts)) > MAX_FILE_BYTES:
        raise UserError(f"{where}: the {len(files)} files are over {MAX_FILE_BYTES // 2**20} MiB together; give fewer")
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


def binary_text(content: bytes, name: str) -> str:
    """Return bytes as lines of text with the name of their file, see `content_of`."""
    return f"{BINARY}{' '.join(name.split())}\n{base64.encodebytes(content).decode()}"


def content_of(text: str, where: str) -> tuple[bytes, str]:
    """Return the bytes of a file of arrays from its text, and the name of the file, or `FRAME`.

    Raises:
        UserError: if the text is that of another file.
    """
    name, _, lines = text.removeprefix(BINARY).partition("\n")
    if text.startswith(BINARY):
        with contextlib.suppress(ValueError):
            return base64.decodebytes(lines.encode()), name
    raise UserError(f"{where} is no file of arrays; name a .npz or .npy file")


def is_frame(value: Mapping[str, Any]) -> bool:
    """Return whether a table names a frame of a stored run: ``{ run = "runs/demo", frame = -1 }``."""
    return "run" in value and value.keys() <= {"run", "frame"}


def frame_text(path: Path | str, frame: Any, where: str) -> str:
    """Return the arrays of one frame of a stored run as text, see `content_of`.

    Args:
        path: folder of the run.
        frame: which one, counted from 0, or from -1 backward.
        where: name of the place in errors.

    Raises:
        UserError: if it is no run, or has no such frame.
    """
    with within(f"{where}: "):
        return binary_text(RUNS.resolve("frame")(path, frame), FRAME)
