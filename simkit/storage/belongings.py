"""Names of the files that simkit writes into a run directory; nothing else is ever removed with it."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

from simkit.storage.kinds import kind_of

_TEMPORARY = r"\..+\.\d+\.(tmp|partial)"
_STORE = rf"checkpoint(_previous)?\.npz|{_TEMPORARY}|segments/(\d{{6,}}\.npz|{_TEMPORARY})"


def strangers(folder: Path, scenario: str, kind: str) -> list[str]:
    """Return what in a run directory simkit did not write: files of other names, links, pipes and devices.

    Args:
        folder: the run directory.
        scenario: its scenario's name, by which pictures and exported frames are called.
        kind: of its job.
    """
    job = kind_of(kind)
    nested = f"({job.stores})/" if job.stores else ""
    files = re.compile(
        rf"\.lock|manifest\.json|scenario\.toml|summary\.json|{job.files}|({nested})?({_STORE})"
        rf"|{re.escape(scenario)}\.(gif|mp4|png|xyz)"
    )
    folders = re.compile(rf"({nested})?segments|{job.stores}")
    found = _strangers(folder, "", files, folders)
    if job.nested is None:
        return sorted(found)
    runs = {path.name: strangers(path, scenario, job.nested[1]) for path in nested_runs(folder, kind)}
    inner = [f"{name}/{odd}" for name, odds in runs.items() for odd in odds]
    return sorted([name for name in found if name not in runs] + inner)


def nested_runs(folder: Path, kind: str) -> list[Path]:
    """Return the folders in a run directory that are run directories of their own.

    Args:
        folder: the run directory.
        kind: of its job.
    """
    nested = kind_of(kind).nested
    if nested is None:
        return []
    places = (path for path in folder.iterdir() if re.fullmatch(nested[0], path.name))
    return sorted(path for path in places if stat.S_ISDIR(path.lstat().st_mode))


def _strangers(folder: Path, place: str, files: re.Pattern[str], folders: re.Pattern[str]) -> Iterator[str]:
    for path in folder.iterdir():
        name, mode = f"{place}{path.name}", path.lstat().st_mode
        if stat.S_ISDIR(mode) and folders.fullmatch(name):
            yield from _strangers(path, f"{name}/", files, folders)
        elif not stat.S_ISREG(mode) or not files.fullmatch(name):
            yield name
