"""Text of a new scenario file: an old one under a new name, or the shortest of a simulation, with all it may say."""

import re
import textwrap

import numpy as np

from simkit.core.parameter import Parameter, shown_bounds
from simkit.errors import UserError
from simkit.scenario import checks
from simkit.scenario.contents import Contents
from simkit.scenario.likely_view import likely_view
from simkit.scenario.scenario import Scenario
from simkit.scenario.toml import to_toml

_NAME = re.compile(r'^name\s*=\s*"[^"\n]*"', re.MULTILINE)


def skeleton(name: str, scenario: Scenario, contents: Contents) -> str:
    """Return the text of a scenario file to start from.

    Args:
        name: of the new scenario.
        scenario: a scenario whose text is taken over, or a bare one of `simkit.scenario.contents.bare_scenario`.
        contents: what its simulation has: arguments and parameters that the file leaves out stand in comments in their
            tables, quantities in a comment at the top.

    Raises:
        UserError: if the name cannot be one, or the old file does not say its name on a line of its own.
    """
    checks.identifier(name, "the name of the new scenario")
    text = _renamed(name, scenario) if scenario.text else _shortest(name, scenario, contents)
    arguments = {key: value for key, value in contents.arguments.items() if value is not None}
    text = _with_comments(text, "config", [_line(key, value) for key, value in arguments.items()])
    left_out = {key: known for key, known in scenario.declared.items() if key not in scenario.differences}
    text = _with_comments(text, "params", [f"{_line(key, p.default)}  # {_about(p)}" for key, p in left_out.items()])
    return f"{_head(scenario, contents)}\n{text}"


def _renamed(name: str, scenario: Scenario) -> str:
    text, count = _NAME.subn(f'name = "{name}"', scenario.text, count=1)
    if not count:
        raise UserError(f"{scenario.file} does not say its name on a line of its own; copy it by hand")
    return text


def _shortest(name: str, scenario: Scenario, contents: Contents) -> str:
    shapes = {
        kind: {q.name: np.empty(tuple(q.dimensions.values())) for q in contents.quantities if q.kind == kind}
        for kind in ("observed", "diagnosed")
    }
    lengths = {axis: (length,) for q in contents.quantities for axis, length in q.dimensions.items()}
    view, quantity = likely_view(shapes["observed"], shapes["diagnosed"], lengths)
    words = name.replace("_", " ").capitalize()
    return to_toml(
        {
            "": {"name": name, "title": words, "summary": f"{words}.", "simulation": scenario.simulation},
            "config": {},
            "params": {},
            "run": {"steps": 1000, "every": 10},
            "render": {"view": view, "quantity": quantity},
        }
    )


def _head(scenario: Scenario, contents: Contents) -> str:
    """Return what quantities there are, for objectives and pictures, as comments."""
    lines = [f"Lines that begin with # are as declared; `simkit show {scenario.simulation}` explains them."]
    for kind in ("diagnosed", "observed"):
        lines.append(f"{kind}: {', '.join(quantity.name for quantity in contents.quantities if quantity.kind == kind)}")
    return "".join(f"# {line}\n" for text in lines for line in textwrap.wrap(text, 116))


def _with_comments(text: str, table: str, lines: list[str]) -> str:
    """Return the text with comment lines at the beginning of a table, which is added where it is missing."""
    if not lines:
        return text
    block = "".join(f"# {line}\n" for line in lines)
    header = re.search(rf"^\[{table}\][^\n]*\n", text, re.MULTILINE)
    return f"{text[: header.end()]}{block}{text[header.end() :]}" if header else f"{text}\n[{table}]\n{block}"


def _line(key: str, value: object) -> str:
    return to_toml({"": {key: value}}).strip()


def _about(parameter: Parameter) -> str:
    unit = "" if parameter.unit in ("", "1") else f", in {parameter.unit}"
    return f"{parameter.doc or 'no meaning is declared'}; {shown_bounds(parameter.bounds)}{unit}"
