"""Runtimes of exported programs: writing StableHLO, and running StableHLO and ONNX."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from simkit.errors import UserError, one_line
from simkit.export.onnx.model import MISSING
from simkit.export.programs.functions import Program

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
        UserError: if the data is not such a program, or calls anything but libraries that come with JAX.
    """
    try:
        program = export.deserialize(bytearray(data))
        text = program.mlir_module()
    except Exception as error:  # flatbuffers and JAX raise many kinds on malformed bytes
        raise UserError(f"{where}: it is not a program of jax.export ({one_line(error)}); export it again") from None
    called = {first or second for first, second in _CALLS.findall(text)}
    if foreign := sorted(target for target in called if not _LIBRARIES.fullmatch(target)):
        raise UserError(
            f"{where}: it calls '{one_line(foreign[0], 60)}', which is no library of JAX; run it only if you trust it, "
            "with run_jax.py"
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
        UserError: if onnxruntime is not installed, or the model lacks an output.
        RefusedError: if onnxruntime refuses the model, or fails while it runs it.
    """
    inputs, outputs = names

    try:
        import onnxruntime
    except ImportError as error:
        raise UserError(MISSING) from error
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # protobuf and onnxruntime raise many kinds
        raise RefusedError(f"{where}: onnxruntime refuses it ({one_line(error)}); choose another target") from None
    known = {port.name for port in session.get_inputs()}
    if lacking := sorted({*outputs} - {port.name for port in session.get_outputs()}):
        raise UserError(f"{where}: it has no output '{lacking[0]}', which io.json names; export it again")

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        feeds = {name: array for name, array in zip(inputs, arrays, strict=True) if name in known}
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
