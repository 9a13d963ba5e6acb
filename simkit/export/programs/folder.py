"""Folder of an exported program: its files and scripts, written, and read with every name, type and size checked."""

import contextlib
import dataclasses
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.parameter import POSITIVE
from simkit.core.settings import Setting, line, number, read, row, several, text, whole, word
from simkit.errors import UserError, one_line
from simkit.export.programs.functions import KINDS, Port
from simkit.export.programs.runtimes import JAXEXPORT, MLIR, ONNX, SYMBOLIC
from simkit.export.replacing import check_replaceable
from simkit.storage.files import (
    DamagedFileError,
    Layout,
    make_folder,
    read_arrays,
    read_bytes,
    read_json,
    write_arrays,
    write_bytes,
    write_json,
)

FORMAT = "simkit program 2"
CARD, REFERENCE, REPORT, SCENARIO = "io.json", "reference.npz", "report.json", "scenario.toml"
# Folder of the program of fewer steps that is compared where rounding decides the results of all steps.
SHORTER = "shorter"
STAND_ALONE = {ONNX: "run_onnx.py", JAXEXPORT: "run_jax.py"}
CASES = ("start", "later")
# Largest tolerance with which a comparison means anything.
LARGEST_TOLERANCE = 0.1
# Largest error that is allowed of an output that rounding decides.
LARGEST_ALLOWED = 1.0
# Largest size of a protocol buffer, and so of an ONNX model, bytes.
LARGEST = 2**31
_INTEGERS = (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_DTYPES = ("bool", *_INTEGERS, "float16", "float32", "float64")
_ANY = "batch"


@dataclasses.dataclass(frozen=True)
class Card:
    """Content of ``io.json``, checked.

    Attributes:
        form: of the program, see `simkit.export.programs.functions.FORMS`.
        batch: size of the leading axis of every array, ``"symbolic"`` for any, ``None`` without one.
        inputs: in order.
        outputs: in order.
        cases: names of the cases in ``reference.npz``.
        tolerance: largest error that passes.
        allowed: largest error of outputs that rounding decides, by name.
        compared_steps: number of steps of the program in `SHORTER` that is compared instead; ``None`` without one.
        files: names of the program files that exist.
    """

    form: str
    batch: "int | str | None"
    inputs: list[Port]
    outputs: list[Port]
    cases: list[str]
    tolerance: float
    allowed: dict[str, float]
    compared_steps: int | None
    files: list[str]


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs of a program and the outputs that JAX computes from them."""

    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


def is_own_file(name: str) -> bool:
    """Return whether a program's folder holds a file of this name."""
    return name in (CARD, REFERENCE, REPORT, SCENARIO, SHORTER, ONNX, JAXEXPORT, MLIR, *STAND_ALONE.values())


def check_new(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that exists, unless it is that of a program that may be replaced.

    Args:
        folder: its path.
        overwrite: whether an earlier program may be replaced.

    Raises:
        UserError: if something else exists there.
    """
    check_replaceable(folder, overwrite, (CARD,), is_own_file)
    if (inner := folder / SHORTER).exists():
        check_replaceable(inner, overwrite, (CARD,), is_own_file)


def new_folder(folder: Path, overwrite: bool = False) -> None:
    """Make the folder of a program.

    Args:
        folder: its path.
        overwrite: remove an earlier program first.

    Raises:
        UserError: if something else exists there, or it cannot be made.
    """
    check_new(folder, overwrite)
    shutil.rmtree(folder, ignore_errors=True)  # what cannot be removed cannot be written, either
    make_folder(folder)


def write_program(folder: Path, card: Mapping[str, Any], files: Mapping[str, bytes], cases: Mapping[str, Case]) -> None:
    """Write a program with its description and its reference.

    Args:
        folder: made by `new_folder`.
        card: content of ``io.json``.
        files: content of all files but ``io.json`` and ``reference.npz``, by name.
        cases: by name.
    """
    names = {kind: [port["name"] for port in card[f"{kind}s"]] for kind in ("input", "output")}
    arrays = {
        f"{case}.{kind}.{name}": array
        for case, both in cases.items()
        for kind, side in (("input", both.inputs), ("output", both.outputs))
        for name, array in zip(names[kind], side, strict=True)
    }
    for name, data in files.items():
        write_bytes(folder / name, data)
    write_arrays(folder / REFERENCE, arrays)
    write_json(folder / CARD, card)


def _size(value: Any, where: str) -> "int | str | None":
    """Return a size of an axis, or ``"symbolic"`` for any."""
    return value if value in (None, SYMBOLIC) else whole("size", high=LARGEST).check(value, where)


def _bound(value: Any, where: str) -> float | None:
    return None if value is None else number("bound").check(value, where)


_PORT = {
    "name": line("name of the array", longest=200, pattern="[A-Za-z0-9_.]+", form="of letters, digits, '_' and '.'"),
    "dtype": word("type of its numbers", _DTYPES),
    "shape": several(Setting("a size", "of an axis", _size), "sizes of its axes"),
    "kind": word("what it is", KINDS),
    "unit": text("unit", ""),
    "doc": text("meaning", ""),
    "implementation": text("of random keys", ""),
    "bounds": several(Setting("a number", "or none", _bound), "lowest and highest value", (2,), None),
}
_CARD = {
    "format": word("version of these files", (FORMAT,)),
    "form": text("form of the program", ""),
    "batch": Setting("a size", "of the leading axis", _size),
    "cases": several(word("name of a case", CASES), f"cases of {REFERENCE}", (1, 2)),
    "tolerance": number("largest error that passes", bounds=(POSITIVE[0], LARGEST_TOLERANCE)),
    "allowed": several(
        row("one output", text("name"), number("largest error", bounds=(POSITIVE[0], LARGEST_ALLOWED))), "", (), []
    ),
    "compared_steps": whole("steps of the program that is compared instead", None),
    "inputs": several(Setting("a table", "of an array", lambda value, where: _port(value, where)), "in order"),
    "outputs": several(Setting("a table", "of an array", lambda value, where: _port(value, where)), "in order"),
}


def _port(value: Any, where: str) -> Port:
    """Return the description of an array from its table; keys that only people read are left out."""
    entries = {key: value[key] for key in _PORT if key in value} if isinstance(value, dict) else value
    port = read(entries, _PORT, where)
    low, high = port["bounds"] or (None, None)
    bounds = (-math.inf if low is None else low, math.inf if high is None else high) if port["bounds"] else None
    words = port["unit"], port["doc"]
    return Port(port["name"], port["shape"], port["dtype"], *words, port["kind"], bounds, (), port["implementation"])


def read_card(folder: Path) -> Card:
    """Read ``io.json``.

    Args:
        folder: of the program.

    Raises:
        UserError: if it does not exist, or has entries that no export writes.
    """
    path = folder / CARD
    with reading(path, UserError):
        content = read_json(path)
        card = read({key: content[key] for key in _CARD if key in content}, _CARD)
        inputs, outputs = (_without_batch(card[key], card["batch"], key) for key in ("inputs", "outputs"))
    files = [name for name in (ONNX, JAXEXPORT, MLIR) if (folder / name).exists() or (folder / name).is_symlink()]
    with reading(folder):
        if not {ONNX, JAXEXPORT} & {*files}:
            raise DamagedFileError(f"it holds neither {ONNX} nor {JAXEXPORT}")
    form, batch, cases, tolerance, steps = (
        card[key] for key in ("form", "batch", "cases", "tolerance", "compared_steps")
    )
    return Card(form, batch, inputs, outputs, cases, tolerance, dict(card["allowed"]), steps, files)


def _without_batch(ports: Sequence[Port], batch: "int | str | None", key: str) -> list[Port]:
    """Return ports of one member, with different names and shapes of at most 2 GiB."""
    members = [] if batch is None else [batch]
    by_name: dict[str, Port] = {}
    for port in ports:
        shape = port.shape[len(members) :]
        is_sized = list(port.shape[: len(members)]) == members and all(isinstance(size, int) for size in shape)
        if not is_sized or math.prod(shape) * np.dtype(port.dtype).itemsize > LARGEST or port.name in by_name:
            raise DamagedFileError(
                f"{key} names '{port.name}' twice, with a shape that does not begin with the batch, {batch}, or with "
                "sizes that make more than 2 GiB"
            )
        by_name[port.name] = dataclasses.replace(port, shape=shape)
    if not by_name:
        raise DamagedFileError(f"{key} names no array")
    return list(by_name.values())


def read_cases(folder: Path, card: Card) -> dict[str, Case]:
    """Read ``reference.npz``: exactly the arrays that ``io.json`` describes, within the bounds of the parameters.

    Args:
        folder: of the program.
        card: content of its ``io.json``.

    Raises:
        UserError: if an array is missing, unknown, of another shape or type, or out of bounds.
    """
    sides = {"input": card.inputs, "output": card.outputs}
    axes: tuple[int | str, ...] = () if card.batch is None else (_ANY if card.batch == SYMBOLIC else card.batch,)
    layout = Layout(
        {
            f"{case}.{kind}.{port.name}": (port.dtype, (*axes, *port.shape))
            for case in card.cases
            for kind, ports in sides.items()
            for port in ports
        }
    )
    with reading(folder / REFERENCE):
        arrays = read_arrays(folder / REFERENCE, layout=layout)
        for case in card.cases:
            for port in card.inputs:
                _check_bounds(port, arrays[f"{case}.input.{port.name}"])
    return {
        case: Case(*([arrays[f"{case}.{kind}.{port.name}"] for port in ports] for kind, ports in sides.items()))
        for case in card.cases
    }


def read_program(path: Path) -> bytes:
    """Read the file of a program.

    Args:
        path: of the file.

    Raises:
        DamagedFileError: if it is over 2 GiB, or no regular file.
    """
    if path.lstat().st_size > LARGEST:
        raise DamagedFileError("it is over 2 GiB, and no program")
    return read_bytes(path)


@contextlib.contextmanager
def reading(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Context in which whatever is wrong with a file of a program becomes one line with its path and the remedy.

    Args:
        path: of the file.
        *more: errors besides those of damaged files.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        yield
    except (OSError, DamagedFileError, *more) as error:
        where = "" if str(path) in str(error) else f"{path}: "
        remedy = "export the program again, or give the folder of one"
        raise UserError(f"{where}{one_line(error)}; {remedy}") from None


def _check_bounds(port: Port, array: np.ndarray) -> None:
    if port.bounds is None:
        return
    low, high = port.bounds
    if outside := array[~((array >= low) & (array <= high))].tolist():
        raise DamagedFileError(f"{port.name} = {outside[0]:g} is out of its bounds [{low:g}, {high:g}]")
