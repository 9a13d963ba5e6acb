"""Names of the files that simkit writes into a run directory; a directory with any other file is never removed."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from simkit.storage.kinds import kind_of

_TEMPORARY = r"\..+\.\d+\.(tmp|partial)"
_STORE = rf"checkpoint(_previous)?\.npz|{_TEMPORARY}|segments/(\d{{6,}}\.npz|{_TEMPORARY})"


def foreign_files(folder: Path, scenario: str, kind: str) -> list[str]:
    """Return the entries of a run directory that simkit did not write: files of other names, links, pipes and devices.

    Args:
        folder: the run directory.
        scenario: name of its scenario, which is the file name of pictures and exported frames.
        kind: kind of its job, a key of `KINDS`.
    """
    job = kind_of(kind)
    nested = f"({job.stores})/" if job.stores else ""
    files = re.compile(
        rf"\.lock|manifest\.json|scenario\.toml|summary\.json|{job.files}|({nested})?({_STORE})"
        rf"|{re.escape(scenario)}\.(gif|mp4|png|xyz)"
    )
    folders = re.compile(rf"({nested})?segments|{job.stores}")
    found = _foreign_files(folder, "", files, folders)
    if job.nested is None:
        return sorted(found)
    runs = {path.name: foreign_files(path, scenario, job.nested[1]) for path in nested_runs(folder, kind)}
    inner = [f"{name}/{file}" for name, files_in_run in runs.items() for file in files_in_run]
    return sorted([name for name in found if name not in runs] + inner)


def nested_runs(folder: Path, kind: str) -> list[Path]:
    """Return the folders in a run directory that are themselves run directories.

    Args:
        folder: the run directory.
        kind: kind of its job, a key of `KINDS`.
    """
    nested = kind_of(kind).nested
    if nested is None:
        return []
    matching = (path for path in folder.iterdir() if re.fullmatch(nested[0], path.name))
    return sorted(path for path in matching if stat.S_ISDIR(path.lstat().st_mode))


def _foreign_files(folder: Path, prefix: str, files: re.Pattern[str], folders: re.Pattern[str]) -> Iterator[str]:
    for path in folder.iterdir():
        name, mode = f"{prefix}{path.name}", path.lstat().st_mode
        if stat.S_ISDIR(mode) and folders.fullmatch(name):
            yield from _foreign_files(path, f"{name}/", files, folders)
        elif not stat.S_ISREG(mode) or not files.fullmatch(name):
            yield name
