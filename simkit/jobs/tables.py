"""Tables of points of a sweep: CSV and Parquet files whose columns are parameters."""

import csv
import importlib
import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simkit.errors import UserError, one_line
from simkit.jobs.points import MOST_NUMBERS, check_swept
from simkit.scenario import checks
from simkit.scenario.inlined import read_text
from simkit.scenario.scenario import Scenario

# Excludes other text that Python accepts as a float, such as 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_LARGEST = 64 * 2**20


def tabulated(scenario: Scenario, file: Path | str) -> tuple[dict[str, tuple[float, ...]], str]:
    """Read the points of a table, one per row.

    Args:
        scenario: scenario with the parameters.
        file: ``.csv``, comma-separated with a header, or ``.parquet`` (if ``pyarrow`` is installed). Every column is
            named after a parameter and holds numbers.

    Returns:
        Values by parameter, one per row, and the file's name.

    Raises:
        UserError: naming the file, row and column of the mistake. The header of a CSV file is row 1.
    """
    if not isinstance(file, str | Path):
        raise UserError(f"table is of type {type(file).__name__}; give the path of a .csv or .parquet file")
    path = Path(file).expanduser()
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise UserError(f"table {path} is neither .csv nor .parquet; give a file of one of these kinds")
    header, first, rows = readers[path.suffix.lower()](path)
    label = path.name
    if not header or header == [""]:
        raise UserError(f"{label} has no header; name a parameter at the head of each column")
    for index, name in enumerate(header):
        if not name:
            raise UserError(f"{label}: column {index + 1} has no name; name a parameter at its head")
        if header.index(name) != index:
            raise UserError(f"{label}: column '{one_line(name, 60)}' is given twice; keep one")
        if name == "seed":
            raise UserError(f"{label}: column 'seed' is not a parameter; give the number of seeds by seeds=")
        if separator := next((mark for mark in (";", "\t") if mark in name), None):
            raise UserError(f"{label}: its columns are separated by {separator!r}; write commas")
        check_swept(scenario, name, f"{label}: column '{one_line(name, 60)}'")
    bounds = [scenario.parameters[name].bounds for name in header]
    columns: list[list[float]] = [[] for _ in header]
    for row, cells in enumerate(rows, first):
        if len(cells) != len(header):
            raise UserError(
                f"{label}: row {row} has {len(cells)} cells, and the header {len(header)}; give equal numbers"
            )
        if (row + 1 - first) * len(header) > MOST_NUMBERS:
            raise UserError(f"{label} has over {MOST_NUMBERS} numbers; give a smaller table")
        for name, cell, limits, column in zip(header, cells, bounds, columns, strict=True):
            where = f"{label}: row {row}, column '{name}'"
            number = checks.number(_number(cell, where), where)
            checks.inside(number, where, limits)
            column.append(number)
    if not columns[0]:
        raise UserError(f"{label} has no rows; give at least one below its header")
    return {name: tuple(column) for name, column in zip(header, columns, strict=True)}, f"table {label}"


def _number(cell: Any, where: str) -> Any:
    if not isinstance(cell, str):
        return cell
    if not cell.strip():
        raise UserError(f"{where} is empty; write a number")
    return float(cell) if _NUMBER.fullmatch(cell.strip()) else cell


type _Table = tuple[list[str], int, Iterator[Sequence[Any]]]
"""Names of the columns, number of the first row, and the rows."""


def _read_csv(path: Path) -> _Table:
    text = read_text(path, "table", _LARGEST, "for a table")
    reader = csv.reader(io.StringIO(text), strict=True)

    def parsed() -> Iterator[list[str]]:
        try:
            yield from reader
        except csv.Error as error:
            raise UserError(f"{path.name}: line {reader.line_num} is not CSV: {one_line(error)}; correct it") from None

    rows = parsed()
    header = [name.strip() for name in next(rows, [])]
    # Blank lines at the end of a file are ignored; others are rows without cells.
    return header, 2, _without_blank_end(rows)


def _without_blank_end(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    blank = 0
    for row in rows:
        if row:
            yield from [[] for _ in range(blank)]
            blank = 0
            yield row
        else:
            blank += 1


def _read_parquet(path: Path) -> _Table:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(f"table {path}: reading Parquet needs pyarrow; install it, or give a .csv file") from None
    try:
        if not path.is_file():
            raise UserError(f"table: {checks.show(str(path))} is no file; check the path")
        with path.open("rb") as opened:
            file = parquet.ParquetFile(opened)
            header = [str(name) for name in file.schema_arrow.names]
            if file.metadata.num_rows * len(header) > MOST_NUMBERS:
                raise UserError(f"{path.name} has over {MOST_NUMBERS} numbers; give a smaller table")
            columns = [column.to_pylist() for column in file.read().columns]
            rows = [[math.nan if cell is None else cell for cell in row] for row in zip(*columns, strict=True)]
    except UserError:
        raise
    except Exception as error:  # pyarrow raises many types of errors on malformed bytes
        raise UserError(f"table {path} cannot be read as Parquet: {one_line(error, 80)}; write it again") from None
    return header, 1, iter(rows)
