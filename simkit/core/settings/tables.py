"""Tables of numbers: columns of a text file, or two lists, that formulas read by interpolation."""

import csv
import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from simkit.core.files import read_text
from simkit.core.settings.setting import shown
from simkit.errors import UserError, known, one_line


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Values at increasing points, and how to read between and beyond them.

    Attributes:
        x: increasing points, at least 2.
        y: a value at each.
        interpolation: "linear", or "cubic" for the spline whose third derivative is continuous at the second point
            and the last but one (not-a-knot).
        outside: beyond the points "none", not a number, or "hold", the value of the nearest point.
        where: path of its key, and the file, for messages.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    interpolation: str
    outside: str
    where: str = ""


def table_of(settings: Mapping[str, Any], where: str) -> Table:
    """Return the table that checked settings describe.

    Args:
        settings: with the keys of `simkit.core.settings.kinds.TABLE`.
        where: path of the table, for messages.

    Raises:
        UserError: if a column is missing, an entry is no finite number, or the points do not increase; with the file,
            the line and the column.
    """
    x, y, file = settings["x"], settings["y"], settings["file"]
    if (file is None) == any(isinstance(each, str) for each in (x, y)) or type(x) is not type(y):
        raise UserError(f"{where}: give x and y as two lists, or a file and the names of two of its columns")
    if file is None:
        places = [f"entry {index}" for index in range(len(x))]
        if len(x) != len(y):
            raise UserError(f"{where}: x has {len(x)} entries and y {len(y)}; give as many")
    else:
        content = read_text(file, f"{where}.file") if settings["text"] is None else settings["text"]
        x, y, places = columns_of(content, (x, y), f"{where}: {one_line(file, 60)}")
        where = f"{where}: {one_line(file, 60)}"
    if len(x) < 2:
        raise UserError(f"{where} has {len(x)} row{'s' * (len(x) != 1)}; give at least 2")
    if x[0] > x[-1]:
        x, y, places = x[::-1], y[::-1], places[::-1]
    for before, after in itertools.pairwise(range(len(x))):
        if not x[before] < x[after]:
            problem = f"= {x[after]:g} in {places[after]} does not lie beyond {x[before]:g} in {places[before]}"
            raise UserError(f"{where}: '{settings['x'] if file else 'x'}' {problem}; sort the rows, each x once")
    return Table(tuple(x), tuple(y), settings["interpolation"], settings["outside"], where)


def columns_of(text: str, names: Sequence[str], where: str) -> tuple[list[float], list[float], list[str]]:
    """Return the numbers of two columns of a text as for `rows_of`, and the line of each row in words.

    Args:
        text: content of the file.
        names: of the two columns.
        where: the file, for messages.

    Raises:
        UserError: that names the line and the column.
    """
    header, rows = rows_of(text, where)
    for name in names:
        known(name, header, f"{where}: column")
        if header.count(name) > 1:
            raise UserError(f"{where} has {header.count(name)} columns {shown(name)}; name each apart")
    columns: tuple[list[float], list[float]] = ([], [])
    for number, cells in rows:
        if any(cells[len(header) :]):
            problem = f"has {len(cells)} cells for {len(header)} columns; remove the rest, and write decimal points"
            raise UserError(f"{where}, line {number} {problem}")
        for name, column in zip(names, columns, strict=True):
            place = header.index(name)
            cell = cells[place] if place < len(cells) else ""
            value = number_of(cell)
            if value is None or not math.isfinite(value):
                comma = re.fullmatch(r"[-+]?\d*,\d+([eE][-+]?\d+)?", cell)
                remedy = "write decimal points, not commas" if comma else "repair or remove the row"
                problem = f"{shown(cell)} is not a finite number; {remedy}"
                raise UserError(f"{where}, line {number}, column {shown(name)}: {problem}")
            column.append(value)
    return *columns, [f"line {number}" for number, _ in rows]


def rows_of(text: str, where: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the names of the columns of a text, and its rows: the number of the line, and the cells.

    Columns are separated by commas, semicolons, tabs or spaces. The first line, or the comment (``#``) before the first
    row, may name them; otherwise their names are 1, 2, ...

    Args:
        text: content of the file.
        where: the file, for messages.

    Raises:
        UserError: if there are no lines, or a quotation mark is not closed.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    first = next((index for index, (_, line) in enumerate(lines) if not line.startswith("#")), None)
    if first is None:
        raise UserError(f"{where} has no rows; give columns of numbers")
    mark = next((each for each in ";,\t" if each in lines[first][1]), " ")
    rows = []
    for number, line in lines[first:]:
        try:
            rows += [] if line.startswith("#") else [(number, _cells(line, mark))]
        except csv.Error:
            raise UserError(f"{where}, line {number} opens a quotation mark; close it, or leave it out") from None
    header = [str(index + 1) for index in range(len(rows[0][1]))]
    if any(number_of(cell) is None for cell in rows[0][1]):
        header = rows.pop(0)[1]
    elif first and len(comment := _cells(lines[first - 1][1].lstrip("# "), mark)) == len(header):
        header = comment
    return header, rows


def _cells(line: str, mark: str) -> list[str]:
    """Return the cells of a line; a space stands for any number of them."""
    line = re.sub(r"\s+", " ", line) if mark == " " else line
    return [cell.strip() for cell in next(csv.reader([line], delimiter=mark, skipinitialspace=True, strict=True), [])]


# Excludes other text that Python accepts as a float, such as 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)


def number_of(cell: str) -> float | None:
    """Return the number in a cell; ``None`` for other text."""
    return float(cell) if _NUMBER.fullmatch(cell.strip()) else None
