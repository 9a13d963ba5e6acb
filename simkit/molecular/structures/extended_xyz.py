"""Extended XYZ, the common text format of structures: checked line by line, then read with ASE.

A frame is a line with the number of atoms, a comment line of ``key=value`` pairs, and one line per atom. ``Lattice``
has the lattice vectors, ``pbc`` a flag of periodicity for each, ``Properties`` the names of the columns.
"""

import itertools
import math
import re
from collections.abc import Iterable
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

from simkit.errors import Hint, UserError, nearest
from simkit.molecular.structures.structures import (
    FROZEN,
    MAX_ATOMS,
    NAME,
    RESERVED_ARRAYS,
    Structure,
    from_atoms,
    in_space,
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

    Example:
        >>> text = '''2
        ... Lattice="4 0 0 0 4 0 0 0 4" Properties=species:S:1:pos:R:3
        ... Ar 0 0 0
        ... Ar 2 2 2
        ... '''
        >>> (argon,) = molecular.structures.parse_extended_xyz(text)
        >>> argon.symbols, argon.cell.diagonal().tolist()
        (('Ar', 'Ar'), [4.0, 4.0, 4.0])
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip().split("\n")
    checked: list[tuple[int, str]] = []
    start = 0
    while start < len(lines) and len(text) <= MAX_CHARACTERS and len(checked) < MAX_FRAMES:
        try:
            plain, length = _checked(lines, start)
        except ValueError as mistake:
            line, problem = mistake.args
            raise UserError(f"{where}: line {line + 1}: ", problem) from None
        checked.append((start, plain))
        start += length
    if start < len(lines):
        raise UserError(f"{where}: over 8 MiB or {MAX_FRAMES} frames; give fewer frames or atoms")
    return [_read(plain, f"{where}: frame at line {start + 1}") for start, plain in checked]


def write_extended_xyz(frames: Iterable[Structure]) -> str:
    """Return structures as text, every number with the fewest digits that are read back as the same number.

    Args:
        frames: one or more structures. Words in ``info`` that look like numbers are read back as numbers.

    Raises:
        UserError: if there is no structure, or a word of an array is empty or contains a blank.

    Example:
        >>> dimer = molecular.structures.Structure(
        ...     symbols=("Ar", "Ar"), position=np.array([[0.0, 0.0, 0.0], [3.8, 0.0, 0.0]]), cell=None, periodic=False
        ... )
        >>> print(molecular.structures.write_extended_xyz([dimer]))
        2
        Properties=species:S:1:pos:R:3 pbc="F F F"
        Ar 0.0 0.0 0.0
        Ar 3.8 0.0 0.0
    """
    texts = [_written(frame) for frame in frames]
    if not texts:
        raise UserError("there is no structure to write; give at least one")
    return "".join(texts)


def _checked(lines: list[str], start: int) -> tuple[str, int]:
    """Return the frame whose first line is ``lines[start]`` as ASE reads it, and how many lines it has.

    Raises:
        ValueError: of the index of a line, and what is wrong with it.
    """
    if not _COUNT.fullmatch(lines[start]):
        hint = "more atoms than the frame before announces?" if start else "a frame begins with it"
        raise ValueError(start, f"{shown(lines[start])} is not a number of atoms; {hint}")
    count, body = int(lines[start]), lines[start + 2 : start + 2 + int(lines[start])]
    if not 1 <= count <= MAX_ATOMS or len(body) < count:
        raise ValueError(start, f"{count} atoms, and {len(body)} follow; a structure has 1 to {MAX_ATOMS}; correct it")
    # Without any key=value pair the file is plain XYZ, with a free comment.
    comment = _NUMBERS.sub(_usual, lines[start + 1].strip()) if "=" in lines[start + 1] else ""
    columns, problem = _columns_of(comment)
    if problem:
        raise ValueError(start + 1, problem)
    rows = []
    for number, line in enumerate(body, start + 2):
        words = line.split()
        row = [_plain(word, column) for word, column in zip(words, columns, strict=False)]
        if problem := _problem_of_row(row, len(words), columns):
            raise ValueError(number, problem)
        rows.append(" ".join(row))
    return "\n".join([str(count), comment, *rows, ""]), count + 2


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


def _columns_of(comment: str) -> tuple[list[Column], str]:
    """Return the columns that a comment line declares, and what is wrong with the line."""
    from ase.io.extxyz import key_val_str_to_dict

    outside, open_until = _outside_quotes(comment)
    repeated = [key for key in _SPECIAL.values() if len(re.findall(rf"(?<!\w){key}\s*=", outside)) > 1]
    if open_until or repeated or len(comment) > MAX_COMMENT:
        quote = f"a quote in the comment is not closed; add its {open_until} or remove it"
        return [], quote if open_until else f"{(*repeated, 'the comment')[0]} is given twice, or too long; shorten it"
    try:
        remarks = key_val_str_to_dict(comment) if comment else {}
    except Exception as error:  # any failure of the parser is a mistake in the line
        lattice = 'Lattice is not nine numbers; write Lattice="ax ay az bx by bz cx cy cz"'
        other = "the comment line cannot be read; write key=value pairs, texts in quotes"
        return [], lattice if "Lattice" in str(error) else other
    columns, problem = _columns(remarks.get("Properties", PLAIN))
    flags, names = remarks.get("pbc", [True] * 3), {column.name for column in columns}
    if not isinstance(flags, list) or len(flags) != 3 or not all(isinstance(flag, bool) for flag in flags):
        problem = f'pbc = {shown(str(flags))} is not three of T and F; write it like pbc="T T T"'
    for key in remarks:
        if (proper := _SPECIAL.get(key.lower(), key)) != key:
            problem = f"{shown(key)} means nothing; write {proper}"
        elif key in names:
            problem = f"{shown(key)} is both a column and in the comment; rename one of them"
    return columns, problem


def _outside_quotes(comment: str) -> tuple[str, str]:
    """Return a comment without its quoted parts, and what would close an open quote, which hides the keys after it."""
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
    return "".join(outside), open_until


def _columns(properties: Any) -> tuple[list[Column], str]:
    """Return the columns that ``Properties`` declares, and what is wrong with it."""
    fields = properties.split(":") if isinstance(properties, str) else [""]
    columns: list[Column] = []
    for name, kind, width in itertools.zip_longest(fields[::3], fields[1::3], fields[2::3], fillvalue=""):
        is_kind = NAME.fullmatch(name) and kind in _KINDS and re.fullmatch(r"[1-9]\d{0,2}", width, re.ASCII)
        if not is_kind or len(columns) + int(width) > MAX_COLUMNS:
            return [], f"Properties has {shown(f'{name}:{kind}:{width}')}; write name:kind:columns, as in {PLAIN}"
        if name in {column.name for column in columns} or name in RESERVED_ARRAYS - {"species", "pos", *_READ}:
            return [], f"Properties names {name} twice, or it is reserved; rename it"
        columns += [Column(name, kind)] * int(width)
    names = fields[::3]
    needed = {"pos": ("R", 3)} | {name: kind for name, kind in _READ.items() if name in names}
    if "species" in names or "Z" not in names:
        needed = {"species": ("S", 1), **needed}
    for name, (kind, width) in needed.items():
        if columns.count(Column(name, kind)) != width:
            return [], f"Properties lacks {name}:{kind}:{width}; declare it, as in {PLAIN}"
    return columns, ""


def _problem_of_row(row: list[str], words: int, columns: list[Column]) -> str:
    """Return what is wrong with the words of an atom; empty if nothing is."""
    from ase.data import atomic_numbers, chemical_symbols

    if words != len(columns):
        declared = ", ".join(dict.fromkeys(column.name for column in columns))
        return f"{words} columns, not the {len(columns)} of {declared}; correct it"
    elements = set()
    for entry, (name, kind) in zip(row, columns, strict=True):
        pattern, what = _KINDS[kind]
        if not pattern.fullmatch(entry) or (kind == "R" and not math.isfinite(float(entry))):
            return f"{name} = {shown(entry)} is not {what}; correct it"
        if name in ("species", "Z"):
            number = atomic_numbers.get(entry, -1) if name == "species" else int(entry)
            if not 0 <= number < len(chemical_symbols):
                hint = nearest(entry, list(atomic_numbers))
                hint = hint if hint.meant else Hint("; write one such as Si or 14, or X for any")
                what = "symbol" if name == "species" else "element"
                return Hint(f"{shown(entry)} is not a chemical {what}{hint}", hint.meant)
            elements.add(number)
    return "species and Z are different elements; correct one of them" if len(elements) > 1 else ""


def _read(text: str, label: str) -> Structure:
    """Return the structure that ASE reads from the checked text of one frame."""
    from ase.io.extxyz import read_xyz

    try:
        atoms = next(read_xyz(StringIO(text), index=0))
    except Exception as error:  # a mistake in the text that no check found
        raise UserError(f"{label}: cannot be read: {shown(str(error))}; correct it") from None
    return from_atoms(atoms, label)


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
