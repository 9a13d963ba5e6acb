"""Write docs/reference/api.md of public docstrings, and results.md of what verbs print: ``make api``."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simkit.cli.schemas import OF_VERBS, RESULTS
from simkit.errors import CODES

PACKAGES = {
    "simkit": "Run, sweep, differentiate, optimize; the record and its transformations",
    "simkit.export": "Programs and files for others",
    "simkit.interop": "Arrays of other libraries",
    "simkit.core": "What simulations are made of",
    "simkit.flow": "Flow",
    "simkit.flow.obstacles": "Bodies in a flow",
    "simkit.molecular": "Molecules",
    "simkit.molecular.spaces": "Spaces and cells",
    "simkit.molecular.potentials": "Pair potentials",
    "simkit.molecular.interactions": "What acts between particles",
    "simkit.molecular.minimizers": "Minimizers",
    "simkit.molecular.relaxation": "Relaxation",
    "simkit.molecular.barriers": "Barriers between minima",
    "simkit.molecular.dynamics": "Dynamics",
    "simkit.molecular.constraints": "Rigid bonds",
    "simkit.molecular.structures": "Structures",
    "simkit.molecular.phonons": "Phonons",
    "simkit.molecular.imports": "Systems of other programs",
    "simkit.rigid": "Rigid bodies",
    "simkit.rigid.articulated": "Mechanisms in joint coordinates",
}
# What examples in docstrings take for granted; they are run in single precision, JAX's default.
IMPORTS = """\
import jax
import jax.numpy as jnp
import numpy as np
import simkit
from simkit import core, flow, molecular, rigid
"""
HEAD = f"""\
# The public surface

What is listed here is public: the names that these packages export, with their arguments, results and errors as the
docstrings say. They change only with an entry in the [changelog](../../CHANGELOG.md) that says what to write instead.
Every other module may be imported and read, and may change at any time. So may the bytes of results from one version
to the next; the format of run directories has a number, and a directory of an earlier format is read, or refused in
one line. `help(NAME)` shows the whole docstring. It ends with an example, which a test runs after these lines:

```python
{IMPORTS}```

This page is made from the docstrings by `make api`.
"""


def public() -> Iterator[tuple[str, Any]]:
    """Yield path and value of every public name that is no module."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value):
                yield f"{package}.{name}", value


def page() -> str:
    """Return the text of docs/reference/api.md."""
    sections = []
    for package, title in PACKAGES.items():
        module = importlib.import_module(package)
        rows = [_row(name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower)]
        table = "\n".join(["| name | what it is |", "|---|---|", *rows])
        sections.append(f"## `{package}`: {title[0].lower() + title[1:]}\n\n{table}\n")
    return HEAD + "\n" + "\n".join(sections)


def _row(name: str, value: Any) -> str:
    kind = "" if inspect.ismodule(value) or inspect.isclass(value) or not callable(value) else _arguments(value)
    return f"| `{name}{kind}` | {_sentence(value)} |"


def _arguments(function: Any) -> str:
    """Return the names of a function's arguments, with an ellipsis for those that have a default."""
    given = list(inspect.signature(function).parameters.values())
    needed = [a for a in given if a.default is a.empty and a.kind is not a.VAR_KEYWORD]
    names = [f"*{a.name}" if a.kind is a.VAR_POSITIONAL else a.name for a in needed]
    return f"({', '.join(names + ['...'] * (len(needed) < len(given)))})"


def _sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return re.sub(r"``([^`]*)``", r"`\1`", text).replace("|", r"\|")


RESULTS_HEAD = """\
# Results and errors of commands

What verbs print with `--json`, made from its declarations by `make api`. `simkit schema VERB` prints the whole JSON
Schema; [for programs and agents](../programs.md) says how results are versioned.
"""


def results_page() -> str:
    """Return the text of docs/reference/results.md."""
    verbs = [f"| `{verb}` | {', '.join(f'`{kind}`' for kind in kinds)} |" for verb, kinds in OF_VERBS.items()]
    kinds = [f"| `{kind}` | {_keys(made())} |" for kind, made in RESULTS.items()]
    codes = [f"| `{code}` | {meaning} |" for code, meaning in CODES.items()]
    parts = (
        ("Results by verb", "| verb | kinds of results |", verbs),
        ("Keys by kind of result", "| kind | keys; those in brackets may be missing |", kinds),
        ("Codes of errors", "| code | meaning |", codes),
    )
    return "\n".join([RESULTS_HEAD, *("\n".join([f"## {t}\n", h, "|---|---|", *rows, ""]) for t, h, rows in parts)])


def _keys(schema: dict[str, Any]) -> str:
    needed = schema["required"]
    return ", ".join(f"`{key}`" if key in needed else f"(`{key}`)" for key in schema["properties"])


if __name__ == "__main__":
    folder = Path(__file__).with_name("reference")
    (folder / "api.md").write_text(page())
    (folder / "results.md").write_text(results_page())
