"""The graphs of an ONNX model: its own, and the bodies of its loops and branches."""

from typing import Any


def graphs_of(graph: Any) -> list[Any]:
    """Return a graph of a model, and the bodies of its loops and branches."""
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += graphs_of(attribute.g)
    return found


def count_of(model: Any) -> int:
    """Return the number of nodes of a model, those of all bodies included."""
    return sum(len(graph.node) for graph in graphs_of(model.graph))
