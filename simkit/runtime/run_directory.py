"""The folder a run lives in: what was asked (manifest and scenario), what came of it (segments, summary)."""

import dataclasses
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simkit.errors import UserError
from simkit.runtime.environment import devices, versions
from simkit.runtime.files import DamagedFileError, checksum, read_json, remove_leftovers, write_bytes, write_json
from simkit.runtime.store import Store
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import Scenario
from simkit.scenario.schema import parse_scenario

FORMAT = 1
KINDS = ("run", "sweep", "optimize")
SUMMARY = "summary.json"


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
        manifest["checksum"] = _checksum(manifest, scenario.text)
        home = path.resolve()  # what a link points to is replaced, not the link
        temporary, replaced = (home.with_name(f".{home.name}.{os.getpid()}.{end}") for end in ("tmp", "old"))
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            write_bytes(temporary / "scenario.toml", scenario.text.encode())
            write_json(temporary / "manifest.json", manifest)
            if dataclasses.replace(cls.open(temporary).scenario(), source=scenario.source) != scenario:
                raise UserError(f"{scenario.name} is not what its text says, so it cannot be stored; change its text")
            if (home / "manifest.json").exists():
                with cls(home, {}).locked():
                    shutil.rmtree(replaced, ignore_errors=True)
                    home.rename(replaced)
            temporary.rename(home)
            shutil.rmtree(replaced, ignore_errors=True)
        except OSError as error:
            raise UserError(
                f"cannot write {path}: {error.strerror or error}; choose another folder with --output"
            ) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if replaced.exists() and not home.exists():
                replaced.rename(home)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path | str) -> "RunDirectory":
        """Open an existing run directory.

        Raises:
            UserError: if there is none, or its manifest is damaged or of another format.
        """
        path = Path(path)
        if not os.path.isfile(path / "manifest.json"):  # unlike Path.is_file, false for any path that cannot exist
            raise UserError(
                f"{path} is not a run directory (it has no manifest.json); give the folder that a run wrote"
            )
        try:
            manifest = read_json(path / "manifest.json")
            text = (path / "scenario.toml").read_bytes().decode()
        except (DamagedFileError, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} cannot be read back ({error}); run the scenario again") from None
        if manifest.get("format") != FORMAT:
            raise UserError(f"{path} has format {manifest.get('format')!r}; this simkit reads format {FORMAT}")
        if manifest.pop("checksum", None) != _checksum(manifest, text):
            raise UserError(f"{path}: its manifest.json or scenario.toml has changed; run the scenario again")
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
            scenario = parse_scenario(file.read_bytes().decode(), file)
            values = self.manifest["values"]
            return with_values(
                scenario, {f"{section}.{key}": value for section in values for key, value in values[section].items()}
            )
        except (OSError, KeyError, AttributeError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path}: its scenario cannot be read back ({error}); run it again") from None

    def warn_of_changes(self, warn: Callable[[str], None]) -> None:
        """Tell in one line which software is not the one that began the run.

        Args:
            warn: told.
        """
        now, began = versions(), self.manifest.get("versions", {})
        if changed := [f"{name} {began.get(name)} -> {now[name]}" for name in now if began.get(name) != now[name]]:
            warn(f"the software has changed since this run began, so its bytes may differ: {', '.join(changed)}")

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
            remove_leftovers(self.path)
            yield

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Hold a new directory like `locked`; an error before anything is stored removes it again.

        Raises:
            UserError: if another process holds it.
        """
        with self.locked():
            try:
                yield
            except Exception:
                if not any(self.path.rglob("*.npz")):
                    shutil.rmtree(self.path, ignore_errors=True)
                raise


def check_output(path: Path, *, overwrite: bool) -> None:
    """Refuse an output folder before any work is done.

    Args:
        path: where a run is to be written.
        overwrite: whether an existing run directory may be replaced.

    Raises:
        UserError: if it exists and may not be replaced.
    """
    try:
        home = path.resolve()
        if home.exists() and not home.is_dir():
            raise UserError(f"{path} exists and is not a folder; choose another with --output")
        if home == Path.cwd():
            raise UserError("the folder you are in cannot become a run directory; name one in it with --output")
        if home.is_dir() and any(home.iterdir()):
            if not _holds_run(home):
                raise UserError(f"{path} is not empty and is not a run directory; choose another with --output")
            if not overwrite:
                raise UserError(
                    f"{path} already holds a run; pass --overwrite to replace it, or choose another with --output"
                )
        existing = next(parent for parent in (home, *home.parents) if parent.exists())
        if not existing.is_dir():
            raise UserError(f"cannot write {path}: {existing} is not a folder; choose another with --output")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise UserError(f"cannot write {path}: no permission to write in {existing}; choose another with --output")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}; choose another with --output") from None


def _holds_run(folder: Path) -> bool:
    """Tell whether a folder is a run directory; any manifest.json will not do, since its folder may be deleted."""
    try:
        manifest = read_json(folder / "manifest.json")
    except DamagedFileError:
        return False
    return {"format", "scenario", "values", "request"} <= set(manifest) and manifest.get("kind") in KINDS


def _checksum(manifest: Mapping[str, Any], text: str) -> str:
    """Return a checksum of what was asked, so that a run never goes on with something else."""
    return checksum((json.dumps(manifest, sort_keys=True) + text).encode())
