"""Operators of a target, read from a TOML file, and a model's operators that it lacks."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from simkit.core.settings import Setting, read, several, whole
from simkit.errors import UserError, nearest, one_line
from simkit.export.onnx.model import OPSET, graphs_of, onnx_package
from simkit.export.targets.replacements import sufficient
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
    try:
        text = read_bytes(path).decode()
    except (DamagedFileError, UnicodeDecodeError) as error:
        raise UserError(f"the list of operators cannot be read: {error}; give the path of a TOML file") from None
    onnx = onnx_package()

    def operator(value: Any, where: str) -> str:
        if not isinstance(value, str) or value not in defined:
            near = nearest(str(value), defined)
            raise UserError(f"{where}: '{value!s:.60}' is no operator of ONNX{near if 'did you mean' in near else ''}")
        return value

    defined = [schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""]
    names = several(Setting("a name", "of ONNX", operator), "operators of the target")
    keys = {"opset": whole("version of ONNX", OPSET, OLDEST_OPSET, OPSET), "operators": names}
    try:
        table = read(parse_toml(text, path.name), keys)
        for name in table["operators"]:
            if not onnx.defs.has(name, table["opset"]):
                raise UserError(f"ONNX {table['opset']} has no {name}; raise opset, or leave it out")
        if not table["operators"]:
            raise UserError("operators is empty; write those of the target, such as ['Add', 'MatMul']")
    except UserError as error:
        raise error.within("", f"{path.name}: ") from None
    return Operators(frozenset(table["operators"]), table["opset"])


def fit(model: Any, operators: Operators) -> dict[str, Any]:
    """Set a model to the target's version of ONNX, and return its operators that the target lacks.

    Args:
        model: changed in place.
        operators: of the target.

    Returns:
        ``{operator: {"count": n, "lines": [...], "with": name}}``, with the source lines that they come from, and the
        name of another operator with which the target could replace it, or ``""``; an operator whose arguments need a
        newer version of ONNX counts as missing.
    """
    onnx = onnx_package()
    if "Identity" not in operators.names:
        for graph in graphs_of(model.graph):
            _without_identities(graph, "Reshape" in operators.names)
    outside: dict[str, Any] = {}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for graph in graphs_of(model.graph):
        for node in graph.node:
            if node.op_type in operators.names and _in_version(node, operators.opset, constants):
                continue
            uses = outside.setdefault(node.op_type, {"count": 0, "lines": [], "with": ""})
            uses["count"] += 1
            line = node.doc_string or "the program"
            if line not in uses["lines"] and len(uses["lines"]) < MOST_LINES:
                uses["lines"].append(line)
    for operator, other in sufficient(outside, operators.names).items():
        outside[operator]["with"] = other
    if not outside:
        _drop_unused(model.graph)
        before = model.opset_import[0].version
        model.opset_import[0].version = operators.opset
        model.ir_version = min(model.ir_version, onnx.helper.find_min_ir_version_for(model.opset_import))
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as error:  # the checker and the shape inference raise many kinds
            model.opset_import[0].version = before
            outside[f"form of an operator in ONNX {operators.opset}"] = {
                "count": 1,
                "lines": [one_line(error)],
                "with": "",
            }
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


def _without_identities(graph: Any, reshapes: bool) -> None:
    """Remove the Identity nodes of outputs: producers write outputs directly, copies of inputs are their reshapes.

    Args:
        graph: of the model, or the body of a loop or branch; changed in place.
        reshapes: whether the target has Reshape; if not, copies of inputs stay Identity nodes.
    """
    outputs = {port.name for port in graph.output}
    producers = {name: node for node in graph.node for name in node.output}
    removed = []
    for node in graph.node:
        source = node.input[0] if node.op_type == "Identity" else ""
        if source not in producers or source in outputs or node.output[0] not in outputs:
            continue
        removed.append(node)
        producer, name = producers.pop(source), node.output[0]
        producer.output[:] = [name if output == source else output for output in producer.output]
        outputs.add(source)
        for each in graphs_of(graph):
            for reader in each.node:
                reader.input[:] = [name if read == source else read for read in reader.input]
            for port in each.output:
                port.name = name if port.name == source else port.name
    for node in removed:
        graph.node.remove(node)
    copies = {node.output[0]: node for node in graph.node if node.op_type == "Identity"}
    for port in graph.output:
        if reshapes and port.name in copies:
            # A size of 0 copies that of the input: so does the batch, whose size is open.
            sizes = [size.dim_value for size in port.type.tensor_type.shape.dim]
            shape = onnx_package().numpy_helper.from_array(np.array(sizes, np.int64), f"shape of {port.name}")
            graph.initializer.append(shape)
            copies[port.name].op_type = "Reshape"
            copies[port.name].input.append(shape.name)


def _drop_unused(graph: Any) -> None:
    """Remove the constants that no node reads."""
    read = {name for each in graphs_of(graph) for node in each.node for name in node.input}
    read |= {port.name for port in graph.output}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in read]:
        graph.initializer.remove(tensor)
