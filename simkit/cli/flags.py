"""Messages of the command line: one line each, with options in place of Python arguments."""

import re

from simkit.errors import LONGEST_ERROR, one_line

# Layers below name arguments as in Python, with "=" at the end if the value is free.
_FLAGS = {
    "overwrite=True": "--overwrite",
    "final_frames=False": "--no-frames",
    'mode="forward"': "--mode forward",
    'method="adam"': "--method adam",
    "mode=": "--mode",
    "learning_rate=": "--learning-rate",
    'KEY=Path("...")': "--set KEY=@path",
    "output=": "--output",
    "runtime=": "--runtime",
    'to="onnx"': "--to onnx",
    'to="stablehlo"': "--to stablehlo",
    "batch=16": "--batch 16",
    "memory=": "--memory",
    "chunk=": "--chunk",
    "zip=True": "--zip",
    "sample=": "--sample",
    "members=": "--members",
    "table=": "--table",
    "seeds=": "--seeds",
    "workers=": "--workers",
    "scheduler=": "--scheduler",
    "deadline=": "--deadline",
}
# Options that are not spelled like the argument.
_OPTIONS = {("final_frames", "False"): "--no-frames", ("KEY", 'Path("...")'): "--set KEY=@path"}
_ARGUMENT = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, _FLAGS))})(?=[\s,;)]|$)")


def option(name: str, value: str) -> str:
    """Return the option of the command line for a Python argument, for `simkit.errors.spelled`.

    Args:
        name: such as ``"overwrite"``.
        value: such as ``"True"``; empty if the user chooses it.
    """
    flag = f"--{name.replace('_', '-')}"
    told = "" if value in ("", "True") else " " + value.strip('"')
    return _OPTIONS.get((name, value), flag + told)


def with_flags(message: str) -> str:
    """Return an error message with its Python arguments replaced by options of the command line.

    Args:
        message: such as ``"pass overwrite=True to replace it"``, which becomes ``"pass --overwrite to replace it"``.
    """
    return _ARGUMENT.sub(lambda match: _FLAGS[match[0]], message)


def as_line(message: str) -> str:
    """Return a message on one line of bounded length, with options of the command line and control characters escaped.

    Args:
        message: of an error or a warning.
    """
    line = with_flags(" ".join(message.split()))
    return one_line("".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line), LONGEST_ERROR)
