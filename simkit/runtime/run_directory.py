"""The folder a run lives in: what was asked (manifest and scenario), what came of it (segments, summary)."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simkit.errors import UserError
from simkit.runtime.environment import devices, versions
from simkit.runtime.files import DamagedFileError, read_json, write_bytes, write_json
from simkit.runtime.store import Store
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario
from simkit.scenario.schema import parse_scenario

FORMAT = 1


class RunDirectory:
    """A run on disk.

    Attributes:
        path: the folder.
        manifest: what was asked, as plain data; never changes after the run has begun.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(
        cls, path: Path, kind: str, scenario: Scenario, request: Mapping[str, Any], *, overwrite: bool = False
    ) -> "RunDirectory":
        """Make a run directory, all of it or none.

        Args:
            path: where; missing parents are made.
            kind: ``"run"``, ``"sweep"`` or ``"optimize"``.
            scenario: the scenario with every override applied.
            request: what else decides the result, as plain data.
            overwrite: replace an existing run directory (and nothing else).

        Raises:
            UserError: if the folder exists and may not be replaced, or cannot be written.
        """
        check_output(path, overwrite=overwrite)
        manifest = {
            "format": FORMAT,
            "kind": kind,
            "scenario": scenario.name,
            "values": {
                "config": scenario.config,
                "params": {name: parameter.default for name, parameter in scenario.parameters.items()},
                "run": vars(scenario.run),
            },
            "request": dict(request),
            "versions": versions(),
            "devices": devices(),
        }
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            write_bytes(temporary / "scenario.toml", scenario.text.encode())
            write_json(temporary / "manifest.json", manifest)
            if overwrite and path.exists():
                shutil.rmtree(path)
            temporary.rename(path)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise UserError(f"cannot write {path}: {error.strerror}; choose another folder with --output") from None
        return cls.open(path)

    @classmethod
    def open(cls, path: Path | str) -> "RunDirectory":
        """Open an existing run directory.

        Raises:
            UserError: if there is none, or its manifest is damaged or of another format.
        """
        path = Path(path)
        if not (path / "manifest.json").is_file():
            raise UserError(
                f"{path} is not a run directory (it has no manifest.json); give the folder that a run wrote"
            )
        try:
            manifest = read_json(path / "manifest.json")
        except DamagedFileError as error:
            raise UserError(f"{error}; the manifest is damaged, run the scenario again") from None
        if manifest.get("format") != FORMAT:
            raise UserError(f"{path} has format {manifest.get('format')!r}; this simkit reads format {FORMAT}")
        return cls(path, manifest)

    @property
    def kind(self) -> str:
        """``"run"``, ``"sweep"`` or ``"optimize"``."""
        return self.manifest["kind"]

    @property
    def store(self) -> Store:
        """Segments and checkpoints."""
        return Store(self.path)

    def scenario(self) -> Scenario:
        """Return the scenario exactly as it was run.

        Raises:
            UserError: if the stored scenario or the manifest's values are damaged.
        """
        file = self.path / "scenario.toml"
        try:
            scenario = parse_scenario(file.read_text(encoding="utf-8"), file)
            values = self.manifest["values"]
            return with_values(
                scenario, {f"{section}.{key}": value for section in values for key, value in values[section].items()}
            )
        except (OSError, KeyError, AttributeError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path}: its scenario cannot be read back ({error}); run it again") from None

    def changed_versions(self) -> list[str]:
        """Return what differs between the software that began the run and the software at hand."""
        now = versions()
        began = self.manifest.get("versions", {})
        return [f"{name} {began.get(name)} -> {now[name]}" for name in now if began.get(name) != now[name]]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory against other processes that would write to it.

        Raises:
            UserError: if another process holds it.
        """
        with (self.path / ".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"{self.path} is being written by another process; wait for it to end") from None
            yield


def check_output(path: Path, *, overwrite: bool) -> None:
    """Refuse an output folder before any work is done.

    Args:
        path: where a run is to be written.
        overwrite: whether an existing run directory may be replaced.

    Raises:
        UserError: if it exists and may not be replaced.
    """
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} exists and is not a folder; choose another with --output")
    if (path / "manifest.json").exists():
        if not overwrite:
            raise UserError(
                f"{path} already holds a run; pass --overwrite to replace it, or choose another with --output"
            )
    elif path.is_dir() and any(path.iterdir()):
        raise UserError(f"{path} is not empty and is not a run directory; choose another with --output")
    existing = next(parent for parent in (path, *path.resolve().parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        raise UserError(f"cannot write {path}: no permission to write in {existing}; choose another with --output")
