"""ONNX model of a finished graph, without the nodes that no output depends on."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from simkit.errors import package
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Node, Scope, Tensor

# The first operator set with BitCast.
OPSET = 26
IR_VERSION = 13
# Name of an axis of any size.
OPEN = "batch"


def onnx_package(name: str = "onnx") -> Any:
    """Return the package onnx, or onnxruntime."""
    return package(name, "an ONNX model", "simkit-physics[onnx]")


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output of a model.

    Attributes:
        name: of the tensor.
        shape: its size in each dimension.
        dtype: of its elements.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


def live_nodes(scope: Scope, needed: set[int]) -> list[Node]:
    """Return the nodes of a scope that its outputs depend on, and add the tensors that they read to ``needed``.

    Args:
        scope: the graph, or the body of a loop or branch.
        needed: identities of the tensors that are needed; bodies of nodes add the outer tensors that they read.
    """
    needed |= {id(tensor) for tensor in scope.outputs}
    kept = []
    for node in reversed(scope.nodes):
        if not any(id(tensor) in needed for tensor in node.outputs):
            continue
        kept.append(node)
        needed |= {id(tensor) for tensor in node.inputs if tensor is not None}
        for body in node.bodies.values():
            live_nodes(body, needed)
    return kept[::-1]


def model_of(graph: Graph, outputs: list[Tensor], names: list[str]) -> Any:
    """Return the model whose outputs are the given tensors.

    Args:
        graph: complete.
        outputs: in order.
        names: of the outputs.
    """
    onnx = onnx_package()
    top = graph.top
    for tensor, name in zip(outputs, names, strict=True):
        _named(graph, tensor, name)
    needed: set[int] = set()
    nodes = [_node(node) for node in live_nodes(top, needed)]
    constants = [tensor for tensor in graph.constants() if id(tensor) in needed]
    body = onnx.helper.make_graph(
        nodes,
        "program",
        [_info(tensor) for tensor in top.inputs],
        [_info(tensor) for tensor in top.outputs],
        [_initializer(tensor) for tensor in constants],
    )
    return onnx.helper.make_model(
        body, opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="simkit", ir_version=IR_VERSION
    )


def graphs_of(graph: Any) -> list[Any]:
    """Return a graph of a model, and the bodies of its loops and branches."""
    graphs = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                graphs += graphs_of(attribute.g)
    return graphs


def share_constants(models: Iterable[Any], name: str, least: int = 1024) -> bytes:
    """Move large constants of models to a file of external data that they share, and return its content.

    Equal constants are stored once, as the tables of a solver that every program of a simulation uses.

    Args:
        models: changed in place.
        name: of the file, as runtimes look for it.
        least: bytes of a constant that is moved.

    Source: ONNX, https://onnx.ai/onnx/repo-docs/ExternalData.html.
    """
    onnx = onnx_package()
    content, places = bytearray(), {}
    for model in models:
        for tensor in model.graph.initializer:
            if len(data := tensor.raw_data) >= least:
                if data not in places:
                    places[data] = len(content)
                    content += data
                onnx.external_data_helper.set_external_data(tensor, name, places[data], len(data))
                tensor.ClearField("raw_data")
    return bytes(content)


def count_of(model: Any) -> int:
    """Return the number of nodes of a model, those of all bodies included."""
    return sum(len(graph.node) for graph in graphs_of(model.graph))


def _named(graph: Graph, tensor: Tensor, name: str) -> None:
    """Name a tensor as an output of the given name: itself if a node computes it, and it has no name yet."""
    computed = any(tensor is output for node in graph.top.nodes for output in node.outputs)
    if not computed or tensor in graph.top.outputs:
        graph.origin = "outputs that are copies"
        tensor = graph.copied(tensor)
    tensor.name = name
    graph.top.outputs.append(tensor)


def _node(node: Node) -> Any:
    onnx = onnx_package()
    attributes: dict[str, Any] = {}
    for name, value in node.attributes.items():
        attributes[name] = _type(np.dtype(value)) if name == "to" else value
    for name, body in node.bodies.items():
        attributes[name] = onnx.helper.make_graph(
            [_node(inner) for inner in live_nodes(body, set())],
            name,
            [_info(tensor) for tensor in body.inputs],
            [_info(tensor) for tensor in body.outputs],
        )
    inputs = ["" if tensor is None else tensor.name for tensor in node.inputs]
    while inputs and not inputs[-1]:
        inputs.pop()
    made = onnx.helper.make_node(node.operator, inputs, [tensor.name for tensor in node.outputs], **attributes)
    made.doc_string = node.origin
    return made


def _info(tensor: Tensor) -> Any:
    shape = [OPEN if size == -1 else size for size in tensor.shape]
    return onnx_package().helper.make_tensor_value_info(tensor.name, _type(tensor.dtype), shape)


def _initializer(tensor: Tensor) -> Any:
    return onnx_package().numpy_helper.from_array(np.asarray(tensor.value, order="C"), tensor.name)


def _type(dtype: np.dtype) -> int:
    return onnx_package().helper.np_dtype_to_tensor_dtype(dtype)
