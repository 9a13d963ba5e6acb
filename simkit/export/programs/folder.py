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
from simkit.export.programs.comparison import LARGEST_ALLOWED, LARGEST_TOLERANCE
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

_WITH = {
    ONNX: (
        "onnxruntime",
        '''
import onnxruntime

session = onnxruntime.InferenceSession(FOLDER / "model.onnx", providers=["CPUExecutionProvider"])
USED = {port.name for port in session.get_inputs()}  # onnxruntime drops inputs that no output depends on


def call(inputs):
    """Return the outputs of one call, by name."""
    found = session.run([port["name"] for port in OUTPUTS], {k: v for k, v in inputs.items() if k in USED})
    return {port["name"]: array for port, array in zip(OUTPUTS, found)}
''',
    ),
    JAXEXPORT: (
        "JAX",
        '''
import jax
import jax.export

if CARD["precision"] == "float64":
    jax.config.update("jax_enable_x64", True)
program = jax.jit(jax.export.deserialize(bytearray((FOLDER / "model.jaxexport").read_bytes())).call)


def call(inputs):
    """Return the outputs of one call, by name."""
    found = program(*(inputs[port["name"]] for port in INPUTS))
    return {port["name"]: np.asarray(array) for port, array in zip(OUTPUTS, found)}
''',
    ),
}
_TEXT = '''"""Run this program with {runtime}, without simkit, and compare it with its reference.

python {file}                              compare with reference.npz
python {file} --inputs my.npz -o out.npz   call it with other inputs, named as in io.json, and store its outputs
python {file} --calls 100 -o out.npz       call a step or segment 100 times, and store the frames
"""

import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
CARD = json.loads((FOLDER / "io.json").read_text())
INPUTS, OUTPUTS = CARD["inputs"], CARD["outputs"]
{import_and_call}

def refuse(message):
    """Stop with one line."""
    print(message, file=sys.stderr)
    sys.exit(2)


def checked(arrays):
    """Return the inputs in the program's order, or stop at the first one of a wrong type, shape or value."""
    known = [port["name"] for port in INPUTS]
    for name in arrays:
        if name not in known:
            refuse(f"{{name}} is not an input; io.json names them")
    for port in INPUTS:
        name, shape = port["name"], port["shape"]
        if name not in arrays:
            refuse(f"the input {{name}} is missing")
        array = arrays[name]
        same = len(array.shape) == len(shape) and all(b in (a, "symbolic") for a, b in zip(array.shape, shape))
        if not same or array.dtype != port["dtype"]:
            refuse(f"{{name}} is {{array.dtype}}{{list(array.shape)}}; give {{port['dtype']}}{{shape}}")
        low, high = port.get("bounds", (None, None))
        if (low is not None and (array < low).any()) or (high is not None and (array > high).any()):
            refuse(f"{{name}} is out of its bounds [{{low}}, {{high}}]")
    return {{port["name"]: arrays[port["name"]] for port in INPUTS}}


def read(file):
    """Return the arrays of an .npz file by name, or stop."""
    try:
        with np.load(file, allow_pickle=False) as found:
            return dict(found)
    except (OSError, ValueError, TypeError, AttributeError, EOFError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        refuse(f"{{file}} cannot be read as .npz: {{reason}}")


def is_proper(array):
    """Return which numbers are neither NaN, nor infinite, nor so large that they stand for infinity."""
    return np.abs(array) < np.finfo(array.dtype).max ** 0.5


def largest_of(array):
    """Return the largest absolute value of proper numbers; 0 of integers."""
    return float(np.max(np.abs(array), where=is_proper(array), initial=0.0)) if array.dtype.kind == "f" else 0.0


def error_of(expected, found, largest):
    """Return the largest difference relative to the scale of an output, of integers the fraction that differs.

    The scale is the output's largest number, and at least a share of the largest number of all outputs.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != found)) if expected.size else 0.0
    proper = is_proper(expected)
    if not np.array_equal(proper, is_proper(found)) or not np.array_equal(
        expected[~proper], found[~proper], equal_nan=True
    ):
        return float("inf")
    difference = expected[proper].astype(np.float64) - found[proper]
    scale = max(largest_of(expected), CARD["smallest_scales"].get(str(expected.dtype), 0.0) * largest)
    return float(np.max(np.abs(difference), initial=0.0)) / (scale or 1.0)


def compare(reference):
    """Print error and allowed error of each output, and return the number of errors that are too large."""
    missed = 0
    print(f"{{'case':6}} {{'output':32}} {{'error':>9}} {{'allowed':>9}}")
    for case in CARD["cases"]:
        prefix = f"{{case}}.input."
        found = call(checked({{k[len(prefix):]: reference[k] for k in reference.files if k.startswith(prefix)}}))
        wanted = {{port["name"]: reference[f"{{case}}.output.{{port['name']}}"] for port in OUTPUTS}}
        largest = max(map(largest_of, wanted.values()), default=0.0)
        for name, expected in wanted.items():
            error = error_of(expected, found[name], largest)
            allowed = dict(CARD.get("allowed", [])).get(name, CARD["tolerance"]) if expected.dtype.kind == "f" else 0.0
            miss = not error <= allowed
            missed += miss
            print(f"{{case:6}} {{name:32}} {{error:9.2e}} {{allowed:9.2e}} {{'MISS' * miss}}".rstrip())
    return missed


def follow(inputs, calls):
    """Return the frame, diagnostics and status after each call, stacked along a first axis."""
    kept = []
    for _ in range(calls):
        found = call(inputs)
        kept.append({{k: v for k, v in found.items() if k.startswith(("frame.", "diagnostic.", "status"))}})
        inputs = inputs | {{f"state.{{k[5:]}}": v for k, v in found.items() if k.startswith("next.")}}
    return {{name: np.stack([one[name] for one in kept]) for name in kept[0]}}


def main():
    """Read the command line, run the program, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", help="an .npz file of inputs by name (default: those of the reference)")
    parser.add_argument("--calls", type=int, default=1, help="number of calls of a step or segment")
    parser.add_argument("-o", "--output", help="the .npz file to write")
    arguments = parser.parse_args()
    reference = np.load(FOLDER / "reference.npz", allow_pickle=False)
    if arguments.output is None:
        if arguments.inputs or arguments.calls != 1:
            refuse("--inputs and --calls need a file for the outputs; add -o out.npz")
        if "compared_steps" in CARD:
            # Rounding decides the results of all steps: the program of fewer steps is compared.
            return subprocess.run([sys.executable, FOLDER / "shorter" / "{file}"]).returncode
        return 1 if compare(reference) else 0
    inputs = {{k[12:]: reference[k] for k in reference.files if k.startswith("start.input.")}}
    if arguments.inputs:
        inputs |= read(arguments.inputs)
    inputs = checked(inputs)
    stepped = any(port["name"].startswith("next.") for port in OUTPUTS)
    if arguments.calls < 1 or (arguments.calls > 1 and not stepped):
        refuse(f"--calls {{arguments.calls}}: a step or segment is called once or more, and other programs once")
    outputs = follow(inputs, arguments.calls) if stepped else call(inputs)
    try:
        np.savez(arguments.output, **outputs)
    except OSError as error:
        refuse(f"{{arguments.output}} cannot be written: {{error.strerror or error}}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


def stand_alone(file: str, program: str) -> bytes:
    """Return the script that runs an exported program.

    Args:
        file: name of the script.
        program: name of the exported file, ``"model.onnx"`` or ``"model.jaxexport"``.
    """
    runtime, call = _WITH[program]
    return _TEXT.format(runtime=runtime, file=file, import_and_call=call).encode()


FORMAT = "simkit program 2"
CARD, REFERENCE, REPORT, SCENARIO = "io.json", "reference.npz", "report.json", "scenario.toml"
# Folder of the program of fewer steps that is compared where rounding decides the results of all steps.
SHORTER = "shorter"
STAND_ALONE = {ONNX: "run_onnx.py", JAXEXPORT: "run_jax.py"}
CASES = ("start", "later")
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
        content: the whole file as plain data.
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
    content: dict[str, Any]


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
    return Card(form, batch, inputs, outputs, cases, tolerance, dict(card["allowed"]), steps, files, content)


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
