"""Names of the files that simkit writes into a run directory; nothing else is ever removed with it."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

_ARCHIVE = r"\d{6,}\.npz"
_CHECKPOINTS = r"checkpoint(_previous)?\.npz"
_TEMPORARY = r"\..+\.\d+\.(tmp|partial)"
_PICTURES = r"(loss|before_after|sweep)\.png"
_FILES = re.compile(
    rf"\.lock|manifest\.json|scenario\.toml|summary\.json|sweep\.nc|{_CHECKPOINTS}|{_PICTURES}|{_TEMPORARY}"
    rf"|(segments/)?{_TEMPORARY}|segments/{_ARCHIVE}|chunk_\d{{4,}}\.npz"
    rf"|chunk_\d{{4,}}/({_CHECKPOINTS}|{_TEMPORARY}|segments/({_ARCHIVE}|{_TEMPORARY}))"
)
_FOLDERS = re.compile(r"segments|chunk_\d{4,}(/segments)?")


def strangers(folder: Path, scenario: str) -> list[str]:
    """Return what in a run directory simkit did not write: files of other names, links, pipes and devices.

    Args:
        folder: the run directory.
        scenario: its scenario's name, by which pictures and exported frames are called.
    """
    drawn = re.compile(rf"{re.escape(scenario)}\.(gif|mp4|png|xyz)")
    return sorted(_strangers(folder, "", drawn))


def _strangers(folder: Path, place: str, drawn: re.Pattern[str]) -> Iterator[str]:
    for path in folder.iterdir():
        name, mode = f"{place}{path.name}", path.lstat().st_mode
        if stat.S_ISDIR(mode) and _FOLDERS.fullmatch(name):
            yield from _strangers(path, f"{name}/", drawn)
        elif not stat.S_ISREG(mode) or not (_FILES.fullmatch(name) or drawn.fullmatch(name)):
            yield name
