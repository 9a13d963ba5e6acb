"""Files that a scenario names: read, stored in its text, and found again there."""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simkit.core.paths import below
from simkit.core.settings import text
from simkit.errors import UserError, argument
from simkit.scenario import checks

MAX_FILE_BYTES = 8 * 2**20
HEADER = "[files]"
# Characters that TOML does not allow in a multi-line string.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def read_text(
    path: Path | str, where: str, largest: int = MAX_FILE_BYTES, purpose: str = "to be kept in a scenario"
) -> str:
    """Return the text of a file, with line feeds as line ends.

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
        label = checks.show(str(path) if len(str(path)) < 60 else path.name)
        raise UserError(f"{where}: {label} {problem}")
    return decoded


class Files:
    """The files of one scenario: stored in its text, or in its folder.

    Args:
        stored: texts by name, from the table ``[files]``; empty if the scenario has none.
        folder: of the scenario file.
    """

    def __init__(self, stored: Mapping[str, str], folder: Path) -> None:
        """Take the stored texts."""
        self._folder, self._used = folder, set[str]()
        self._texts, self._is_complete = dict(stored), bool(stored)
        self._refuse_too_much()

    def resolve(self, value: Any, where: str) -> Any:
        """Return a value of ``[config]`` with each table ``{ file = "name" }`` replaced by the text of the file.

        Args:
            value: as parsed.
            where: name of the value in errors.

        Raises:
            UserError: if a file cannot be inlined.
        """
        if isinstance(value, list):
            return [self.resolve(entry, f"{where}[{index}]") for index, entry in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if "file" not in value:
            return {key: self.resolve(entry, below(where, key)) for key, entry in value.items()}
        if len(value) > 1:
            other = next(key for key in value if key != "file")
            raise UserError(f'{where} has {checks.show(other)} beside file; write {{ file = "name" }} only')
        name = text("").check(value["file"], f"{where}.file")
        if name not in self._texts:
            self._texts[name] = read_text(self._beside(name, where), f"{where}.file")
            self._refuse_too_much()
        self._used.add(name)
        return self._texts[name]

    def kept_in(self, scenario: str) -> str:
        """Return the text of the scenario with the texts of its files appended.

        Args:
            scenario: text of the scenario file.

        Raises:
            UserError: if ``[files]`` has a file that ``[config]`` does not name.
        """
        if unused := set(self._texts) - self._used:
            name = checks.show(min(unused))
            raise UserError(f"files.{name} is not named in [config]; write {{ file = {name} }} there")
        if self._is_complete or not self._texts:
            return scenario
        tables = [f"{json.dumps(name, ensure_ascii=False)} = {_quoted(kept)}" for name, kept in self._texts.items()]
        note = "# The files named above, as they were when this scenario was read."
        return "\n".join([scenario.rstrip("\n"), "", note, HEADER, *tables, ""])

    def _beside(self, name: str, where: str) -> Path:
        """Return the path of a file, refusing files outside the folder and hidden ones: a scenario may be untrusted."""
        path = self._folder / name
        real, folder = Path(os.path.realpath(path)), os.path.realpath(self._folder)
        remedy = f"put the file beside it, or give any file with {argument('KEY', 'Path("...")')}"
        problem = "" if real.is_relative_to(folder) else f"outside the folder of the scenario; {remedy}"
        if not problem and any(part.startswith(".") for part in real.relative_to(folder).parts):
            problem = "hidden or in a hidden folder, where keys and passwords are kept; give it another name"
        if self._is_complete:
            problem = "not in [files]; add its text there"
        if problem:
            raise UserError(f"{where}.file = {checks.show(name)} is {problem}")
        return path

    def _refuse_too_much(self) -> None:
        if sum(len(text.encode()) for text in self._texts.values()) > MAX_FILE_BYTES:
            raise UserError("its files are over 8 MiB together; give smaller ones")


def own_part(content: bytes) -> bytes:
    """Return the content of a scenario file without its table ``[files]``.

    Args:
        content: of the scenario file.
    """
    return content.partition(f"\n{HEADER}\n".encode())[0]


def _quoted(text: str) -> str:
    """Return a text as a multi-line TOML string, without escapes if TOML allows that."""
    if "'''" in text or text.endswith("'"):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"""\n{escaped}"""'
    return f"'''\n{text}'''"
