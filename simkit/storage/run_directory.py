"""Run directories: creation, locking, replacement and reading of the folder that holds a job and its results."""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import stat
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simkit.core.arguments import check_type
from simkit.errors import UserError, argument, check_characters
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import with_simulation
from simkit.scenario.overrides import with_values
from simkit.scenario.scenario import IN_PYTHON, Scenario
from simkit.storage import files
from simkit.storage.kinds import kind_of
from simkit.storage.manifest import (
    check_manifest,
    declared_in,
    devices,
    frames_layout,
    identity_of,
    is_manifest,
    manifest_of,
    other_devices,
    versions,
)
from simkit.storage.store import Store

if TYPE_CHECKING:
    from simkit.core.simulation import Simulation


MANIFEST, SCENARIO = "manifest.json", "scenario.toml"
# A second copy of both, which takes their place after a power failure.
COPY = "manifest_copy.json"
# The number of steps of a run that was extended.
CONTINUATION = "continuation.json"
SUMMARY, REPORT, LOCK = "summary.json", "report.html", ".lock"
# Network file systems keep files that are deleted while another process reads them.
_TEMPORARY = r"\..+\.\d+\.(tmp|partial)|\.nfs[0-9a-f]+"
_STORE = rf"checkpoint(_previous)?\.npz|{_TEMPORARY}|segments/(\d{{6,}}\.npz|{_TEMPORARY})"


def foreign_files(folder: Path, scenario: str, kind: str) -> list[str]:
    """Return the entries of a run directory that simkit did not write: files of other names, links, pipes and devices.

    Args:
        folder: the run directory.
        scenario: name of its scenario, which is the file name of pictures and exported frames.
        kind: kind of its job.
    """
    job = kind_of(kind)
    nested = f"({job.stores})/" if job.stores else ""
    names = "|".join(map(re.escape, (LOCK, MANIFEST, COPY, SCENARIO, SUMMARY, REPORT, CONTINUATION)))
    written = re.compile(rf"{names}|{job.files}|({nested})?({_STORE})|{re.escape(scenario)}\.(gif|mp4|png|xyz)")
    folders = re.compile(rf"({nested})?segments|{job.stores}")
    foreign = _foreign_files(folder, "", written, folders)
    if job.nested is None:
        return sorted(foreign)
    runs = {path.name: foreign_files(path, scenario, job.nested[1]) for path in nested_runs(folder, kind)}
    inner = [f"{name}/{file}" for name, files_in_run in runs.items() for file in files_in_run]
    return sorted([name for name in foreign if name not in runs] + inner)


def nested_runs(folder: Path, kind: str) -> list[Path]:
    """Return the folders in a run directory, of a kind of job, that are themselves run directories."""
    nested = kind_of(kind).nested
    if nested is None:
        return []
    return sorted(path for path in folder.iterdir() if re.fullmatch(nested[0], path.name) and files.check_folder(path))


def _foreign_files(folder: Path, prefix: str, written: re.Pattern[str], folders: re.Pattern[str]) -> Iterator[str]:
    for path in folder.iterdir():
        name, mode = f"{prefix}{path.name}", path.lstat().st_mode
        if stat.S_ISDIR(mode) and folders.fullmatch(name):
            yield from _foreign_files(path, f"{name}/", written, folders)
        elif not stat.S_ISREG(mode) or not written.fullmatch(name):
            yield name


def resuming(path: Path, simulation: str) -> str:
    """Return the command that resumes a job, or the call in Python if its simulation was made there."""
    if simulation == IN_PYTHON:
        return f"simkit.resume({json.dumps(str(path))}, simulation=...) in Python"
    return f"simkit resume {shlex.quote(str(path))}"


class UnfinishedError(UserError):
    """The end of a job that can be resumed: its run directory is kept, even if no result is stored yet.

    Attributes:
        reason: what happened and what to do before resuming, ending before a colon and the command.
        folder: the run directory.
    """

    is_mistake = False

    def __init__(self, reason: str, folder: Path) -> None:
        """Store the parts of the message."""
        super().__init__(f"{folder}: {reason}: {resuming(folder, '')}")
        self.reason, self.folder = reason, folder


@dataclasses.dataclass(frozen=True, eq=False)
class RunDirectory:
    """A job on disk.

    Attributes:
        path: the folder.
        manifest: the request, as plain data; constant after creation.
        text: text of the scenario file.
        made: the simulation, if it was made in Python and passed again by the caller.
        is_repaired: whether manifest and text are from their second copy, and their files are written again.
    """

    path: Path
    manifest: Mapping[str, Any]
    text: str
    made: "Simulation | None" = None
    is_repaired: bool = False

    @classmethod
    @contextmanager
    def created(
        cls, path: Path, kind: str, scenario: Scenario, request: Mapping[str, Any], *, overwrite: bool = False
    ) -> "Iterator[RunDirectory]":
        """Create a run directory atomically, locked from its creation to the end of the ``with`` block.

        An error in the block before anything is stored removes the directory, unless it is an `UnfinishedError`.

        Args:
            path: folder to write; missing parents are created.
            kind: kind of job, a key of `simkit.storage.kinds.KINDS`.
            scenario: scenario with overrides applied.
            request: the job's further settings, as plain data.
            overwrite: replace an existing run directory (and nothing else).

        Raises:
            UserError: if the folder exists and may not be replaced, is locked by another process, or cannot be written.
        """
        check_output(path, overwrite=overwrite)
        home = path.resolve()  # the target of a link is replaced, not the link
        temporary, replaced = (files.hidden(home, f"{os.getpid()}.{end}") for end in ("tmp", "old"))
        with ExitStack() as locks:
            shutil.rmtree(temporary, ignore_errors=True)
            try:
                with files.writing(path, f"choose another folder with {argument('output')}"):
                    temporary.mkdir(parents=True)
                    # The lock is renamed with its folder, so the new directory is never unlocked.
                    locks.enter_context(_lock_folder(temporary, path))
                    _write_request(temporary, manifest_of(kind, scenario, request), scenario.text)
                    if not _run_alike(cls.open(temporary).scenario(), scenario):
                        raise UserError(
                            f"{scenario.name} differs from its text, so it cannot be stored; change its text"
                        )
                    if _holds_run(home):
                        with _lock_folder(home, path):
                            # Another process may have replaced the directory or added a file since the first check.
                            check_output(path, overwrite=overwrite)
                            shutil.rmtree(replaced, ignore_errors=True)
                            home.rename(replaced)
                            temporary.rename(home)
                    else:
                        temporary.rename(home)
                    shutil.rmtree(replaced, ignore_errors=True)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
                if replaced.exists() and not home.exists():
                    replaced.rename(home)
            try:
                yield cls.open(path)
            except Exception as error:
                if not isinstance(error, UnfinishedError) and not any(home.rglob("*.npz")):
                    shutil.rmtree(home, ignore_errors=True)
                raise

    @classmethod
    def open(cls, path: Path | str, made: "Simulation | None" = None) -> "RunDirectory":
        """Open an existing run directory.

        Args:
            path: the folder.
            made: the simulation, if it was made in Python.

        Raises:
            UserError: if the folder has no manifest, or its manifest is damaged or of another format.
        """
        path = folder_of(path)
        # Unlike Path.exists, lexists returns False for an invalid path.
        if not any(os.path.lexists(path / name) for name in (MANIFEST, COPY)):
            raise UserError(
                f"{path} is not a run directory (it has no manifest.json); give the folder that a run wrote"
            )
        try:
            manifest, text = files.read_json(path / MANIFEST), files.read_bytes(path / SCENARIO).decode()
            check_manifest(manifest, text, path)
        except (files.DamagedFileError, UnicodeDecodeError) as error:
            try:
                copy = files.read_json(path / COPY)
                manifest, text = copy["manifest"], copy["scenario"]
                check_manifest(manifest, text, path)
            except (files.DamagedFileError, KeyError, TypeError, AttributeError):
                reason = str(error).removeprefix(f"{path}: ").removeprefix(f"{path}/")
                raise UserError(f"{path} cannot be read back ({reason}); run the scenario again") from None
            warnings.warn(f"{error}; {COPY} takes the place of {MANIFEST} and {SCENARIO}", stacklevel=2)
            return cls(path, manifest, text, made, is_repaired=True)
        return cls(path, manifest, text, made)

    @property
    def resuming(self) -> str:
        """The command that resumes the job, or the call in Python."""
        try:
            simulation = parse_scenario(self.text, self.path / SCENARIO).simulation
        except UserError:
            simulation = ""
        return resuming(self.path, simulation)

    @property
    def kind(self) -> str:
        """The kind of job, a key of `simkit.storage.kinds.KINDS`."""
        return self.manifest["kind"]

    @property
    def device(self) -> str:
        """The first device on which the job began, as in `simkit.storage.manifest.devices`."""
        return next(iter(self.manifest["devices"]), "")

    @property
    def identity(self) -> str:
        """Identity of the run, stored in the seals of its files; equal for equal manifests."""
        return identity_of(self.manifest)

    @property
    def seal(self) -> files.Seal:
        """Seal of this run, completed by the name of a file."""
        return files.Seal(self.identity)

    @property
    def store(self) -> Store:
        """Store of the segments and checkpoints."""
        return Store(self.path, self.seal, frames_layout(self.manifest["request"]))

    def scenario(self) -> Scenario:
        """Return the scenario exactly as it was run, with the steps of its extension if there is one."""
        scenario, values = parse_scenario(self.text, self.path / SCENARIO), self.manifest["values"]
        settings, params = (
            {f"{section}.{key}": value for section in sections for key, value in values[section].items()}
            for sections in (("config", "run"), ("params",))
        )
        if (steps := self.extension) is not None:
            settings["run.steps"] = steps
        declared = declared_in(self.manifest, scenario)
        scenario = dataclasses.replace(with_values(scenario, settings), known_parameters=declared)
        scenario = with_values(scenario, params)
        return scenario if self.made is None else with_simulation(scenario, self.made, self.path)

    @property
    def extension(self) -> int | None:
        """Number of steps to which the run was extended; ``None`` for the number in its manifest."""
        path = self.path / CONTINUATION
        if not files.check_regular(path):
            return None
        try:
            return files.read_sealed_json(path, self.identity)["steps"]
        except (files.DamagedFileError, KeyError) as error:
            problem = error if isinstance(error, files.DamagedFileError) else f"{path}: it is of another kind"
            raise UserError(f"{problem}; remove it, and extend the run again with {argument('steps')}") from None

    def extend(self, steps: int) -> None:
        """Store that a finished run has further steps, so that it is no longer finished; nothing is computed yet."""
        with self.locked():
            # In this order: a crash in between leaves the run of fewer steps, which lacks only its summary.
            (self.path / SUMMARY).unlink(missing_ok=True)
            files.write_sealed_json(self.path / CONTINUATION, {"steps": steps}, self.identity)

    def check_kind(self, is_served: bool, words: str) -> None:
        """Refuse what is not for the kind of this job.

        Args:
            is_served: whether it is.
            words: the rest of the sentence, with what it is for and the remedy.

        Raises:
            UserError: with the kind of this job.
        """
        if not is_served:
            raise UserError(f"{self.path} holds {kind_of(self.kind).noun}{words}")

    def check_finished(self, names: Iterable[str], lack: str = "is not finished") -> None:
        """Refuse a job that lacks one of the files of a finished one.

        Raises:
            UserError: with what it lacks, and the command that finishes it.
        """
        if not all(files.check_regular(self.path / name) for name in names):
            raise UserError(f"{self.path} {lack}; finish it with: {self.resuming}")

    def warn_of_changes(self, warn: Callable[[str], None]) -> None:
        """Warn in one line of packages, devices and flags of the compiler that have changed since the run began."""
        now, began = versions(), self.manifest.get("versions", {})
        changed = [f"{name} {began[name]} -> {now[name]}" for name in now if began.get(name, now[name]) != now[name]]
        if on := other_devices(self.manifest["devices"], devices()):
            changed.append(on)
        flags = os.environ.get("XLA_FLAGS", "")
        if (before := self.manifest.get("xla_flags", flags)) != flags:  # absent in earlier versions
            changed.append(f"XLA_FLAGS {before!r} -> {flags!r}")
        if changed:
            words = "the software or the machine has changed since this run began, so its bytes may differ"
            warn(f"{words}: {', '.join(changed)}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory against other writing processes.

        Raises:
            UserError: if another process has locked it, it cannot be written, or all its files are from another run.
        """
        with _lock_folder(self.path, self.path):
            others = nested_runs(self.path, self.kind)
            archives = (p for p in sorted(self.path.rglob("*.npz")) if not any(map(p.is_relative_to, others)))
            runs = {files.run_of(path) for path in archives} - {None}
            if runs and self.identity not in runs:
                # The manifest is the misplaced file: resuming would overwrite the results of another run.
                raise UserError(
                    f"{self.path}: its manifest.json and its files are from different runs; restore the right one, "
                    f"or run the scenario again with {argument('overwrite', 'True')}"
                )
            files.remove_leftovers(self.path)
            if self.is_repaired:
                _write_request(self.path, self.manifest, self.text)
            yield


def _write_request(folder: Path, manifest: Mapping[str, Any], text: str) -> None:
    """Write the manifest and the scenario, and a second copy of both."""
    files.write_bytes(folder / SCENARIO, text.encode())
    files.write_json(folder / MANIFEST, manifest)
    files.write_json(folder / COPY, {"manifest": manifest, "scenario": text})


def folder_of(path: Path | str) -> Path:
    """Return a path, such as that of a folder.

    Raises:
        UserError: if it is none.
    """
    check_type("path", path, "a string or a pathlib.Path", str, os.PathLike)
    return Path(path)


@contextmanager
def _lock_folder(folder: Path, path: Path) -> Iterator[None]:
    """Lock a folder by the file ``.lock`` in it; ``path`` is the name used in errors.

    Raises:
        UserError: if another process has locked the folder, or it cannot be written.
    """
    busy = UserError(f"{path} is being written by another process; wait for it to end")
    with files.writing(path, "change its permissions, or copy it to another place"):
        file = files.open_regular(folder / LOCK, "rb+")
    with file:
        for wait in (0.01, 0.05, None):  # retried, since `is_locked` holds a shared lock for a moment
            try:
                files.lock(file)
                break
            except BlockingIOError:
                if wait is None:
                    raise busy from None
                time.sleep(wait)
        try:
            # If the folder was replaced between the two calls, its ``.lock`` is another file.
            if not os.path.samestat(os.fstat(file.fileno()), os.lstat(folder / LOCK)):
                raise busy
            os.utime(file.fileno())  # the time since when the job has been worked on, for its progress
        except OSError:
            raise busy from None
        yield


def is_locked(folder: Path) -> bool:
    """Return whether a process is writing to a run directory."""
    try:
        with files.open_regular(folder / LOCK, "rb") as file:
            files.lock(file, shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_output(path: Path, *, overwrite: bool) -> None:
    """Check an output folder before any computation.

    Raises:
        UserError: if it exists and may not be replaced, which ``overwrite`` allows for a run directory, or cannot be
            written.
    """
    check_characters(str(path))
    try:
        problem = _problem_of(path.resolve(), overwrite=overwrite)
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for a link to itself
        problem = f"cannot be written: {getattr(error, 'strerror', None) or 'it is a link to itself'}"
    if problem:
        choose = ", or choose" if ";" in problem else "; choose"
        raise UserError(f"{path} {problem}{choose} another with {argument('output')}")


def _problem_of(home: Path, *, overwrite: bool) -> str:
    """Return why a folder cannot become a run directory, in words; empty if it can."""
    if home.exists() and not home.is_dir():
        return "exists and is not a folder"
    if home == Path.cwd():
        return "is the folder you are in, which cannot become a run directory"
    if home.is_dir() and any(home.iterdir()):
        if not (manifest := _manifest_in(home)):
            return "is not empty and is not a run directory"
        if not overwrite:
            return f"already holds a run; resume it, pass {argument('overwrite', 'True')} to replace it"
        if foreign := foreign_files(home, str(manifest.get("scenario")), manifest["kind"]):
            names = ", ".join(foreign[:3]) + (f" and {len(foreign) - 3} more" if len(foreign) > 3 else "")
            deleted = f"which {argument('overwrite', 'True')} would delete; move them"
            return f"holds files that no run wrote ({names}), {deleted}"
    existing = next(parent for parent in (home, *home.parents) if parent.exists())
    if not existing.is_dir():
        return f"cannot be written: {existing} is not a folder"
    is_writable = os.access(existing, os.W_OK | os.X_OK)
    return "" if is_writable else f"cannot be written: no permission to write in {existing}"


def _holds_run(folder: Path) -> bool:
    """Return whether a folder has the manifest of a run, by its content, since the folder may be deleted."""
    return bool(_manifest_in(folder))


def _manifest_in(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run, altered or not, or its second copy; empty if there is none."""
    for name in (MANIFEST, COPY):
        with contextlib.suppress(files.DamagedFileError, UserError):
            content = files.read_json(folder / name)
            manifest = content.get("manifest", content)
            if isinstance(manifest, dict) and is_manifest(manifest):
                return manifest
    return {}


def _run_alike(stored: Scenario, scenario: Scenario) -> bool:
    """Return whether two scenarios run alike, whatever the source of their parameters' values and declarations."""
    ignored = {"source": scenario.source, "parameter_settings": {}}
    return stored.parameters == scenario.parameters and (
        dataclasses.replace(stored, **ignored) == dataclasses.replace(scenario, **ignored)
    )
