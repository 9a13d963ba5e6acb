"""Model for a target: set to the target's version of ONNX, with a list of the operators that the target lacks."""

from typing import Any

import numpy as np

from simkit.errors import one_line
from simkit.export.onnx.model import onnx_package
from simkit.export.programs.nested_graphs import graphs_of
from simkit.export.targets.operators import Operators
from simkit.export.targets.registry import sufficient

# Source lines reported for one operator.
MOST_LINES = 8


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
        copying = next((name for name in ("Reshape", "Cast", "Transpose") if name in operators.names), "")
        for graph in graphs_of(model.graph):
            _without_identities(graph, copying)
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
    given = {attribute.name for attribute in node.attribute}
    return schema.min_input <= len(node.input) <= schema.max_input and given <= set(schema.attributes)


def _without_identities(graph: Any, copying: str) -> None:
    """Remove the Identity nodes of outputs: producers write outputs directly, and copies of inputs are made otherwise.

    Args:
        graph: of the model, or the body of a loop or branch; changed in place.
        copying: operator that makes the copies: Reshape to the same shape, Cast to the same type, or Transpose without
            a change of order; ``""`` keeps them.
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
    for port in graph.output:
        for node in graph.node:
            if copying and node.op_type == "Identity" and node.output[0] == port.name:
                _copy(graph, node, port, copying)


def _copy(graph: Any, node: Any, port: Any, operator: str) -> None:
    """Replace the Identity node of an output by another operator that changes nothing."""
    onnx, name = onnx_package(), f"shape of {port.name}"
    kind = port.type.tensor_type
    node.op_type = operator
    if operator == "Reshape":
        # A size of 0 copies that of the input: so does the batch, whose size is open.
        sizes = [size.dim_value for size in kind.shape.dim]
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(sizes, np.int64), name))
        node.input.append(name)
    elif operator == "Cast":
        node.attribute.append(onnx.helper.make_attribute("to", kind.elem_type))
    elif kind.shape.dim:
        node.attribute.append(onnx.helper.make_attribute("perm", list(range(len(kind.shape.dim)))))


def _drop_unused(graph: Any) -> None:
    """Remove the constants that no node reads."""
    read = {name for each in graphs_of(graph) for node in each.node for name in node.input}
    read |= {port.name for port in graph.output}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in read]:
        graph.initializer.remove(tensor)
