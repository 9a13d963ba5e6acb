"""The JSON Schema of every verb, and what verbs print."""

import ast
import json
from pathlib import Path

import jsonschema
import pytest

from simkit.cli import schemas
from simkit.cli.main import VERBS
from simkit.cli.schemas import OF_VERBS, RESULTS, schema_of
from simkit.errors import CODES

# Verbs that print no result of their own: a schema, and the messages of a protocol.
WITHOUT = {"schema", "mcp"}


def valid(verb, text):
    """Return the kind of a printed result, which must fit the schema of its verb."""
    data, schema = json.loads(text), schema_of(verb)
    jsonschema.Draft202012Validator(schema).validate(data)
    return data["schema"].removeprefix("simkit.").removesuffix("/1")


def test_every_verb_has_a_schema_and_every_result_a_verb():
    assert set(OF_VERBS) == set(VERBS) - WITHOUT
    assert {kind for kinds in OF_VERBS.values() for kind in kinds} | {"error"} == set(RESULTS)
    schema = schema_of()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == set(RESULTS)
    assert set(schema["$defs"]["error"]["properties"]["error"]["properties"]["code"]["enum"]) == set(CODES)


def test_every_printed_result_names_a_kind_with_a_schema():
    found = set()
    for path in Path(schemas.__file__).parent.rglob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        printed = [node.args for node in nodes if getattr(node.func, "id", "") == "print_json"]
        # The schema of scenario files is itself no result.
        for value, *kind in printed:
            if not ast.unparse(value).startswith("schema_of("):
                assert len(kind) == 1, f"{path}:{value.lineno}"
                found.add(kind[0].value)
    assert found == set(RESULTS)


QUICK = {
    ("list",): "list",
    ("list", "--simulations"): "simulations",
    ("show", "bouncing_ball"): "scenario",
    ("show", "flow.domain"): "simulation",
    ("show", "channel_flow", "config.axes"): "part",
    ("check", "projectile"): "check",
    ("check", "projectile", "--set", "mas=3"): "check",
    ("cite", "projectile"): "citation",
    ("show", "nothing"): "error",
    ("run", "projectile", "--set", "mass=-1"): "error",
}


def test_results_fit_their_schema(simkit):
    for words, kind in QUICK.items():
        assert valid(words[0], simkit(*words, "--json").out) == kind, words


def test_a_result_with_another_key_does_not_fit(simkit):
    data = json.loads(simkit("show", "projectile", "--json").out)
    with pytest.raises(jsonschema.ValidationError):
        valid("show", json.dumps(data | {"more": 1}))
    with pytest.raises(jsonschema.ValidationError):
        valid("run", json.dumps(data))


def test_the_schema_is_printed_for_a_verb_and_an_unknown_verb_is_refused(simkit):
    assert json.loads(simkit("schema", "run").out)["$defs"].keys() == {"run", "error"}
    assert "did you mean 'run'?" in simkit("schema", "rum").line
