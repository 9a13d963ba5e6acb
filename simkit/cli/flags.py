"""Translation of Python arguments in messages to options of the command line."""

import re

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
_ARGUMENT = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, _FLAGS))})(?=[\s,;)]|$)")


def with_flags(message: str) -> str:
    """Return an error message with its Python arguments replaced by options of the command line.

    Args:
        message: such as ``"pass overwrite=True to replace it"``, which becomes ``"pass --overwrite to replace it"``.
    """
    return _ARGUMENT.sub(lambda match: _FLAGS[match[0]], message)
