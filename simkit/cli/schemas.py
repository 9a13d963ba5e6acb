"""What each verb prints with ``--json``: a JSON Schema for each kind of result, made of declarations where they exist.

Keys that end in ``?`` may be missing. A result names its kind and version in ``schema``, such as ``simkit.run/1``.
"""

import dataclasses
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from simkit.cli.output import VERSION
from simkit.core.settings import word
from simkit.errors import CODES

type Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
# Numbers that do not exist are null.
NUMBER: Schema = {"type": ["number", "null"]}
NUMBERS: Schema = {"type": ["number", "null", "array"], "items": {"type": ["number", "null", "array"]}}


def words(*allowed: str) -> Schema:
    """Return the schema of one of some words."""
    return {"enum": list(allowed)}


def listed(each: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": each}


def named(each: Schema) -> Schema:
    """Return the schema of a table whose keys are names of a scenario or of the machine."""
    return {"type": "object", "additionalProperties": each}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def about(doc: str, schema: Schema = TEXT) -> Schema:
    """Return a schema with the meaning of the value."""
    return schema | {"description": doc}


def table(keys: Mapping[str, Schema]) -> Schema:
    """Return the schema of a table with these keys and no other; those that end in ``?`` may be missing."""
    properties = {key.rstrip("?"): schema for key, schema in keys.items()}
    required = [key for key in keys if not key.endswith("?")]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def record(target: str, **others: Schema | None) -> Schema:
    """Return the schema of a data class, of its annotations and the ``Attributes`` of its docstring.

    Args:
        target: ``"module:Class"``, imported here.
        **others: schemas of further keys, or in place of those of attributes; ``None`` leaves an attribute out.
    """
    module, _, name = target.partition(":")
    return _record(getattr(importlib.import_module(module), name), others)


def _record(made: type, others: Mapping[str, Schema | None]) -> Schema:
    block = inspect.getdoc(made) or ""
    docs = {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(block.partition("Attributes:")[2])}
    hints = typing.get_type_hints(made)
    keys = {
        field.name: about(docs.get(field.name, ""), _of_type(hints[field.name])) for field in dataclasses.fields(made)
    }
    keys |= {key: schema for key, schema in others.items() if schema is not None}
    return table({key: schema for key, schema in keys.items() if key not in others or others[key] is not None})


_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_PLAIN = {str: TEXT, Path: TEXT, int: INTEGER, bool: FLAG, float: NUMBER, Any: ANY, type(None): {"type": "null"}}


def _of_type(hint: Any) -> Schema:
    """Return the schema of values of a type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if dataclasses.is_dataclass(hint):
        return _record(hint, {})  # type: ignore[arg-type]
    if origin is Literal:
        return words(*arguments)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of_type(each) for each in arguments]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return named(_of_type(arguments[1]))
    if origin in (list, tuple):
        return listed(_of_type(arguments[0]))
    return ANY


def _mistake(**others: Schema) -> Schema:
    allowed = about("words, or the lowest and highest number; null if that is no list", maybe(listed(ANY)))
    action = words("remove", "rename", "replace")
    remedy = table({"action": action, "value": about("the new name or value; null for remove", ANY)})
    return table(
        {
            **others,
            "code": about("kind of error, see the reference of codes", words(*CODES)),
            "key": about("dotted path of the wrong key; empty if the error is about something else"),
            "allowed": allowed,
            "did_you_mean": about("the name or value that may have been meant, or null", ANY),
            "message": about("what, where, what is allowed, and the remedy, in one line"),
            "remedy": about("what removes the mistake, or null", maybe(remedy)),
        }
    )


STATUS = about("how the run ended, see the table of statuses")
FOLDER = about("run directory")
SCENARIO = about("name of the scenario")


def _scenario() -> Schema:
    parameter = record("simkit.core.parameter:Parameter", default=NUMBERS, bounds=listed(NUMBER))
    quantity = record("simkit.scenario.contents:Content")
    return table(
        {
            "name": TEXT,
            "title": TEXT,
            "summary": TEXT,
            "domain": TEXT,
            "simulation": about("name of its factory"),
            "tags": listed(TEXT),
            "references": listed(TEXT),
            "source": about("its file"),
            "config": about("values of [config]", named(ANY)),
            "parameters": named(parameter),
            "run": about("values of [run]", named(ANY)),
            "expressions": about("quantities that the file defines", named(ANY)),
            "objectives": named(record("simkit.scenario.sections:ObjectiveSettings")),
            "render": named(ANY),
            "validations": listed(named(ANY)),
            "quantities?": about("with --quantities: observed arrays and diagnostics", listed(quantity)),
            "arguments?": about("with --quantities: further arguments of the factory, by default", named(ANY)),
        }
    )


def _simulation() -> Schema:
    setting = {"key": TEXT, "kind": about("allowed values"), "doc": TEXT, "default": ANY, "needed": FLAG}
    users = about("scenarios that use it", listed(TEXT))
    return table({"simulation": TEXT, "needed": listed(TEXT), "settings": listed(table(setting)), "scenarios": users})


def _sweep() -> Schema:
    values = about("values by name, in the shape of the axes", named(NUMBERS))
    return table(
        {
            "scenario": SCENARIO,
            "members": INTEGER,
            "axes": about("values along each axis; the last is the seed", named({"type": "array"})),
            "points": about("values of parameters that are no axis", named({"type": "array"})),
            "objectives": values,
            "objectives_left_out": about("reason by name", named(TEXT)),
            "final": about("diagnostics at the end, null for failed members", named(NUMBERS)),
            "status": about("status of every member", {"type": ["array", "string"]}),
            "failed": about("a line for each failed member", listed(TEXT)),
            "directory": FOLDER,
            "result": about("data set of the results"),
            "chart": maybe(about("chart of the results")),
        }
    )


def _large_sweep() -> Schema:
    return table(
        {
            "scenario": SCENARIO,
            "members": INTEGER,
            "failures": INTEGER,
            "statuses": about("number of members by status", named(INTEGER)),
            "quantiles": about("of the final diagnostics", named(named(NUMBER))),
            "objectives_left_out": named(TEXT),
            "failed": listed(TEXT),
            "directory": FOLDER,
            "chart": maybe(TEXT),
        }
    )


def _derivative(**others: Schema) -> Schema:
    return table(
        {
            "scenario": SCENARIO,
            "objective": TEXT,
            "value": about("the objective", NUMBER),
            "precision": words("float32", "float64"),
            "status": STATUS,
            "note": about("what limits its meaning; empty for nothing"),
            **others,
        }
    )


def _first() -> Schema:
    row = {
        "derivative": NUMBERS,
        "central_difference?": about("with --check", NUMBERS),
        "its_error?": about("estimated error of the difference", NUMBER),
        "relative_difference?": NUMBER,
        "verdict?": about("whether they agree, in a word"),
        "standard_error?": about("with --seeds or --method fluctuation", NUMBERS),
    }
    return _derivative(
        wrt=about("by parameter", named(table(row))),
        **{
            "memory?": about("how it fits in the memory limit"),
            "seeds?": INTEGER,
            "standard_error?": about("of the mean over seeds or samples", NUMBER),
            "directory?": FOLDER,
        },
    )


def _second() -> Schema:
    return _derivative(
        entries=about("names of rows and columns", listed(TEXT)),
        derivative=listed(NUMBER),
        hessian=listed(listed(NUMBER)),
        **{"central_difference?": listed(listed(NUMBER)), "verdict?": TEXT},
    )


def _optimization() -> Schema:
    return table(
        {
            "scenario": SCENARIO,
            "objective": TEXT,
            "status": STATUS,
            "message": about("the status in words"),
            "iterations": INTEGER,
            "loss": about("objective of each iteration", listed(NUMBER)),
            "best_loss": NUMBER,
            "best": about("parameters of the best", named(NUMBERS)),
            "begun": about("parameters at the start", named(NUMBERS)),
            "at_bounds": about("a line for each parameter that ended at a bound", listed(TEXT)),
            "directory": FOLDER,
            "pictures": named(TEXT),
        }
    )


def _program() -> Schema:
    difference = record("simkit.export.programs.verification:Difference", passed=FLAG)
    runtime = record(
        "simkit.export.programs.verification:RuntimeReport",
        passed=FLAG,
        largest_error=NUMBER,
        differences=listed(difference),
    )
    return record(
        "simkit.export.programs.verification:Report",
        outside=None,
        runtimes=listed(runtime),
        passed=FLAG,
        misses=about("a line for each output that differs", listed(TEXT)),
        operators_outside=about("operators that the target lacks", named(ANY)),
    )


LISTED = table({"name": TEXT, "domain": TEXT, "title": TEXT, "summary": TEXT, "tags": listed(TEXT)})
PROVIDED = table({"simulation": TEXT, "provider": TEXT, "factory": TEXT, "scenarios": listed(TEXT)})

RESULTS: dict[str, Callable[[], Schema]] = {
    "error": lambda: table(
        {"error": _mistake(), "exit_code": about("2, 3, 130 or 143, as that of the command", INTEGER)}
    ),
    "list": lambda: table({"scenarios": listed(LISTED), "problems": about("files that cannot be read", listed(TEXT))}),
    "simulations": lambda: table({"simulations": listed(PROVIDED)}),
    "scenario": _scenario,
    "simulation": _simulation,
    "part": lambda: table({"name": TEXT, "part": about("dotted path"), "value": ANY}),
    "new": lambda: table({"file": TEXT, "simulation": TEXT}),
    "check": lambda: table({"file": TEXT, "mistakes": listed(_mistake(part=about("table of the file")))}),
    "run": lambda: table(
        {
            "scenario": SCENARIO,
            "status": STATUS,
            "message": about("the status in words, with what tells of it"),
            "diagnostics": about("values at the end", named(NUMBER)),
            "directory": FOLDER,
            "picture": maybe(about("film or picture")),
        }
    ),
    "sweep": _sweep,
    "large_sweep": _large_sweep,
    "forecast": lambda: record("simkit.jobs.sweeps:Forecast", scenario=SCENARIO, directory=FOLDER),
    "derivative": _first,
    "second_derivative": _second,
    "optimization": _optimization,
    "starts": lambda: table(
        {
            "scenario": SCENARIO,
            "objective": TEXT,
            "best_value": NUMBER,
            "best": named(NUMBERS),
            "at_bounds": listed(TEXT),
            "starts": about("the best first", listed(named(ANY))),
            "directory": FOLDER,
        }
    ),
    "status": lambda: record("simkit.jobs.stored_jobs:Progress", resuming=maybe(about("command that resumes it"))),
    "picture": lambda: table({"picture": TEXT, "frames?": INTEGER}),
    "player": lambda: table({"player": TEXT, "frames": INTEGER, "of": INTEGER, "bytes": INTEGER}),
    "page_of_report": lambda: table({"report": about("the page")}),
    "validation": lambda: table({"checks": listed(record("simkit.jobs.validation:Check", passed=FLAG))}),
    "gallery": lambda: table(
        {
            "scenarios": listed(
                table({"scenario": TEXT, "failed": FLAG, "message": TEXT, "animation": maybe(TEXT), "bytes": INTEGER})
            ),
            "index": TEXT,
        }
    ),
    "installation": lambda: table(
        {
            "versions": named(TEXT),
            "import_seconds": named(NUMBER),
            "devices": listed(TEXT),
            "problems": listed(TEXT),
            **dict.fromkeys(("python", "precision", "scenarios"), TEXT),
            **dict.fromkeys(("accelerator_plugins", "free_memory", "compilation_cache"), TEXT),
        }
    ),
    "program": _program,
    "page": lambda: record("simkit.export.page.exporting:PageReport", passed=FLAG),
    "data": lambda: table({"file": TEXT, "to": TEXT}),
    "frames": lambda: record("simkit.export.data_files:ExportedFrames"),
    "citation": lambda: table(
        {
            "bibtex": about("all entries"),
            "keys": about("of the entries, that of simkit first", listed(TEXT)),
            "others": about("references that are no entry", listed(TEXT)),
        }
    ),
}
# What verbs print; those of the last two lines are computed in the same way as the first jobs.
OF_STORED = ("run", "sweep", "large_sweep", "derivative", "optimization", "starts")
OF_VERBS = {
    "list": ("list", "simulations"),
    "show": ("scenario", "simulation", "part"),
    "new": ("new",),
    "check": ("check",),
    "run": ("run",),
    "sweep": ("sweep", "large_sweep", "forecast"),
    "grad": ("derivative", "second_derivative"),
    "optimize": ("optimization", "starts"),
    "launch": ("run", "derivative"),
    "resume": OF_STORED,
    "merge": ("sweep", "large_sweep"),
    "status": ("status",),
    "render": ("picture", "player"),
    "report": ("page_of_report",),
    "validate": ("validation",),
    "export": ("program", "page", "data", "frames"),
    "gallery": ("gallery",),
    "doctor": ("installation",),
    "cite": ("citation",),
}
# Keys of the results of work, besides their own.
_OF_WORK = {
    "seconds": about("by phase: compiled, ran and drew", named(NUMBER)),
    "devices": about("on which it ran", listed(TEXT)),
    "report": about("with --report: the page"),
}


def schema_of(verb: str | None = None) -> Schema:
    """Return the JSON Schema of what a verb prints with ``--json``, an error included.

    Args:
        verb: its name; ``None`` for all verbs.

    Raises:
        UserError: if no verb of that name prints JSON of simkit.
    """
    if verb is not None:
        word("that prints JSON with a schema", tuple(OF_VERBS)).check(verb, "verb")
    kinds = dict.fromkeys(RESULTS) if verb is None else dict.fromkeys((*OF_VERBS[verb], "error"))
    made = {kind: _with_name(kind, RESULTS[kind]()) for kind in kinds}
    title = "what simkit prints with --json" if verb is None else f"what simkit {verb} --json prints"
    choices = {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds]}
    return {"$schema": DRAFT, "title": title, "description": f"version {VERSION}", **choices, "$defs": made}


def _with_name(kind: str, schema: Schema) -> Schema:
    """Return the schema of a result with its kind, version and, of work, the seconds that it took."""
    name = {"schema": about("kind and version of this result", {"const": f"simkit.{kind}/{VERSION}"})}
    properties = name | ({} if kind == "error" else _OF_WORK) | schema["properties"]
    return {
        "title": kind.replace("_", " "),
        **schema,
        "properties": properties,
        "required": ["schema", *schema["required"]],
    }
