"""Data files of LAMMPS: box, atoms, bonded terms and coefficients, each with its line for messages."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from simkit.core.files import read_text
from simkit.errors import UserError, nearest, one_line

# Larger than of other texts: 32,000 beads are 1.9 MiB.
MAX_BYTES = 256 * 2**20
# Columns of an atom before its coordinates, by style.
STYLES = {
    "atomic": ("id", "type"),
    "charge": ("id", "type", "charge"),
    "bond": ("id", "molecule", "type"),
    "angle": ("id", "molecule", "type"),
    "molecular": ("id", "molecule", "type"),
    "full": ("id", "molecule", "type", "charge"),
}
# Terms, their header, and the atoms of each.
TERMS = {"Bonds": ("bonds", 2), "Angles": ("angles", 3), "Dihedrals": ("dihedrals", 4), "Impropers": ("impropers", 4)}
COEFFICIENTS = {f"{kind} Coeffs": kind.lower() for kind in ("Pair", "PairIJ", "Bond", "Angle", "Dihedral", "Improper")}
LABELS = {f"{kind} Type Labels": kind.lower() for kind in ("Atom", "Bond", "Angle", "Dihedral", "Improper")}
SECTIONS = ("Atoms", "Velocities", "Masses", *TERMS, *COEFFICIENTS, *LABELS)
COUNTS = ("atoms", "bonds", "angles", "dihedrals", "impropers")
SIDES = ("xlo xhi", "ylo yhi", "zlo zhi")


class Line(NamedTuple):
    """A line of a file.

    Attributes:
        where: the file, for messages.
        number: of the line, from 1.
        words: without the comment.
        comment: after ``#``.
    """

    where: str
    number: int
    words: tuple[str, ...]
    comment: str = ""

    def refuse(self, problem: str, hint: str = "") -> NoReturn:
        """Refuse the line."""
        raise UserError(f"{self.where}, line {self.number}: {problem}", hint)

    def real(self, word: str, meaning: str) -> float:
        """Return a finite number."""
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.refuse(f"{word[:30]!r} is no finite number, and is read as {meaning}; repair it")
        return value

    def reals(self, start: int, meaning: str) -> tuple[float, ...]:
        """Return the numbers from a word on."""
        return tuple(self.real(word, meaning) for word in self.words[start:])

    def whole(self, word: str, meaning: str, low: int, high: int) -> int:
        """Return an integer within bounds, both included."""
        try:
            value = int(word)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            self.refuse(f"{word[:30]!r} is read as {meaning}, which is a whole number from {low} to {high}; repair it")
        return value


def lines_of(source: str | Path, where: str) -> list[Line]:
    """Return the lines of a file, or of the text of one, that hold words; the first line is kept empty or not.

    Args:
        source: path; or the text itself, if it is not one word, or has more than one line.
        where: name of the argument, for messages.

    Raises:
        UserError: if the file cannot be read.
    """
    is_text = isinstance(source, str) and (len(source.split()) != 1 or "\n" in source)
    content = source if is_text else read_text(source, where, MAX_BYTES, "for a system")
    name = where if is_text else one_line(str(source), 60)
    lines = []
    for number, row in enumerate(str(content).splitlines(), 1):
        text, _, comment = row.partition("#")
        lines.append(Line(name, number, tuple(text.split()), comment.strip()))
    return lines


@dataclasses.dataclass(frozen=True)
class LammpsData:
    """Contents of a data file.

    Attributes:
        style: of the atoms; ``None`` if the file does not say.
        low: lowest corner of the box, (3,).
        vectors: its edges as rows, (3, 3).
        types: number of types of atoms, bonds and so on, by kind: ``atom``, ``bond``, ...
        labels: names of types by kind, ``{number: label}``.
        atoms: lines of the section Atoms.
        velocities: lines of the section Velocities.
        masses: lines of the section Masses.
        terms: type of each term, (K,), and indices of its atoms, (K, m), by key: ``bonds``, ``angles``, ...
        coefficients: lines of the sections of coefficients, and the style that their title tells, by kind.
        end: the last line.
    """

    style: str | None
    low: np.ndarray
    vectors: np.ndarray
    types: Mapping[str, int]
    labels: Mapping[str, Mapping[int, str]]
    atoms: list[Line]
    velocities: list[Line]
    masses: list[Line]
    terms: Mapping[str, tuple[np.ndarray, np.ndarray, list[Line]]]
    coefficients: Mapping[str, tuple[str, list[Line]]]
    end: Line

    def type_of(self, line: Line, word: str, kind: str) -> int:
        """Return a type that is written as a number or a label, from 1."""
        for number, label in self.labels.get(kind, {}).items():
            if word == label:
                return number
        return line.whole(word, f"a type of {kind}s", 1, self.types.get(kind, 0))


def read_data(source: str | Path) -> LammpsData:
    """Return the contents of a data file.

    Args:
        source: path, or text.

    Raises:
        UserError: that names file and line.
    """
    lines = lines_of(source, "data")
    end = lines[-1] if lines else Line("data", 1, ())
    # The first line is a title, whatever it says.
    header, sections = _parts([line for line in lines[1:] if line.words])
    counts, types, sides, tilt = _header(header)
    for side in SIDES:
        if side not in sides:
            end.refuse(f"the file has no line '{side}'; add the size of the box before the first section")
    low, high = np.array([sides[side] for side in SIDES]).T
    vectors = np.diag(high - low)
    vectors[1, 0], vectors[2, 0], vectors[2, 1] = tilt
    labels = {}
    for title, kind in LABELS.items():
        if title in sections:
            labels[kind] = {
                line.whole(line.words[0], "a type", 1, types.get(kind, 0)): line.words[1]
                for line in _rows(sections[title], 2)
            }
    data = LammpsData(
        sections["Atoms"][0].comment or None if "Atoms" in sections else None,
        low,
        vectors,
        types,
        labels,
        _counted(sections, "Atoms", counts["atoms"], end),
        sections.get("Velocities", [end])[1:],
        sections.get("Masses", [end])[1:],
        {},
        {
            kind: (sections[title][0].comment, sections[title][1:])
            for title, kind in COEFFICIENTS.items()
            if title in sections
        },
        end,
    )
    if not data.atoms:
        end.refuse("the file has no atoms; give a data file with the section Atoms")
    return dataclasses.replace(data, terms=_terms(data, sections, counts))


def _parts(lines: Iterable[Line]) -> tuple[list[Line], dict[str, list[Line]]]:
    """Return the header, and the lines of each section, of which the first is the title."""
    header: list[Line] = []
    sections: dict[str, list[Line]] = {}
    current = header
    for line in lines:
        title = " ".join(line.words)
        # Rows begin with a number, but for the label of a type in place of it.
        holds_labels = current is not header and " ".join(current[0].words) in ("Masses", *COEFFICIENTS)
        if title in SECTIONS or (title[0].isalpha() and not holds_labels):
            if title not in SECTIONS:
                line.refuse(f"{title[:40]!r} is no section that is read", nearest(title, SECTIONS))
            if title in sections:
                line.refuse(f"the section {title} is given twice; keep one")
            current = sections[title] = []
        current.append(line)
    return header, sections


def _header(
    lines: list[Line],
) -> tuple[dict[str, int], dict[str, int], dict[str, tuple[float, float]], tuple[float, float, float]]:
    """Return counts of atoms and terms, numbers of types, sides and tilt factors."""
    counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
    types: dict[str, int] = {}
    sides: dict[str, tuple[float, float]] = {}
    tilt = 0.0, 0.0, 0.0
    for line in lines:
        key = " ".join(word for word in line.words if word[0].isalpha())
        values = line.words[: len(line.words) - len(key.split())]
        if key in COUNTS and len(values) == 1:
            counts[key] = line.whole(values[0], f"the number of {key}", 0, 10**9)
        elif key.endswith(" types") and key.removesuffix(" types") + "s" in COUNTS and len(values) == 1:
            types[key.removesuffix(" types")] = line.whole(values[0], f"the number of {key}", 0, 10**6)
        elif key in SIDES and len(values) == 2:
            low, high = (line.real(word, "a side of the box") for word in values)
            if not low < high:
                line.refuse(f"{low:g} is not below {high:g}; write the lower end of the box first")
            sides[key] = low, high
        elif key == "xy xz yz" and len(values) == 3:
            xy, xz, yz = (line.real(word, "a tilt factor") for word in values)
            tilt = xy, xz, yz
        elif not (key.startswith("extra ") and key.endswith(" per atom")):  # memory of LAMMPS
            known = [*COUNTS, *(f"{kind[:-1]} types" for kind in COUNTS), *SIDES, "xy xz yz"]
            line.refuse(f"{' '.join(line.words)[:60]!r} is no line of the header that is read", nearest(key, known))
    return counts, types, sides, tilt


def _rows(section: list[Line], least: int) -> list[Line]:
    """Return the rows of a section, each of which has at least so many words."""
    for line in section[1:]:
        if len(line.words) < least:
            title = " ".join(section[0].words)
            line.refuse(f"has {len(line.words)} words, and a row of {title} at least {least}; complete it")
    return section[1:]


def _counted(sections: Mapping[str, list[Line]], title: str, count: int, end: Line) -> list[Line]:
    """Return the rows of a section, as many as the header says."""
    rows = sections.get(title, [end])[1:]
    if len(rows) != count:
        line = sections[title][0] if title in sections else end
        problem = f"the section {title} has {len(rows)} rows" if title in sections else f"there is no section {title}"
        line.refuse(f"{problem}, and the header says {count}; make them the same")
    return rows


def _terms(
    data: LammpsData, sections: Mapping[str, list[Line]], counts: Mapping[str, int]
) -> dict[str, tuple[np.ndarray, np.ndarray, list[Line]]]:
    """Return types and atoms of all terms."""
    index = index_of_atoms(data)
    found: dict[str, tuple[np.ndarray, np.ndarray, list[Line]]] = {}
    for title, (key, size) in TERMS.items():
        rows = _counted(sections, title, counts[key], data.end)
        kinds, members, first = [], [], dict[tuple, Line]()
        for line in rows:
            if len(line.words) != 2 + size:
                line.refuse(f"has {len(line.words)} words, and a row of {title} {2 + size}: id, type and atoms")
            kinds.append(data.type_of(line, line.words[1], key[:-1]))
            atoms = [index.get(word, -1) for word in line.words[2:]]
            if -1 in atoms:
                line.refuse(f"atom {line.words[2 + atoms.index(-1)][:20]!r} does not exist; give ids of Atoms")
            if len(set(atoms)) < size:
                line.refuse(f"an atom occurs twice among {' '.join(line.words[2:])}; give {size} different ones")
            # Terms of several types may act on the same angle or dihedral; a bond is one.
            which = atoms if key == "impropers" else min(atoms, atoms[::-1])
            same = first.setdefault((key != "bonds" and kinds[-1], *which), line)
            if same is not line:
                line.refuse(
                    f"the {key[:-1]} of atoms {' '.join(line.words[2:])} is that of line {same.number}; keep one"
                )
            members.append(atoms)
        found[key] = np.array(kinds, int), np.array(members, int).reshape(-1, size), rows
    return found


def index_of_atoms(data: LammpsData) -> dict[str, int]:
    """Return the place of each atom among the rows of Atoms by its id, as it is written."""
    index: dict[str, int] = {}
    for place, line in enumerate(data.atoms):
        number = str(line.whole(line.words[0], "the id of an atom", 1, 10**12))
        if number in index:
            line.refuse(f"atom {number} occurs twice; give each one id")
        index[number] = place
    return index


class Atoms(NamedTuple):
    """Columns of the section Atoms.

    Attributes:
        kind: type of each atom, from 1, (N,).
        charge: (N,); zero where the style has none.
        position: (N, 3), unwrapped by image flags, from the lowest corner of the box.
    """

    kind: np.ndarray
    charge: np.ndarray
    position: np.ndarray


def read_atoms(data: LammpsData, style: str, periodic: tuple[bool, ...]) -> Atoms:
    """Return the atoms of a style.

    Args:
        data: contents of the file.
        style: name of the style.
        periodic: along which axes the box repeats.

    Raises:
        UserError: that names file and line.
    """
    columns = STYLES[style]
    size = len(columns) + 3
    at = {name: place for place, name in enumerate(columns)}
    kinds, charges, numbers, images = [], [], [], []
    for line in data.atoms:
        words = line.words
        if len(words) not in (size, size + 3):
            meant = f"{' '.join(columns)} x y z, and perhaps three image flags"
            line.refuse(f"has {len(words)} words, and an atom of style {style} is: {meant}")
        kinds.append(data.type_of(line, words[at["type"]], "atom"))
        charges.append(line.real(words[at["charge"]], "a charge") if "charge" in at else 0.0)
        numbers.append([line.real(word, "a coordinate") for word in words[len(columns) : size]])
        images.append([line.whole(word, "an image flag", -(10**6), 10**6) for word in words[size:]] or [0, 0, 0])
    flags = np.array(images)
    if (wrong := (flags != 0).any(axis=0) & ~np.array(periodic)).any():
        line = data.atoms[int(np.argmax((flags[:, wrong] != 0).any(axis=1)))]
        line.refuse("an image flag is not zero along an axis that does not repeat; set it to 0, or the boundary to p")
    position = np.array(numbers) - data.low + flags @ data.vectors
    return Atoms(np.array(kinds), np.array(charges), position)


def read_velocities(data: LammpsData) -> np.ndarray | None:
    """Return the velocity of each atom in the order of Atoms, (N, 3); ``None`` if there are none.

    Raises:
        UserError: that names file and line.
    """
    if not data.velocities:
        return None
    index, velocity = index_of_atoms(data), np.full((len(data.atoms), 3), np.nan)
    for line in data.velocities:
        if len(line.words) != 4 or line.words[0] not in index:
            line.refuse("is not the id of an atom and three components; repair it")
        velocity[index[line.words[0]]] = line.reals(1, "a component of a velocity")
    if np.isnan(velocity).any():
        data.velocities[0].refuse("the section Velocities lacks some atoms; give each one row, or none")
    return velocity


def read_masses(data: LammpsData, further: Mapping[int, float]) -> dict[int, float]:
    """Return the mass of each type.

    Args:
        data: contents of the file.
        further: masses given otherwise, which hold.

    Raises:
        UserError: that names file and line.
    """
    masses: dict[int, float] = {}
    for line in data.masses:
        if len(line.words) != 2:
            line.refuse("is not a type and its mass; repair it")
        masses[data.type_of(line, line.words[0], "atom")] = mass_of(line, line.words[1])
    return masses | dict(further)


def mass_of(line: Line, word: str) -> float:
    """Return a mass above zero."""
    mass = line.real(word, "a mass")
    if mass <= 0:
        line.refuse(f"the mass {mass:g} is not above zero; correct it")
    return mass


def types_of(line: Line, word: str, kind: str, data: LammpsData) -> range:
    """Return the types that a word such as ``3``, ``*``, ``2*`` or ``*4`` names."""
    if "*" not in word:
        one = data.type_of(line, word, kind)
        return range(one, one + 1)
    low, _, high = word.partition("*")
    most = data.types.get(kind, 0)
    start, end = (
        line.whole(each or usual, f"a type of {kind}s", 1, most) for each, usual in ((low, "1"), (high, str(most)))
    )
    return range(start, end + 1)
