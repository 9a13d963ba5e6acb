"""Runtimes of exported programs: writing and running StableHLO and ONNX."""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

import simkit
from simkit.errors import UserError, one_line
from simkit.export.onnx.model import graphs_of, onnx_package
from simkit.export.onnx.runtime import convert, session_of
from simkit.export.programs.functions import Program
from simkit.export.targets.operators import Operators, fit
from simkit.export.targets.replacements import TargetGraph
from simkit.storage.files import DamagedFileError

PLATFORMS = ("cpu", "cuda", "tpu")
SYMBOLIC = "symbolic"
JAXEXPORT, MLIR, ONNX = "model.jaxexport", "model.mlir", "model.onnx"
# Runtime of each file, as named in reports.
RUNTIMES = {ONNX: "onnxruntime", JAXEXPORT: "jax.export"}
type Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
# Libraries that a StableHLO program may call: linear algebra and Fourier transforms that come with JAX, but no
# callbacks to Python and no calls of an address.
_CALLS = re.compile(r"custom_call\s+@([\w.]+)|call_target_name\s*=\s*\"([^\"]*)\"")
_LIBRARIES = re.compile(
    r"lapack_\w+|cusolver_\w+|cublas_\w+|cu_\w+|hipsolver_\w+|hipblas_\w+|hip_\w+|pocketfft|(dynamic_)?ducc_fft"
    r"|Eigh|Qr|Householder\w*|ProductOfElementaryHouseholderReflectors|LuDecomposition|Cholesky|TopK|ApproxTopK"
    r"|Sharding|SPMD\w+|annotate_device_placement|xla\.sdy\.\w+|mhlo\.\w+|stablehlo\.\w+|chlo\.\w+|shape_assertion|erf_inv"
)


class RefusedError(UserError):
    """A runtime refuses a valid program, or fails while it runs the program."""


def batched(program: Program, batch: "int | str | None") -> Callable[..., tuple[Any, ...]]:
    """Return a program's function, with a leading batch axis on every array unless ``batch`` is ``None``.

    Args:
        program: to batch.
        batch: size of the batch, ``"symbolic"`` for any, or ``None``.
    """
    return program.function if batch is None else jax.vmap(program.function)


def shapes_of(program: Program, batch: "int | str | None") -> list[Any]:
    """Return shapes and types of a program's inputs, as ``jax.ShapeDtypeStruct``.

    Args:
        program: with the inputs.
        batch: as for `batched`.
    """
    axes: tuple[Any, ...] = () if batch is None else (batch,)
    if batch == SYMBOLIC:
        axes = tuple(export.symbolic_shape("batch"))
    return [jax.ShapeDtypeStruct((*axes, *port.shape), np.dtype(port.dtype)) for port in program.inputs]


def to_stablehlo(program: Program, batch: "int | str | None", name: str) -> dict[str, bytes]:
    """Return the files of a StableHLO program for CPU, CUDA and TPU.

    Args:
        program: to export; the form ``"final"`` is written with its vector-Jacobian product.
        batch: as for `batched`.
        name: of the scenario, for errors.

    Raises:
        UserError: if the program calls back to the host.
    """
    function = jax.jit(batched(program, batch))
    try:
        exported = export.export(function, platforms=PLATFORMS)(*shapes_of(program, batch))
        data = exported.serialize(vjp_order=1 if program.form == "final" else 0)
    except NotImplementedError as error:
        reason = one_line(error)
        raise UserError(f"{name} calls the host and so cannot be exported ({reason}); choose another engine") from error
    return {JAXEXPORT: bytes(data), MLIR: exported.mlir_module().encode()}


def run_stablehlo(data: bytes, where: str) -> Run:
    """Return a reloaded StableHLO program as a function of arrays.

    Args:
        data: content of ``model.jaxexport``.
        where: path of the file, for errors.

    Raises:
        DamagedFileError: if it is not such a program, or calls anything but libraries that come with JAX.
    """
    try:
        program = export.deserialize(bytearray(data))
        text = program.mlir_module()
    except Exception as error:  # flatbuffers and JAX raise many kinds on malformed bytes
        raise DamagedFileError(f"it is not a program of jax.export ({one_line(error)})") from None
    called = {first or second for first, second in _CALLS.findall(text)}
    if foreign := sorted(target for target in called if not _LIBRARIES.fullmatch(target)):
        raise DamagedFileError(
            f"it calls '{one_line(foreign[0], 60)}', which is no library of JAX (run it only if you trust it, with "
            "run_jax.py)"
        )

    call = jax.jit(program.call)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            return [np.asarray(array) for array in call(*arrays)]
        except ValueError as error:
            raise UserError(f"{where}: it does not take the inputs of io.json ({one_line(error)})") from None

    return run


def run_onnx(data: bytes, names: Sequence[Sequence[str]], where: str) -> Run:
    """Return an ONNX model as a function of arrays, in onnxruntime on one thread.

    Args:
        data: content of ``model.onnx``.
        names: of the inputs, in order, and of the outputs.
        where: path of the file, for errors.

    Raises:
        UserError: if onnxruntime is not installed.
        DamagedFileError: if the model lacks an output.
        RefusedError: if onnxruntime refuses the model, or fails while it runs it.
    """
    inputs, outputs = names
    onnx_package("onnxruntime")
    try:
        session = session_of(data)
    except Exception as error:  # protobuf and onnxruntime raise many kinds
        raise RefusedError(f"{where}: onnxruntime refuses it ({one_line(error)}); choose another target") from None
    used = {port.name for port in session.get_inputs()}
    if lacking := sorted({*outputs} - {port.name for port in session.get_outputs()}):
        raise DamagedFileError(f"it has no output '{lacking[0]}', which io.json names")

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        feeds = {name: array for name, array in zip(inputs, arrays, strict=True) if name in used}
        try:
            return [np.asarray(array) for array in session.run(list(outputs), feeds)]
        except Exception as error:
            raise RefusedError(f"{where}: onnxruntime does not run it ({one_line(error)})") from None

    return run


def timed[T](function: Callable[[], T]) -> tuple[T, float]:
    """Return a function's result, and the processor time of the call in seconds."""
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


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
    names = [[port.name for port in ports] for ports in (program.inputs, program.outputs)]
    shapes = shapes_of(program, size)
    converted = convert(batched(program, size), *shapes, graph=graph, members=members, names=names)
    _shorten_origins(converted.model.graph)
    return converted.model, {} if operators is None else fit(converted.model, operators)


def loaded(data: bytes) -> Any:
    """Return a model from its bytes.

    Args:
        data: content of the file.

    Raises:
        DamagedFileError: if the data is not a model, or the model reads other files or uses foreign operator sets.
    """
    onnx, model = onnx_package(), None
    try:
        model = onnx.load_model_from_string(data)
        foreign = next(_foreign(model.graph), "it defines functions" if model.functions else "")
    except Exception as error:  # protobuf raises many kinds on malformed bytes
        foreign = one_line(error)
    if foreign:
        raise DamagedFileError(f"it is not a model that stands alone ({foreign})")
    return model


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
