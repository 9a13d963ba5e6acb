"""`onnxjit`: a drop-in for ``jax.jit`` that converts a function to ONNX and runs it in onnxruntime."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.settings import whole
from simkit.errors import one_line
from simkit.export.onnx import tracing
from simkit.export.onnx.control import each_member
from simkit.export.onnx.convert import joined, parts_of, run, split
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.model import Port, count_of, model_of, onnx_package
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.tracing import Aval
from simkit.interop import check_fit
from simkit.storage.files import write_bytes

# Smallest result, in bytes, whose memory is shared with JAX instead of copied.
LEAST_SHARED = 1 << 18


@dataclasses.dataclass(frozen=True)
class Converted:
    """A function as an ONNX model.

    Complex arrays have a last axis of size 2, real and imaginary part; random keys are uint32 ``(..., words)``, and
    numbers of bfloat16 are given and returned as float32.

    Attributes:
        model: the ``onnx.ModelProto``.
        inputs: name, shape and dtype of each input, one per array of the arguments.
        outputs: name, shape and dtype of each output, one per array of the result.
        nodes: number of operators, those in the bodies of loops and branches included.
        avals: shapes and types of the arguments' arrays in JAX.
        results: shapes and types of the result's arrays in JAX.
        structure: tree structure of the result.
    """

    model: Any
    inputs: list[Port]
    outputs: list[Port]
    nodes: int
    avals: list[Aval]
    results: list[Aval]
    structure: Any

    def save(self, path: Path | str) -> Path:
        """Write the model.

        Args:
            path: of the file, ``model.onnx`` for instance.

        Raises:
            UserError: if it cannot be written.
        """
        write_bytes(Path(path), self.model.SerializeToString())
        return Path(path)


def convert(
    function: Callable[..., Any],
    *arguments: Any,
    graph: Graph | None = None,
    members: bool = False,
    names: Sequence[Sequence[str]] = ((), ()),
    skipped: int = 0,
) -> Converted:
    """Return a pure function of arrays as an ONNX model.

    Args:
        function: of trees of arrays, returning one; random keys may be among them.
        *arguments: examples, or ``jax.ShapeDtypeStruct``; their shapes and dtypes are those of the model.
        graph: an empty graph for a target with fewer operators (`simkit.export.targets.replacements`); ``None`` for
            ONNX.
        members: whether the model takes a batch of any size: every array has one leading axis more than in the
            function, of size -1 in `Converted`, and the members are computed one after the other.
        names: of all inputs, and of all outputs; empty for the paths of the arrays in their trees.
        skipped: number of the first steps of the inputs' paths that are left out of their names.

    Raises:
        UserError: if a primitive of the function has no ONNX form, with the source line that it came from; if onnx is
            not installed. What `jax.jit` refuses, such as a masked array, raises the same error as there.
    """
    graph = graph or Graph()
    named = jax.tree_util.tree_flatten_with_path(tuple(arguments))[0]
    program, structure = tracing.trace(function, *arguments)
    inputs: list[Port] = []
    for (path, _), aval in zip(named, program.input_avals, strict=True):
        count, dtype = parts_of(aval)
        shape = aval.shape if count == 1 and aval.key is None else (*aval.shape, count)
        name = names[0][len(inputs)] if names[0] else _name("in", path[skipped:], inputs)
        inputs.append(Port(name, (-1, *shape) if members else shape, dtype))
    tensors_in = [graph.input(port.shape, port.dtype, port.name) for port in inputs]

    def computed(tensors_in: Sequence[Tensor]) -> list[Tensor]:
        values = [split(graph, tensor, aval) for tensor, aval in zip(tensors_in, program.input_avals, strict=True)]
        return [joined(graph, value) for value in run(graph, program, values)]

    tensors = each_member(graph, tensors_in, computed) if members else computed(tensors_in)
    leaves = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(structure, list(range(len(tensors)))))[0]
    outputs: list[Port] = []
    for (path, _), tensor in zip(leaves, tensors, strict=True):
        name = names[1][len(outputs)] if names[1] else _name("out", path, outputs)
        outputs.append(Port(name, tensor.shape, tensor.dtype))
    model = model_of(graph, tensors, [port.name for port in outputs])
    return Converted(model, inputs, outputs, count_of(model), program.input_avals, program.output_avals, structure)


def _name(prefix: str, path: Sequence[Any], others: list[Port]) -> str:
    """Return a unique name of an array, made of its path among the arguments or results."""
    words = "".join(c if c.isascii() and c.isalnum() else "_" for c in jax.tree_util.keystr(tuple(path))).strip("_")
    name = f"{prefix}_{words}" if words else prefix
    return name if name not in {port.name for port in others} else f"{name}_{len(others)}"


def session_of(data: bytes, threads: int = 1) -> Any:
    """Return the ``onnxruntime.InferenceSession`` of a model.

    Args:
        data: the serialized model.
        threads: largest number of threads of one operator.

    Raises:
        UserError: if onnxruntime is not installed.
    """
    onnxruntime = onnx_package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


class Session:
    """A converted function that runs in onnxruntime."""

    def __init__(self, converted: Converted, threads: int = 1) -> None:
        """Load the model.

        Args:
            converted: the function.
            threads: largest number of threads of one operator.

        Raises:
            UserError: if onnxruntime is not installed.
        """
        self.converted = converted
        self.session = session_of(converted.model.SerializeToString(), threads)
        # onnxruntime drops inputs that no output depends on.
        fed = {port.name for port in self.session.get_inputs()}
        numbered = enumerate(zip(converted.inputs, converted.avals, strict=True))
        self._fed = [(index, port.name, aval, port.dtype) for index, (port, aval) in numbered if port.name in fed]
        self._names = [port.name for port in converted.outputs]
        self._to_jax = _result_converter(converted.results)

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the results of one run as JAX arrays.

        Args:
            leaves: the arguments' arrays, in the order of the model's inputs.
        """
        feeds = {name: _encoded(leaves[index], aval, dtype, name) for index, name, aval, dtype in self._fed}
        return self._to_jax([np.asarray(array) for array in self.session.run(self._names, feeds)])


class OnnxJitted:
    """A function that runs in onnxruntime, from `onnxjit`; called like the original one."""

    def __init__(self, function: Callable[..., Any], static_argnums: Any, threads: int) -> None:
        """Store the function; it is traced at the first call."""
        jax.jit(function, static_argnums=static_argnums)  # refuses what is no function, and indices that it lacks
        functools.update_wrapper(self, function)
        self._function = function
        self._static = np.ravel(list(static_argnums) if isinstance(static_argnums, Iterable) else static_argnums)
        self._count = _positional(function)
        self._threads = whole("threads of an operator", low=1).check(threads, "threads")
        self._sessions: dict[Any, Session] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the function's result, computed by onnxruntime.

        Args:
            *arguments: of the function.
            **keywords: of the function.

        Raises:
            UserError: see `convert`; also if an integer does not fit in the type that JAX gives it.
        """
        dynamic, static = self._parted(arguments)
        leaves, structure = jax.tree.flatten((dynamic, keywords))
        name = one_line(getattr(self, "__name__", "the function"), 40)
        tracing.refuse_tracers(leaves, f"onnxjit: an argument of {name}")
        enabled = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]
        key = static, structure, enabled, tuple(map(jax.typeof, leaves))
        if key not in self._sessions:
            self._sessions[key] = Session(self.lower(*arguments, **keywords), self._threads)
        session = self._sessions[key]
        return jax.tree.unflatten(session.converted.structure, session(leaves))

    def lower(self, *arguments: Any, **keywords: Any) -> Converted:
        """Return the model for arguments of these shapes and dtypes.

        Args:
            *arguments: of the function, or their ``jax.ShapeDtypeStruct``.
            **keywords: of the function, or their ``jax.ShapeDtypeStruct``.

        Raises:
            UserError: see `convert`.
        """
        dynamic, static = self._parted(arguments)

        def function(dynamic: dict[int, Any], keywords: dict[str, Any]) -> Any:
            positional = {**dict(static), **dynamic}
            return self._function(*(positional[index] for index in range(len(positional))), **keywords)

        if keywords:
            return convert(function, dynamic, keywords, skipped=1)
        return convert(lambda dynamic: function(dynamic, {}), dynamic, skipped=1)

    def _parted(self, arguments: Sequence[Any]) -> tuple[dict[int, Any], tuple[tuple[int, Any], ...]]:
        # As in jax.jit, an index beyond the arguments of a call has no effect, and negative ones count from the end of
        # those that the function takes.
        count = max(len(arguments), self._count)
        static = {index % count for index in self._static if -count <= index < count}
        dynamic = {index: value for index, value in enumerate(arguments) if index not in static}
        return dynamic, tuple((index, arguments[index]) for index in sorted(static) if index < len(arguments))


def _positional(function: Callable[..., Any]) -> int:
    """Return the number of positional arguments that a function declares, 0 if it does not."""
    try:
        kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions of C have no signature
        return 0
    return sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)


def onnxjit(function: Callable[..., Any], *, static_argnums: int | Sequence[int] = (), threads: int = 1) -> OnnxJitted:
    """Return a function that runs in onnxruntime instead of XLA: a drop-in for ``jax.jit``.

    The function is traced and converted once for each combination of shapes, dtypes and static arguments.

    Args:
        function: pure, of trees of arrays, returning one.
        static_argnums: indices of positional arguments that are hashable values instead of arrays, as for ``jax.jit``.
        threads: largest number of threads of one operator.

    Raises:
        UserError: if ``threads`` is not a positive integer; when called, see `convert`; also if it is called while JAX
            traces. What `jax.jit` refuses raises the same error as there.

    Example:
        >>> softplus = simkit.onnxjit(lambda x: jnp.log1p(jnp.exp(x)))
        >>> print(softplus(jnp.zeros(2)))
        [0.6931472 0.6931472]
    """
    return OnnxJitted(function, static_argnums, threads)


def _encoded(leaf: Any, aval: Aval, dtype: np.dtype, name: str) -> np.ndarray:
    """Return an argument's array as an input of the model, without a copy of its memory where possible.

    Raises:
        UserError: if an integer does not fit in the type that JAX gives it.
    """
    if aval.key is not None:
        words = np.asarray(jax.random.key_data(leaf))
        return words.reshape(*np.shape(leaf), -1)
    array = np.asarray(leaf)
    if array.dtype.kind in "iu" and dtype.kind in "iu" and not np.can_cast(array.dtype, dtype):
        check_fit(array, dtype, name)
    if aval.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).astype(dtype, copy=False)
    return array if array.dtype == dtype else array.astype(dtype)


def _result_converter(avals: Sequence[Aval]) -> Callable[[list[np.ndarray]], list[Any]]:
    """Return the function from the runtime's results to JAX arrays.

    Large results share their memory with JAX where its alignment allows. The others are copied together by one
    compiled function, since `jax.numpy.from_dlpack` takes 0.1 ms for each array of any size.

    Args:
        avals: shapes and types of the results.
    """
    shared = [_is_shared(aval) for aval in avals]
    copied_avals = [aval for aval, large in zip(avals, shared, strict=True) if not large]

    @jax.jit
    def copied(arrays: list[Any]) -> list[Any]:
        return [_decoded(array, aval) for array, aval in zip(arrays, copied_avals, strict=True)]

    def converted(arrays: list[np.ndarray]) -> list[Any]:
        small = iter(copied([array for array, large in zip(arrays, shared, strict=True) if not large]))
        return [jnp.from_dlpack(a) if large else next(small) for a, large in zip(arrays, shared, strict=True)]

    return converted


def _is_shared(aval: Aval) -> bool:
    return (
        aval.key is None
        and not aval.short
        and aval.dtype.kind in "fiu"
        and math.prod(aval.shape) * aval.dtype.itemsize >= LEAST_SHARED
    )


def _decoded(array: Any, aval: Aval) -> Any:

    if aval.key is not None:
        return jax.random.wrap_key_data(array.reshape(*array.shape[:-1], *aval.key.key_shape), impl=aval.key.name)
    if aval.dtype.kind == "c":
        return jax.lax.complex(array[..., 0], array[..., 1])
    return jnp.asarray(array, jnp.bfloat16 if aval.short else None)
