"""Operators of a target, read from a TOML file, and a model's operators that it lacks."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.settings import read, several, whole, word
from simkit.errors import UserError, one_line
from simkit.export.onnx.model import OPSET, graphs_of, onnx_package
from simkit.scenario.checks import parse_toml
from simkit.storage.files import DamagedFileError, read_bytes

OLDEST_OPSET = 13
# Source lines reported for one operator.
MOST_LINES = 8


@dataclasses.dataclass(frozen=True)
class Operators:
    """Operators of a target.

    Attributes:
        names: of the ONNX operators.
        opset: version of ONNX's operator set, which defines their meanings and arguments.
    """

    names: frozenset[str]
    opset: int


def read_operators(path: Path) -> Operators:
    """Read a list of operators: a TOML file with ``opset = 17`` and ``operators = ["Add", "MatMul"]``.

    Args:
        path: of the file.

    Raises:
        UserError: if it cannot be read, has unknown keys, or names an operator that this version of ONNX lacks.
    """
    onnx = onnx_package()
    version = whole("version of ONNX", OPSET, OLDEST_OPSET, OPSET)
    try:
        content = parse_toml(read_bytes(path).decode(), path.name)
        opset = version.check(content.get("opset", OPSET), "opset")
        schemas = [schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""]
        defined = word("operator of ONNX", tuple(name for name in schemas if onnx.defs.has(name, opset)))
        table = read(content, {"opset": version, "operators": several(defined, "operators of the target")})
    except UserError as error:
        raise error.within("", f"{path.name}: ") from None
    except (DamagedFileError, UnicodeDecodeError) as error:
        raise UserError(f"the list of operators cannot be read: {error}; give the path of a TOML file") from None
    return Operators(frozenset(table["operators"]), table["opset"])


def fit(model: Any, operators: Operators) -> dict[str, Any]:
    """Set a model to the target's version of ONNX, and return its operators that the target lacks.

    Args:
        model: changed in place.
        operators: of the target.

    Returns:
        ``{operator: {"count": n, "lines": [...]}}``, with the source lines that they come from; an operator whose
        arguments need a newer version of ONNX counts as missing.
    """
    onnx = onnx_package()
    outside: dict[str, Any] = {}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for graph in graphs_of(model.graph):
        for node in graph.node:
            if node.op_type in operators.names and _in_version(node, operators.opset, constants):
                continue
            uses = outside.setdefault(node.op_type, {"count": 0, "lines": []})
            uses["count"] += 1
            line = node.doc_string or "the program"
            if line not in uses["lines"] and len(uses["lines"]) < MOST_LINES:
                uses["lines"].append(line)
    if not outside:
        before = model.opset_import[0].version
        model.opset_import[0].version = operators.opset
        model.ir_version = min(model.ir_version, onnx.helper.find_min_ir_version_for(model.opset_import))
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:  # the checker and the shape inference raise many kinds
            model.opset_import[0].version = before
            outside[f"form of an operator in ONNX {operators.opset}"] = {"count": 1, "lines": [one_line(error)]}
    return dict(sorted(outside.items()))


def _in_version(node: Any, opset: int, constants: dict[str, Any]) -> bool:
    """Convert a node's arguments to those of a version, and return whether the version defines them."""
    onnx = onnx_package()
    if not onnx.defs.has(node.op_type, opset):
        return False
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    if len(node.input) > schema.max_input and "axes" in schema.attributes and node.input[1] in constants:
        # Older versions of reductions take their axes as an attribute.
        axes = onnx.numpy_helper.to_array(constants[node.input[1]])
        del node.input[1]
        node.attribute.append(onnx.helper.make_attribute("axes", [int(axis) for axis in np.atleast_1d(axes)]))
    attributes = {attribute.name for attribute in node.attribute}
    return schema.min_input <= len(node.input) <= schema.max_input and attributes <= set(schema.attributes)
