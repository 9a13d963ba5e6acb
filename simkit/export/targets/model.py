"""Model for a target: set to the target's version of ONNX, with a list of the operators that the target lacks."""

from typing import Any

import numpy as np

from simkit.errors import one_line
from simkit.export.onnx.model import onnx_package
from simkit.export.programs.nested_graphs import graphs_of
from simkit.export.targets.operators import Operators

# Source lines reported for one operator.
MOST_LINES = 8


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
    if "Identity" not in operators.names:
        _without_identities(model.graph, may_reshape="Reshape" in operators.names)
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
        _drop_unused(model.graph)
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
    given = {attribute.name for attribute in node.attribute}
    return schema.min_input <= len(node.input) <= schema.max_input and given <= set(schema.attributes)


def _without_identities(graph: Any, *, may_reshape: bool) -> None:
    """Remove the Identity nodes of outputs: producers write outputs directly, copies of inputs become a Reshape."""
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
    if not may_reshape:
        return
    for port in graph.output:
        for node in graph.node:
            if node.op_type == "Identity" and node.output[0] == port.name:
                onnx, name = onnx_package(), f"shape of {port.name}"
                sizes = [size.dim_value for size in port.type.tensor_type.shape.dim]
                graph.initializer.append(onnx.numpy_helper.from_array(np.array(sizes, np.int64), name))
                node.op_type = "Reshape"
                node.input.append(name)


def _drop_unused(graph: Any) -> None:
    """Remove the constants that no node reads."""
    read = {name for each in graphs_of(graph) for node in each.node for name in node.input}
    read |= {port.name for port in graph.output}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in read]:
        graph.initializer.remove(tensor)
