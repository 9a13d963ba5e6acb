"""Extended XYZ, the common text format of structures: checked line by line, then read with ASE.

A frame is a line with the number of atoms, a comment line of ``key=value`` pairs, and one line per atom. ``Lattice``
has the lattice vectors, ``pbc`` a flag of periodicity for each, ``Properties`` the names of the columns.
"""

import math
import re
from collections.abc import Iterable
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

from simkit.errors import UserError
from simkit.molecular.structures.structures import (
    FROZEN,
    MAX_ATOMS,
    NAME,
    RESERVED_ARRAYS,
    Structure,
    check_symbol,
    from_atoms,
    in_space,
    periodicity,
    shown,
)

MAX_CHARACTERS = 8 * 2**20
# ASE takes 0.3 ms for a frame.
MAX_FRAMES = 10_000
MAX_COMMENT = 20_000
MAX_COLUMNS = 200
PLAIN = "species:S:1:pos:R:3"
# Columns that ASE reads as atomic numbers, and as the atoms that may move.
_READ = {"Z": ("I", 1), "move_mask": ("L", 1)}

_COUNT = re.compile(r"\s*\d{1,9}\s*", re.ASCII)
_REAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][+-]?\d+)?", re.ASCII)
# Exponents as Fortran writes them.
_FORTRAN = re.compile(r"(?<=[\d.])[dD](?=[+-]?\d)", re.ASCII)
# Numbers of a comment that other programs write in ways of their own.
_NUMBERS = re.compile(r"""(?<!\S)(Lattice|stress|virial)(\s*=\s*)(?:"([^"]*)"|'([^']*)'|\{([^}]*)\}|\[([^\]]*)\])""")
# Entries of a symmetric tensor, row by row, in the order xx, yy, zz, yz, xz, xy of Voigt.
_VOIGT = (0, 5, 4, 5, 1, 3, 4, 3, 2)
# The label of an atom: its symbol and a number.
_LABEL = re.compile(r"([A-Z][a-z]?)\d+", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_LOGICAL = re.compile(r"T|F|True|False")
_WORD = re.compile(r"\S+")
_SPECIAL = {"lattice": "Lattice", "properties": "Properties", "pbc": "pbc"}
_KINDS = {
    "R": (_REAL, "a finite number"),
    "I": (_INTEGER, "an integer"),
    "L": (_LOGICAL, "T or F"),
    "S": (_WORD, "a word"),
}


class Column(NamedTuple):
    """A column of the atom lines: the name of its property and the letter of its type (R, I, L or S)."""

    name: str
    kind: str


def parse_extended_xyz(text: str, where: str = "structure") -> list[Structure]:
    """Return the structures of a text, one per frame.

    Args:
        text: extended XYZ, or plain XYZ, which is free space.
        where: name of the text in errors.

    Returns:
        At least one structure, with finite numbers only.

    Raises:
        UserError: if the text is not valid; the message has the number of the line.
    """
    if len(text) > MAX_CHARACTERS:
        raise UserError(f"{where}: the text is over 8 MiB; give fewer frames or atoms")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise UserError(f"{where}: the text is empty; its first line is the number of atoms")
    _refuse_too_many(lines, where)
    frames, start = [], 0
    while start < len(lines):
        frames.append(_frame(lines, start, where))
        start += len(frames[-1]) + 2
    return frames


def write_extended_xyz(frames: Iterable[Structure]) -> str:
    """Return structures as text, every number with the fewest digits that are read back as the same number.

    Args:
        frames: one or more structures. Words in ``info`` that look like numbers are read back as numbers.

    Raises:
        UserError: if there is no structure, or a word of an array is empty or contains a blank.
    """
    texts = [_written(frame) for frame in frames]
    if not texts:
        raise UserError("there is no structure to write; give at least one")
    return "".join(texts)


def _frame(lines: list[str], start: int, where: str) -> Structure:
    """Return the structure whose first line is ``lines[start]``."""
    count = _count(lines, start, where)
    if start + 1 == len(lines):
        raise UserError(f"{where}: line {start + 2} is missing; the comment line comes after the number of atoms")
    label = f"{where}: line {start + 2}"
    # Without any key=value pair the file is plain XYZ, with a free comment.
    comment = _NUMBERS.sub(_usual, lines[start + 1].strip()) if "=" in lines[start + 1] else ""
    columns = _columns_of(comment, label)
    rows = [line.split() for line in lines[start + 2 : start + 2 + count]]
    rows = [[_plain(*each) for each in zip(row, columns, strict=False)] + row[len(columns) :] for row in rows]
    for number, row in enumerate(rows, start + 3):
        _check_row(row, columns, f"{where}: line {number}")
    if len(rows) < count:
        raise UserError(f"{where}: line {start + 1} says {count} atoms, and only {len(rows)} follow; correct it")
    body = "\n".join(" ".join(row) for row in rows)
    structure = from_atoms(_read(f"{count}\n{comment}\n{body}\n", label), f"{where}: frame at line {start + 1}")
    places = [index for index, column in enumerate(columns) if column.name == "species"]
    for number, (row, symbol) in enumerate(zip(rows, structure.symbols, strict=True), start + 3):
        if any(row[index] != symbol for index in places):
            raise UserError(f"{where}: line {number}: species and Z are different elements; correct one of them")
    return structure


def _usual(match: re.Match[str]) -> str:
    """Return numbers of a comment with exponents by e and tensors of nine entries."""
    key, equals, *texts = match.groups()
    words = _FORTRAN.sub("e", next(text for text in texts if text is not None)).replace(",", " ").split()
    if key != "Lattice" and len(words) == 6:
        words = [words[entry] for entry in _VOIGT]
    return f'{key}{equals}"{" ".join(words)}"'


def _plain(word: str, column: Column) -> str:
    """Return a number with an exponent by e, the symbol of a label such as Ar1, and other words as they are."""
    if column.kind == "R":
        return _FORTRAN.sub("e", word)
    match = _LABEL.fullmatch(word) if column.name == "species" else None
    return match[1] if match else word


def _refuse_too_many(lines: list[str], where: str) -> None:
    """Refuse more frames than can be read in seconds, before any is read."""
    start = frames = 0
    while start < len(lines) and _COUNT.fullmatch(lines[start]):
        frames += 1
        if frames > MAX_FRAMES:
            raise UserError(f"{where}: line {start + 1} begins frame {frames}; give at most {MAX_FRAMES} frames")
        start += int(lines[start]) + 2


def _count(lines: list[str], start: int, where: str) -> int:
    label, line = f"{where}: line {start + 1}", lines[start]
    if not _COUNT.fullmatch(line):
        hint = "; more atoms than the frame before announces?" if start else ""
        raise UserError(f"{label} = {shown(line)} is not a number of atoms{hint or '; a frame begins with it'}")
    count = int(line)
    if not 1 <= count <= MAX_ATOMS:
        raise UserError(f"{label}: {count} atoms; a structure has 1 to {MAX_ATOMS}")
    return count


def _columns_of(comment: str, label: str) -> list[Column]:
    """Return the columns that a comment line declares, after checking the whole line."""
    from ase.io.extxyz import key_val_str_to_dict

    if len(comment) > MAX_COMMENT:
        raise UserError(f"{label}: the comment has over {MAX_COMMENT} characters; shorten it")
    for key in set(_SPECIAL.values()):
        if len(re.findall(rf"(?<!\w){key}\s*=", _outside_quotes(comment, label))) > 1:
            raise UserError(f"{label}: {key} is given twice; keep one of them")
    try:
        remarks = key_val_str_to_dict(comment) if comment else {}
    except Exception as error:  # any failure of the parser is a mistake in the line
        if "Lattice" in str(error):
            remedy = 'write Lattice="ax ay az bx by bz cx cy cz"'
            raise UserError(f"{label}: Lattice is not nine numbers; {remedy}") from None
        raise UserError(f"{label}: the comment line cannot be read; write key=value pairs, texts in quotes") from None
    for key in remarks:
        if (proper := _SPECIAL.get(key.lower(), key)) != key:
            raise UserError(f"{label}: {shown(key)} means nothing; write {proper}")
    columns = _columns(remarks.get("Properties", PLAIN), label)
    cell = remarks.get("Lattice", np.zeros((3, 3)))
    if np.asarray(cell).dtype.kind not in "if" or not np.isfinite(cell).all():
        raise UserError(f"{label}: Lattice is not nine finite numbers; correct it")
    flags = remarks.get("pbc", [bool(np.any(cell))] * 3)
    if not isinstance(flags, list) or len(flags) != 3 or not all(isinstance(flag, bool) for flag in flags):
        raise UserError(f'{label}: pbc = {shown(str(flags))} is not three of T and F; write it like pbc="T T T"')
    periodicity(flags, np.asarray(cell, float).T, label)
    names = {column.name for column in columns}
    for key, value in remarks.items():
        if key in names:
            raise UserError(f"{label}: {shown(key)} is both a column and in the comment; rename one of them")
        if np.asarray(value).dtype.kind == "f" and not np.isfinite(value).all():
            raise UserError(f"{label}: {shown(key)} is not finite; write a finite number")
    return columns


def _outside_quotes(comment: str, label: str) -> str:
    """Return a comment without its quoted parts; refuse an open quote, which would hide the keys after it."""
    closing, outside, open_until, is_escaped = {'"': '"', "'": "'", "{": "}", "[": "]"}, [], "", False
    for character in comment:
        if is_escaped or character == "\\":
            is_escaped = not is_escaped
        elif open_until:
            open_until = "" if character == open_until else open_until
        elif character in closing:
            open_until = closing[character]
        else:
            outside.append(character)
    if open_until:
        raise UserError(f"{label}: a quote in the comment is not closed; add its {open_until} or remove it")
    return "".join(outside)


def _columns(properties: Any, label: str) -> list[Column]:
    """Return the columns that ``Properties`` declares."""
    fields = properties.split(":") if isinstance(properties, str) else [""]
    columns: list[Column] = []
    for name, kind, width in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        is_known = NAME.fullmatch(name) and kind in _KINDS and re.fullmatch(r"[1-9]\d{0,2}", width, re.ASCII)
        if not is_known or len(columns) + int(width) > MAX_COLUMNS:
            raise UserError(f"{label}: Properties has {shown(f'{name}:{kind}:{width}')}; write name:kind:columns")
        if name in {column.name for column in columns}:
            raise UserError(f"{label}: Properties names {name} twice; rename one of them")
        if name in RESERVED_ARRAYS and name not in ("species", "pos", *_READ):
            raise UserError(f"{label}: Properties names {name}, which is reserved; rename it")
        columns += [Column(name, kind)] * int(width)
    if len(fields) % 3:
        raise UserError(f"{label}: Properties is not made of name:kind:columns; write it like {PLAIN}")
    names = fields[::3]
    needed = {"pos": ("R", 3)} | {name: kind for name, kind in _READ.items() if name in names}
    if "species" in names or "Z" not in names:
        needed = {"species": ("S", 1), **needed}
    for name, (kind, width) in needed.items():
        if columns.count(Column(name, kind)) != width:
            raise UserError(f"{label}: Properties lacks {name}:{kind}:{width}; declare it, as in {PLAIN}")
    return columns


def _check_row(row: list[str], columns: list[Column], label: str) -> None:
    if len(row) != len(columns):
        declared = ", ".join(dict.fromkeys(column.name for column in columns))
        raise UserError(f"{label} has {len(row)} columns, not the {len(columns)} of {declared}; correct it")
    for entry, (name, kind) in zip(row, columns, strict=True):
        pattern, what = _KINDS[kind]
        if not pattern.fullmatch(entry) or (kind == "R" and not math.isfinite(float(entry))):
            raise UserError(f"{label}: {name} = {shown(entry)} is not {what}; correct it")
        if name == "species":
            check_symbol(entry, label)


def _read(text: str, label: str) -> Any:
    """Return the ``Atoms`` that ASE reads from the checked text of one frame."""
    from ase.io.extxyz import read_xyz

    try:
        return next(read_xyz(StringIO(text), index=0))
    except Exception as error:  # a mistake in the text that no check found
        raise UserError(f"{label}: the frame cannot be read: {shown(str(error))}; correct it") from None


def _written(frame: Structure) -> str:
    position, cell, periodic = in_space(frame)
    columns = {"species": np.asarray(frame.symbols), "pos": position, **frame.arrays}
    if FROZEN in columns:
        columns["move_mask"] = ~columns.pop(FROZEN)
    blocks = {name: _cells(name, array) for name, array in columns.items()}
    letters = {name: _letter(np.asarray(array)) for name, array in columns.items()}
    properties = ":".join(f"{name}:{letters[name]}:{block.shape[1]}" for name, block in blocks.items())
    lattice = [] if cell is None else [f'Lattice="{" ".join(_cells("Lattice", cell.reshape(-1, 1))[:, 0])}"']
    flags = f'pbc="{" ".join("FT"[flag] for flag in periodic)}"'
    remarks = [_remark(name, value) for name, value in frame.info.items()]
    comment = " ".join([*lattice, f"Properties={properties}", *remarks, flags])
    rows = "\n".join(" ".join(row) for row in np.concatenate(list(blocks.values()), axis=1).tolist())
    return f"{len(frame)}\n{comment}\n{rows}\n"


def _letter(array: np.ndarray) -> str:
    return {"f": "R", "i": "I", "u": "I", "b": "L"}.get(array.dtype.kind, "S")


def _cells(name: str, array: np.ndarray) -> np.ndarray:
    """Return an array as words, (N, k)."""
    array = array.reshape(len(array), -1)
    if array.dtype.kind == "b":
        return np.where(array, "T", "F")
    words = array.astype(str)  # the shortest digits that are read back as the same number
    if _letter(array) == "S" and any(not _WORD.fullmatch(word) for word in words.ravel()):
        raise UserError(f"array '{name}' holds a word with a blank, or an empty one; extended XYZ has no such words")
    return words


def _remark(name: str, value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{name}="{escaped}"'
    from ase.io.extxyz import key_val_dict_to_str

    return key_val_dict_to_str({name: value})
