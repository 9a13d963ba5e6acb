"""Run this program without simkit, and compare it with its reference.

python stand_alone.py                              compare with reference.npz
python stand_alone.py --inputs my.npz -o out.npz   call it with other inputs, named as in io.json, and store its outputs
python stand_alone.py --calls 100 -o out.npz       call a step or segment 100 times, and store the frames
"""

# Folders of programs hold copies of this file, as run_onnx.py and run_jax.py: it imports nothing of simkit.

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

FILE = pathlib.Path(__file__).resolve()
# Not by the statement `type`, which older versions of Python lack.
Arrays = dict[str, Any]
Call = Callable[[Arrays], Arrays]


def loaded(card: dict[str, Any]) -> Call:
    """Return the program as a function from inputs to outputs, both by name: of onnxruntime, or of JAX."""
    names = [port["name"] for port in card["outputs"]]
    if FILE.stem == "run_onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(FILE.with_name("model.onnx"), providers=["CPUExecutionProvider"])
        used = {port.name for port in session.get_inputs()}  # onnxruntime drops inputs that no output depends on
        return lambda inputs: dict(
            zip(names, session.run(names, {k: v for k, v in inputs.items() if k in used}), strict=True)
        )
    import jax
    import jax.export

    if card["precision"] == "float64":
        jax.config.update("jax_enable_x64", True)
    program = jax.jit(jax.export.deserialize(bytearray(FILE.with_name("model.jaxexport").read_bytes())).call)
    return lambda inputs: dict(
        zip(names, map(np.asarray, program(*(inputs[port["name"]] for port in card["inputs"]))), strict=True)
    )


def refuse(message: str) -> NoReturn:
    """Stop with one line."""
    print(message, file=sys.stderr)
    sys.exit(2)


def checked(arrays: Arrays, ports: list[dict[str, Any]]) -> Arrays:
    """Return the inputs in the program's order, or stop at the first one of a wrong type, shape or value."""
    if unknown := sorted(arrays.keys() - {port["name"] for port in ports}):
        refuse(f"{unknown[0]} is not an input; io.json names them")
    for port in ports:
        name, shape = port["name"], port["shape"]
        if name not in arrays:
            refuse(f"the input {name} is missing")
        array = arrays[name]
        sizes = [len(array) if size == "symbolic" and array.ndim else size for size in shape]
        if list(array.shape) != sizes or array.dtype != port["dtype"]:
            refuse(f"{name} is {array.dtype}{list(array.shape)}; give {port['dtype']}{shape}")
        low, high = port.get("bounds", (None, None))
        if (low is not None and (array < low).any()) or (high is not None and (array > high).any()):
            refuse(f"{name} is out of its bounds [{low}, {high}]")
    return {port["name"]: arrays[port["name"]] for port in ports}


def read(file: str) -> Arrays:
    """Return the arrays of an .npz file by name, or stop."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, TypeError, AttributeError, EOFError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        refuse(f"{file} cannot be read as .npz: {reason}")


def is_proper(array: np.ndarray) -> np.ndarray:
    """Return which numbers are neither NaN, nor infinite, nor so large that they stand for infinity."""
    return np.abs(array) < float(np.finfo(array.dtype).max) ** 0.5


def largest_of(array: np.ndarray) -> float:
    """Return the largest absolute value of proper numbers; 0 of integers."""
    return float(np.max(np.abs(array), where=is_proper(array), initial=0.0)) if array.dtype.kind == "f" else 0.0


def error_of(expected: np.ndarray, actual: np.ndarray, smallest_scale: float = 0.0) -> float:
    """Return the largest difference relative to the scale of an output, of integers the fraction that differs.

    It is infinite where one number is finite and the other is not. The scale is the output's largest number.

    Args:
        expected: result of JAX.
        actual: result of another runtime, of the same shape.
        smallest_scale: least scale.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != actual)) if expected.size else 0.0
    proper = is_proper(expected)
    if not np.array_equal(proper, is_proper(actual)) or not np.array_equal(
        expected[~proper], actual[~proper], equal_nan=True
    ):
        return np.inf
    difference = expected[proper].astype(np.float64) - actual[proper]
    scale = max(largest_of(expected), smallest_scale) or 1.0
    return float(np.max(np.abs(difference), initial=0.0)) / scale


def errors_of(
    expected: Sequence[np.ndarray], actual: Sequence[np.ndarray], smallest_scales: dict[str, float]
) -> list[float]:
    """Return the error of each output, of which the scale is at least a share of the largest number of all outputs.

    Args:
        expected: results of JAX.
        actual: results of another runtime.
        smallest_scales: that share, by type.
    """
    largest = max(map(largest_of, expected), default=0.0)
    scales = [smallest_scales.get(array.dtype.name, smallest_scales["float32"]) * largest for array in expected]
    return [error_of(*arrays) for arrays in zip(expected, actual, scales, strict=True)]


def compare(call: Call, card: dict[str, Any], reference: Any) -> int:
    """Print error and allowed error of each output, and return the number of errors that are too large."""
    missed = 0
    print(f"{'case':6} {'output':32} {'error':>9} {'allowed':>9}")
    for case in card["cases"]:
        prefix = f"{case}.input."
        inputs = {k[len(prefix) :]: reference[k] for k in reference.files if k.startswith(prefix)}
        results = call(checked(inputs, card["inputs"]))
        outputs = [reference[f"{case}.output.{port['name']}"] for port in card["outputs"]]
        errors = errors_of(outputs, list(results.values()), card["smallest_scales"])
        for name, expected, error in zip(results, outputs, errors, strict=True):
            allowed = dict(card.get("allowed", [])).get(name, card["tolerance"]) if expected.dtype.kind == "f" else 0.0
            miss = not error <= allowed
            missed += miss
            print(f"{case:6} {name:32} {error:9.2e} {allowed:9.2e} {'MISS' * miss}".rstrip())
    return missed


def follow(call: Call, inputs: Arrays, calls: int) -> Arrays:
    """Return the frame, diagnostics and status after each call, stacked along a first axis."""
    frames = []
    for _ in range(calls):
        outputs = call(inputs)
        frames.append({k: v for k, v in outputs.items() if k.startswith(("frame.", "diagnostic.", "status"))})
        inputs = inputs | {f"state.{k[5:]}": v for k, v in outputs.items() if k.startswith("next.")}
    return {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}


def main() -> int:
    """Read the command line, run the program, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", help="an .npz file of inputs by name (default: those of the reference)")
    parser.add_argument("--calls", type=int, default=1, help="number of calls of a step or segment")
    parser.add_argument("-o", "--output", help="the .npz file to write")
    arguments = parser.parse_args()
    card = json.loads(FILE.with_name("io.json").read_text())
    call, reference = loaded(card), np.load(FILE.with_name("reference.npz"), allow_pickle=False)
    if arguments.output is None:
        if arguments.inputs or arguments.calls != 1:
            refuse("--inputs and --calls need a file for the outputs; add -o out.npz")
        if "compared_steps" in card:
            # Rounding decides the results of all steps: the program of fewer steps is compared.
            return subprocess.run([sys.executable, FILE.parent / "shorter" / FILE.name]).returncode
        return 1 if compare(call, card, reference) else 0
    inputs = {k[12:]: reference[k] for k in reference.files if k.startswith("start.input.")}
    if arguments.inputs:
        inputs |= read(arguments.inputs)
    inputs = checked(inputs, card["inputs"])
    stepped = any(port["name"].startswith("next.") for port in card["outputs"])
    if arguments.calls < 1 or (arguments.calls > 1 and not stepped):
        refuse(f"--calls {arguments.calls}: a step or segment is called once or more, and other programs once")
    outputs = follow(call, inputs, arguments.calls) if stepped else call(inputs)
    try:
        np.savez(arguments.output, **outputs)
    except OSError as error:
        refuse(f"{arguments.output} cannot be written: {error.strerror or error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
