"""JSON Schema of the scenario files of a simulation, for checks and completion in editors."""

import math
from collections.abc import Collection
from typing import Any

from simkit.core import paths
from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.settings import schema_of as schema_of_settings
from simkit.scenario.checks import MAX_SEED, MAX_STEPS, PRECISIONS
from simkit.scenario.contents import Contents
from simkit.scenario.factories import arguments_of, needed_arguments, takes_any, takes_parameters
from simkit.scenario.registry import SIMULATIONS, VIEWS
from simkit.scenario.scenario import Scenario
from simkit.scenario.schema import CAMERAS, GOALS, REDUCTIONS

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}
WORDS = {"type": "array", "items": TEXT}
NUMBER = {"type": "number"}
PAIR = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}


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
    known = _tables(paths.nested(parameters), set(declared))
    has_own = takes_parameters(SIMULATIONS.resolve(scenario.simulation))
    run = {
        "steps": {"type": "integer", "minimum": 1, "maximum": MAX_STEPS},
        "every": {"type": "integer", "minimum": 1, "maximum": MAX_STEPS},
        "precision": {"enum": list(PRECISIONS), "default": "float32"},
        "seed": {"type": "integer", "minimum": 0, "maximum": MAX_SEED, "default": 0},
        "stop": {"type": "string", "default": ""},
    }
    objective = {
        "doc": TEXT,
        "quantity": TEXT,
        "expression": TEXT,
        "reduce": {"enum": list(REDUCTIONS), "default": "final"},
        "square": {"type": "boolean", "default": False},
        "goal": {"enum": list(GOALS), "default": "minimize"},
    }
    added: dict[str, Any] = dict.fromkeys(("expression", "unit", "doc"), TEXT)
    render = {
        "view": {"enum": VIEWS.names()},
        "quantity": TEXT,
        **dict.fromkeys(("label", "unit", "colormap"), TEXT),
        "limits": PAIR,
        "frames_per_second": {"type": "number", "exclusiveMinimum": 0, "default": 20},
        "camera": {"enum": list(CAMERAS)},
        **dict.fromkeys(("azimuth", "elevation", "turn"), NUMBER),
        "window": _table({"x": PAIR, "y": PAIR}),
    }
    validation = {
        "quantity": TEXT,
        "expression": TEXT,
        "expected": NUMBER,
        "tolerance": {"type": "number", "exclusiveMinimum": 0},
        "source": TEXT,
        "set": {"type": "object"},
        "derivative": {"enum": list(parameters)} if parameters else TEXT,
        "objective": TEXT,
        "reduce": {"enum": list(REDUCTIONS), "default": "final"},
    }
    return {
        "$schema": DRAFT,
        "title": f"scenario of {scenario.simulation}",
        **_table(
            {
                **dict.fromkeys(("name", "title", "summary"), TEXT),
                "simulation": {"const": scenario.simulation},
                **dict.fromkeys(("tags", "references"), WORDS),
                "config": _configuration(scenario),
                # Parameters depend on the configuration, and a file may declare its own.
                "params": known | ({} if scenario.text and not has_own else {"additionalProperties": True}),
                "run": _table(run, ("steps", "every")),
                "quantities": {"type": "object", "additionalProperties": _table(added, ("expression", "doc"))},
                "objectives": {"type": "object", "additionalProperties": _table(objective, ("doc",))},
                "render": _table(render, ("view", "quantity")),
                "validation": {"type": "array", "items": _table(validation, ("expected", "tolerance", "source"))},
                "files": {"type": "object", "additionalProperties": TEXT},
            },
            ("name", "title", "summary", "simulation", "run", "render"),
        ),
        **(_names_of(contents) if contents else {}),
    }


def _names_of(contents: Contents) -> dict[str, Any]:
    """Return the schema of names of quantities, for files without ``[quantities]``."""
    diagnosed = [quantity.name for quantity in contents.quantities if quantity.kind == "diagnosed"]
    properties = {
        "objectives": {"additionalProperties": _named("quantity", diagnosed)},
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
    table = _table({"default": value, "bounds": PAIR, "unit": TEXT, "doc": TEXT})
    description = f"{parameter.doc} [{parameter.unit}]" if parameter.unit != "1" else parameter.doc
    known = {"default": parameter.default} if not _missing(parameter.default) else {}
    return {"description": description, "x-unit": parameter.unit, **known, "anyOf": [value, table]}


def _missing(value: Any) -> bool:
    return any(map(_missing, value)) if isinstance(value, tuple) else math.isnan(value)


def _configuration(scenario: Scenario) -> dict[str, Any]:
    """Return the schema of the arguments of the factory, by name and default; the factory checks their values."""
    factory = SIMULATIONS.resolve(scenario.simulation)
    needed = needed_arguments(factory)
    known: dict[str, Any] = {name: {} for name in needed}
    known |= {name: {} if value is None else {"default": value} for name, value in arguments_of(factory).items()}
    declared = schema_of_settings(getattr(factory, "settings", {}))["properties"]
    known = {name: declared.get(name, {}) | schema for name, schema in known.items()}
    return _table(known, tuple(needed)) | {"additionalProperties": takes_any(factory)}
