"""Outputs of exports that exist already: refused, or replaced where that is asked for."""

from collections.abc import Callable, Collection
from pathlib import Path

from simkit.errors import UserError, argument

# Bytes at the beginning and the end of a file in which exports are recognized.
ENDS = 2**20


def check_page(path: Path) -> None:
    """Refuse a file that its name says to be no page.

    Args:
        path: the file.

    Raises:
        UserError: with the name that it would have.
    """
    if path.suffix not in (".html", ".htm"):
        raise UserError(f"{path} cannot hold a page; name it {path.stem}.html")


def check_replaceable(
    path: Path,
    overwrite: bool,
    marks: Collection[str] = (),
    is_own: Callable[[str], bool] = lambda name: True,
    is_earlier: Callable[[bytes], bool] = lambda content: True,
) -> None:
    """Refuse an output that exists, unless it is an earlier one that may be replaced.

    Args:
        path: file or folder to write.
        overwrite: whether an earlier output may be replaced.
        marks: names of files of which an earlier folder has at least one; empty for an output that is a file.
        is_own: whether a name in an earlier folder is that of a file which exports write.
        is_earlier: whether a file that begins and ends with these bytes is an earlier output.

    Raises:
        UserError: if something exists there that may not be replaced.
    """
    if not (path.exists() or path.is_symlink()):
        return
    noun, replace = "folder" if marks else "file", argument("overwrite", "True")
    another = f"choose another {noun} with {argument('output')}"
    if not overwrite:
        raise UserError(f"{path} exists; {another}, remove it, or pass {replace} to replace it")
    if path.is_symlink():
        is_replaced = False
    elif marks:
        is_replaced = any((path / mark).is_file() for mark in marks)
    else:
        is_replaced = path.is_file() and is_earlier(_ends(path))
    if not is_replaced:
        raise UserError(f"{path} is no earlier export that {replace} replaces; {another}")
    if marks and (others := sorted(inner.name for inner in path.iterdir() if not is_own(inner.name))):
        wrote = f"holds files that no export wrote ({', '.join(others[:3])})"
        raise UserError(f"{path} {wrote}, which {replace} would delete; move them, or {another}")


def _ends(path: Path) -> bytes:
    """Return the beginning and the end of a file."""
    with path.open("rb") as file:
        begin = file.read(ENDS)
        file.seek(max(path.stat().st_size - ENDS, 0))
        return begin + file.read(ENDS)
