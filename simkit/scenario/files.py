"""Files that a scenario names: read, stored in its text, and found again there."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simkit.core.files import MAX_FILE_BYTES, frame_text, is_frame, read_text
from simkit.core.paths import below
from simkit.core.settings import text
from simkit.errors import UserError, argument
from simkit.scenario import checks

HEADER = "[files]"


class Files:
    """The files of one scenario: stored in its text, or in its folder.

    Args:
        stored: texts by name, from the table ``[files]``; empty if the scenario has none.
        folder: of the scenario file; None where paths are those of a user, who may name any file.
    """

    def __init__(self, stored: Mapping[str, str], folder: Path | None) -> None:
        """Take the stored texts."""
        self._folder, self._used = folder, set[str]()
        self._texts, self._is_complete = dict(stored), bool(stored)
        self._refuse_too_much()

    def resolve(self, value: Any, where: str) -> Any:
        """Return a value of ``[config]`` with the texts of the files in it.

        A table ``{ file = "name" }``, or ``{ run = "folder", frame = -1 }`` for a frame of a stored run, is replaced by
        the text; a table with other keys beside ``file`` gets it as ``text``.

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
        key = "file" if "file" in value else "run" if is_frame(value) else ""
        # Values taken from elsewhere have their texts; a scenario file may not say what another file holds.
        if not key or (self._folder is None and "text" in value):
            return {key: self.resolve(entry, below(where, key)) for key, entry in value.items()}
        place, frame = f"{where}.{key}", value.get("frame", -1)
        path = text("").check(value[key], place)
        name = path if key == "file" else f"{path} frame {frame}"
        if name not in self._texts:
            beside = self._beside(path, place, is_run=key == "run")
            self._texts[name] = read_text(beside, place) if key == "file" else frame_text(beside, frame, place)
            self._refuse_too_much()
        self._used.add(name)
        return value | {"text": self._texts[name]} if key == "file" and len(value) > 1 else self._texts[name]

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

    def _beside(self, name: str, where: str, *, is_run: bool) -> Path:
        """Return the path of a file, refusing files outside the folder and hidden ones: a scenario may be untrusted."""
        if self._folder is None:
            return Path(name)
        path = self._folder / name
        real, folder = Path(os.path.realpath(path)), os.path.realpath(self._folder)
        noun, value = ("run", '{"run": "..."}') if is_run else ("file", 'Path("...")')
        remedy = f"put the {noun} beside it, or leave it out there and give any {noun} with {argument('KEY', value)}"
        problem = "" if real.is_relative_to(folder) else f"outside the folder of the scenario; {remedy}"
        if not problem and any(part.startswith(".") for part in real.relative_to(folder).parts):
            problem = "hidden or in a hidden folder, where keys and passwords are kept; give it another name"
        if self._is_complete:
            problem = "not in [files]; add its text there"
        if problem:
            raise UserError(f"{where} = {checks.show(name)} is {problem}")
        return path

    def _refuse_too_much(self) -> None:
        if sum(len(text.encode()) for text in self._texts.values()) > MAX_FILE_BYTES:
            raise UserError("its files are over 8 MiB together; give smaller ones")


def refuse_unread(config: Any, where: str = "config") -> None:
    """Refuse files that a configuration names without their text: they would be read unseen, and not be kept.

    Args:
        config: a value of ``[config]``.
        where: name of the value in errors.

    Raises:
        UserError: that names the key.
    """
    if isinstance(config, dict) and "text" not in config and ("file" in config or is_frame(config)):
        key, name = next((key, config[key]) for key in ("file", "run") if key in config)
        remedy = f"give {where} as a whole: {{ {key} = {checks.show(name)} }}"
        raise UserError(f"{where} names a file that was not read with it; {remedy}")
    for key, value in config.items() if isinstance(config, dict) else ():
        refuse_unread(value, below(where, key))
    for index, value in enumerate(config if isinstance(config, tuple | list) else ()):
        refuse_unread(value, f"{where}[{index}]")


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
