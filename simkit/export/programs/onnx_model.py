"""ONNX model of a program, its inputs and outputs named like its ports; models read from untrusted bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import simkit
from simkit.errors import UserError, one_line
from simkit.export.onnx.model import graphs_of, onnx_package
from simkit.export.onnx.runtime import convert
from simkit.export.programs.functions import Program
from simkit.export.programs.runtimes import SYMBOLIC, batched, shapes_of
from simkit.export.targets.operators import Operators, fit
from simkit.export.targets.replacements import TargetGraph


def to_onnx(
    program: Program, batch: "int | str | None", operators: Operators | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return a program as an ONNX model whose inputs and outputs have the names of its ports.

    Args:
        program: to export.
        batch: size of the leading axis, ``"symbolic"`` for any, or ``None``.
        operators: of the target; ``None`` allows all.

    Returns:
        The model, and its operators that the target lacks, see `simkit.export.targets.operators.fit`.

    Raises:
        UserError: if a primitive has no ONNX form.
    """
    graph = None if operators is None else TargetGraph(operators.names, operators.opset)
    members = batch == SYMBOLIC
    size = None if members else batch
    converted = convert(batched(program, size), *shapes_of(program, size), graph=graph, members=members)
    old = [port.name for port in (*converted.inputs, *converted.outputs)]
    new = [port.name for port in (*program.inputs, *program.outputs)]
    rename(converted.model, old, new)
    _shorten_origins(converted.model.graph)
    return converted.model, {} if operators is None else fit(converted.model, operators)


def loaded(data: bytes, where: str) -> Any:
    """Return a model from its bytes.

    Args:
        data: content of the file.
        where: path of the file, for errors.

    Raises:
        UserError: if the data is not a model, or the model reads other files or uses foreign operator sets.
    """
    try:
        model = onnx_package().load_model_from_string(data)
        if foreign := next(_foreign(model.graph), "it defines functions" if model.functions else ""):
            raise ValueError(foreign)
        return model
    except UserError:
        raise
    except Exception as error:  # protobuf raises many kinds on malformed bytes
        raise UserError(f"{where}: it is not a model that stands alone ({one_line(error)}); export it again") from None


def rename(model: Any, old: Sequence[str], new: Sequence[str]) -> None:
    """Rename inputs and outputs of a model, also where bodies of loops and branches use them.

    Args:
        model: changed in place.
        old: names in the model.
        new: replacements in the same order; no other tensor of the model may have one of them.
    """
    names = dict(zip(old, new, strict=True))
    for graph in graphs_of(model.graph):
        for node in graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
        for port in (*graph.input, *graph.output):
            port.name = names.get(port.name, port.name)


def _shorten_origins(graph: Any) -> None:
    """Remove the folders of this machine from the source lines in the nodes' doc strings."""
    package, here = f"{Path(simkit.__file__).parents[1]}/", f"{Path.cwd()}/"
    for each in graphs_of(graph):
        for node in each.node:
            origin = node.doc_string.removeprefix(package).removeprefix(here)
            node.doc_string = "/".join(origin.split("/")[-3:]) if origin.startswith("/") else origin


def _foreign(graph: Any) -> Any:
    """Yield a complaint for each tensor outside of the file, sparse tensor, and operator of a foreign set.

    Exports hold no sparse tensors, whose values could be outside of the file as well.
    """
    if graph.sparse_initializer:
        yield "it holds sparse tensors"
    for tensor in graph.initializer:
        if tensor.external_data or tensor.data_location:
            yield f"its tensor '{one_line(tensor.name, 60)}' lies in another file"
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            yield f"its operator '{one_line(node.op_type, 60)}' is of the foreign set '{one_line(node.domain, 60)}'"
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                yield "it holds sparse tensors"
            tensors = [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
            if any(tensor.external_data or tensor.data_location for tensor in tensors):
                yield f"its constant '{one_line(node.name, 60)}' lies in another file"
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _foreign(inner)
