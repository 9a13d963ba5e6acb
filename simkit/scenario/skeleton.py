"""Text of a new scenario file: a renamed one or a minimal one, with the other possible settings as comments."""

import re
import textwrap

import numpy as np

from simkit.core.parameter import Parameter, shown_bounds
from simkit.errors import UserError
from simkit.scenario import checks
from simkit.scenario.contents import Contents
from simkit.scenario.likely_view import likely_view
from simkit.scenario.scenario import Scenario
from simkit.scenario.sections import RunSettings
from simkit.scenario.toml import to_toml

_NAME = re.compile(r'^name\s*=\s*"[^"\n]*"', re.MULTILINE)


def skeleton(name: str, scenario: Scenario, contents: Contents, run: RunSettings) -> str:
    """Return the text of a scenario file to start from.

    Args:
        name: of the new scenario.
        scenario: a scenario whose text is copied, or a bare one of `simkit.scenario.contents.bare_scenario`.
        contents: of its simulation: arguments and parameters that the file does not mention become comments in their
            tables, quantities a comment at the top.
        run: length and precision of the run of a minimal one.

    Raises:
        UserError: if the name is not valid, or the old file does not have its name on a separate line.
    """
    checks.identifier(name, "the name of the new scenario")
    text = _renamed(name, scenario) if scenario.text else _minimal(name, scenario, contents, run)
    arguments = {key: value for key, value in contents.arguments.items() if value is not None}
    text = _with_comments(text, "config", [_line(key, value) for key, value in arguments.items()])
    others = {key: known for key, known in scenario.declared.items() if key not in scenario.parameter_settings}
    text = _with_comments(text, "params", [f"{_line(key, p.default)}  # {_about(p)}" for key, p in others.items()])
    return f"{_head(scenario, contents)}\n{text}"


def _renamed(name: str, scenario: Scenario) -> str:
    text, count = _NAME.subn(f'name = "{name}"', scenario.text, count=1)
    if not count:
        raise UserError(f"{scenario.file} does not have its name on a separate line; copy it by hand")
    return text


def _minimal(name: str, scenario: Scenario, contents: Contents, run: RunSettings) -> str:
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
            "run": {"steps": run.steps, "every": run.every, "precision": run.precision},
            "render": {"view": view, "quantity": quantity},
        }
    )


def _head(scenario: Scenario, contents: Contents) -> str:
    """Return the names of the quantities, for objectives and pictures, as comments."""
    lines = [f"Lines that begin with # are as declared; `simkit show {scenario.simulation}` explains them."]
    for kind in ("diagnosed", "observed"):
        lines.append(f"{kind}: {', '.join(quantity.name for quantity in contents.quantities if quantity.kind == kind)}")
    return "".join(f"# {line}\n" for text in lines for line in textwrap.wrap(text, 116))


def _with_comments(text: str, table: str, lines: list[str]) -> str:
    """Return the text with comment lines at the beginning of a table, which is added if it is missing."""
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
