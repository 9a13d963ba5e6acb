"""Scripts in the folder of an exported program that run it without simkit: with onnxruntime, or with JAX alone."""

from simkit.export.programs.runtimes import JAXEXPORT, ONNX

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
import difflib
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
            near = difflib.get_close_matches(name, known, n=1)
            refuse(f"{{name}} is not an input; " + (f"did you mean {{near[0]}}?" if near else "io.json names them"))
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
            allowed = CARD["tolerance"] if expected.dtype.kind == "f" else 0.0
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
