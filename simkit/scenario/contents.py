"""Contents of a scenario for `show` and `new`: quantities, JSON Schema, and the text of a new file."""

import dataclasses
import math
import re
import textwrap
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simkit.core import paths
from simkit.core.parameter import POSITIVE, Parameter, shown_bounds
from simkit.core.precision import precision
from simkit.core.settings import schema_of as schema_of_settings
from simkit.core.settings.records import keys_of
from simkit.core.simulation import Simulation
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.catalog import FILE
from simkit.scenario.checks import to_toml
from simkit.scenario.drawing import Frame, likely_view
from simkit.scenario.registry import SIMULATIONS, arguments_of, needed_arguments, takes_any, takes_parameters
from simkit.scenario.scenario import ParameterSettings, RenderSettings, RunSettings, Scenario, make


@dataclasses.dataclass(frozen=True)
class Content:
    """One array that a simulation observes or diagnoses.

    Attributes:
        name: of the array.
        kind: ``"observed"`` or ``"diagnosed"``.
        dimensions: names and lengths of its axes, such as ``{"x": 64, "y": 48}``.
        unit: physical unit; empty if not declared.
        doc: meaning; empty if not declared.
    """

    name: str
    kind: str
    dimensions: dict[str, int]
    unit: str
    doc: str


@dataclasses.dataclass(frozen=True)
class Contents:
    """Quantities of a simulation and further arguments of its factory.

    Attributes:
        quantities: observed arrays and diagnostics.
        arguments: defaults of the arguments of the factory that the file does not set; ``None`` for required ones.
    """

    quantities: tuple[Content, ...]
    arguments: dict[str, Any]


def bare_scenario(simulation: str) -> Scenario:
    """Return a scenario of a simulation with its default configuration, for listing its contents.

    Args:
        simulation: registered name, such as ``"flow.domain"``.
    """
    return Scenario(
        name=simulation,
        title=simulation,
        summary="with its default configuration",
        simulation=simulation,
        run=RunSettings(1, 1, "float32", 0),
        render=RenderSettings("chart", "time"),
        source=Path(simulation),
        text="",
    )


def contents_of(scenario: Scenario) -> Contents:
    """Return the contents of the simulation of a scenario, which is built but not run.

    Args:
        scenario: overrides applied; one without a file, from `bare_scenario`, is not checked.

    Raises:
        UserError: if the simulation cannot be built.
    """
    with precision(scenario.run.precision):
        return _contents(scenario, build(scenario) if scenario.text else make(scenario))


def _contents(scenario: Scenario, simulation: Simulation) -> Contents:
    state = jax.eval_shape(simulation.init, simulation.params, jax.eval_shape(jax.random.key, 0))
    shapes = {
        "observed": jax.eval_shape(simulation.observe, state, simulation.params),
        "diagnosed": jax.eval_shape(simulation.diagnose, state, simulation.params),
    }
    quantities = []
    for kind, arrays in shapes.items():
        for name, array in arrays.items():
            axes = simulation.dimensions.get(name, ()) if kind == "observed" else ()
            axes = axes if len(axes) == array.ndim else [f"axis {axis}" for axis in range(array.ndim)]
            quantity = simulation.quantities.get(name)
            unit, doc = (quantity.unit, quantity.doc) if quantity else ("", "")
            quantities.append(Content(name, kind, dict(zip(axes, array.shape, strict=True)), unit, doc))
    factory = None if scenario.made else SIMULATIONS.resolve(scenario.simulation)
    arguments = dict.fromkeys(needed_arguments(factory)) | arguments_of(factory) if factory else {}
    return Contents(
        quantities=tuple(quantities),
        arguments={name: default for name, default in arguments.items() if name not in scenario.config},
    )


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(scenario: Scenario, contents: Contents | None) -> dict[str, Any]:
    """Return the JSON Schema of scenario files with the simulation of a scenario.

    Args:
        scenario: with its simulation and configuration.
        contents: of that simulation; ``None`` allows any parameters and quantities.

    Raises:
        UserError: if the simulation cannot be made.
    """
    declared = scenario.declared if contents else {}
    parameters = {name: _parameter(parameter) for name, parameter in declared.items()}
    parameters_schema = _tables(paths.nested(parameters), set(declared))
    # Parameters depend on the configuration, and a file may declare its own.
    is_closed = scenario.text and not takes_parameters(SIMULATIONS.resolve(scenario.simulation))
    schema = schema_of_settings(FILE)
    schema["properties"] |= {
        "simulation": {"const": scenario.simulation},
        "config": _configuration(scenario),
        "params": parameters_schema | ({} if is_closed else {"additionalProperties": True}),
    }
    if parameters:
        schema["properties"]["validation"]["items"]["properties"]["derivative"] = {"enum": list(parameters)}
    names = _names_of(contents) if contents else {}
    return {"$schema": DRAFT, "title": f"scenario of {scenario.simulation}", **schema, **names}


def _names_of(contents: Contents) -> dict[str, Any]:
    """Return the schema of names of quantities, for files without ``[quantities]``."""
    diagnosed = [quantity.name for quantity in contents.quantities if quantity.kind == "diagnosed"]
    properties = {
        "objectives": {"additionalProperties": {"if": {"type": "object"}, "then": _named("quantity", diagnosed)}},
        "render": _named("quantity", [quantity.name for quantity in contents.quantities]),
        "validation": {"items": _named("quantity", diagnosed)},
    }
    return {"if": {"not": {"required": ["quantities"]}}, "then": {"properties": properties}}


def _named(key: str, known: list[str]) -> dict[str, Any]:
    return {"properties": {key: {"enum": known}}}


def _table(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    return table | ({"required": list(required)} if required else {})


def _tables(tree: dict[str, Any], known: Collection[str], path: str = "") -> dict[str, Any]:
    """Return the schema of a branch of parameters from the schemas of the parameters."""
    here = {key: (paths.below(path, key), entry) for key, entry in tree.items()}
    return _table({k: entry if where in known else _tables(entry, known, where) for k, (where, entry) in here.items()})


RECORD = schema_of_settings(keys_of(ParameterSettings))["properties"]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    low, high = parameter.bounds
    lowest = {"exclusiveMinimum": 0} if low == POSITIVE[0] else {"minimum": low} if math.isfinite(low) else {}
    number = {"type": "number", **lowest, **({"maximum": high} if math.isfinite(high) else {})}
    value: dict[str, Any] = number
    default: Any = parameter.default
    while isinstance(default, tuple):
        value, default = (
            {"type": "array", "items": value, "minItems": len(default), "maxItems": len(default)},
            default[0],
        )
    table = _table(dict(RECORD) | {"default": value})
    description = f"{parameter.doc} [{parameter.unit}]" if parameter.unit != "1" else parameter.doc
    default_schema = {"default": parameter.default} if not _missing(parameter.default) else {}
    return {"description": description, "x-unit": parameter.unit, **default_schema, "anyOf": [value, table]}


def _missing(value: Any) -> bool:
    return any(map(_missing, value)) if isinstance(value, tuple) else math.isnan(value)


def _configuration(scenario: Scenario) -> dict[str, Any]:
    """Return the schema of the arguments of the factory, by name and default; the factory checks their values."""
    factory = SIMULATIONS.resolve(scenario.simulation)
    needed = needed_arguments(factory)
    arguments: dict[str, Any] = {name: {} for name in needed}
    arguments |= {name: {} if value is None else {"default": value} for name, value in arguments_of(factory).items()}
    declared = schema_of_settings(getattr(factory, "settings", {}))["properties"]
    arguments = {name: declared.get(name, {}) | schema for name, schema in arguments.items()}
    return _table(arguments, tuple(needed)) | {"additionalProperties": takes_any(factory)}


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
    FILE["name"].check(name, "the name of the new scenario")
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
    view, quantity = likely_view(Frame(shapes["observed"], shapes["diagnosed"], lengths))
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
