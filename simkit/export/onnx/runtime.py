"""`onnxjit`: a drop-in for ``jax.jit`` that converts a function to ONNX and runs it in onnxruntime."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.errors import UserError, one_line
from simkit.export.onnx import tracing
from simkit.export.onnx.control import each_member
from simkit.export.onnx.convert import joined, parts_of, run, split
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.model import MISSING, Port, count_nodes, model_of
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.tracing import Aval
from simkit.interop import check_fit, refuse_masked

# Smallest result, in bytes, whose memory is shared with JAX instead of copied.
LEAST_SHARED = 1 << 18


@dataclasses.dataclass(frozen=True)
class Converted:
    """A function as an ONNX model.

    Complex arrays have a last axis of size 2, real and imaginary part; random keys are uint32 ``(..., words)``.

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
        try:
            Path(path).write_bytes(self.model.SerializeToString())
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}; choose another path") from error
        return Path(path)


def convert(
    function: Callable[..., Any], *arguments: Any, graph: Graph | None = None, members: bool = False
) -> Converted:
    """Return a pure function of arrays as an ONNX model.

    Args:
        function: of trees of arrays, returning one; random keys may be among them.
        *arguments: examples, or ``jax.ShapeDtypeStruct``; their shapes and dtypes are those of the model.
        graph: an empty graph for a target with fewer operators (`simkit.export.targets.replacements`); ``None`` for
            ONNX.
        members: whether the model takes a batch of any size: every array has one leading axis more than in the
            function, of size -1 in `Converted`, and the members are computed one after the other.

    Raises:
        UserError: if a primitive of the function has no ONNX form, with the source line that it came from; if an array
            is masked or has the byte order of another machine; if onnx is not installed.
    """
    return _converted(function, arguments, 0, graph or Graph(), members=members)


def _converted(
    function: Callable[..., Any], arguments: Sequence[Any], skipped: int, graph: Graph, *, members: bool = False
) -> Converted:
    """Return a function as a model; inputs are named by their paths without the first ``skipped`` steps."""
    named = jax.tree_util.tree_flatten_with_path(tuple(arguments))[0]
    _refuse_arrays(named, skipped)
    program, structure = tracing.trace(function, *arguments)
    inputs: list[Port] = []
    for (path, _), aval in zip(named, program.input_avals, strict=True):
        count, dtype = parts_of(aval)
        shape = aval.shape if count == 1 and aval.key is None else (*aval.shape, count)
        inputs.append(Port(_name("in", path[skipped:], inputs), (-1, *shape) if members else shape, dtype))
    tensors_in = [graph.input(port.shape, port.dtype, port.name) for port in inputs]

    def computed(tensors_in: Sequence[Tensor]) -> list[Tensor]:
        values = [split(graph, tensor, aval) for tensor, aval in zip(tensors_in, program.input_avals, strict=True)]
        return [joined(graph, value) for value in run(graph, program, values)]

    tensors = each_member(graph, tensors_in, computed) if members else computed(tensors_in)
    leaves = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(structure, list(range(len(tensors)))))[0]
    outputs: list[Port] = []
    for (path, _), tensor in zip(leaves, tensors, strict=True):
        outputs.append(Port(_name("out", path, outputs), tensor.shape, tensor.dtype))
    model = model_of(graph, tensors, [port.name for port in outputs])
    return Converted(
        model, inputs, outputs, count_nodes(graph.top), program.input_avals, program.output_avals, structure
    )


def _name(prefix: str, path: Sequence[Any], others: list[Port]) -> str:
    """Return a unique name of an array, made of its path among the arguments or results."""
    words = "".join(c if c.isascii() and c.isalnum() else "_" for c in jax.tree_util.keystr(tuple(path))).strip("_")
    name = f"{prefix}_{words}" if words else prefix
    return name if name not in {port.name for port in others} else f"{name}_{len(others)}"


class Session:
    """A converted function that runs in onnxruntime."""

    def __init__(self, converted: Converted, threads: int = 1) -> None:
        """Load the model.

        Args:
            converted: the function.
            threads: largest number of threads of one operator.

        Raises:
            UserError: if onnxruntime is not installed, or does not exchange arrays of a type with Python.
        """
        for port in (*converted.inputs, *converted.outputs):
            if port.dtype.kind not in "biufc":
                raise UserError(
                    f"{port.name} is of type {port.dtype}, which onnxruntime does not exchange with Python; cast "
                    "arguments and results to float32"
                )
        try:
            import onnxruntime
        except ImportError as error:
            raise UserError(MISSING) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.converted = converted
        self.session = onnxruntime.InferenceSession(
            converted.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        # onnxruntime drops inputs that no output depends on.
        known = {port.name for port in self.session.get_inputs()}
        numbered = enumerate(zip(converted.inputs, converted.avals, strict=True))
        self._fed = [(index, port.name, aval, port.dtype) for index, (port, aval) in numbered if port.name in known]
        self._names = [port.name for port in converted.outputs]
        self._to_jax = _result_converter(converted.results)

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the results of one run as JAX arrays.

        Args:
            leaves: the arguments' arrays, in the order of the model's inputs.
        """
        feeds = {name: _encoded(leaves[index], aval, dtype, name) for index, name, aval, dtype in self._fed}
        return self._to_jax([np.asarray(array) for array in self.session.run(self._names, feeds)])


def _refuse_arrays(named: Sequence[tuple[Any, Any]], skipped: int) -> None:
    """Refuse arrays of NumPy that JAX does not take, by the name of their argument.

    Args:
        named: paths and arrays of the arguments.
        skipped: number of steps of a path before the index or name of its argument.

    Raises:
        UserError: if one is a masked array, or its bytes are in the order of another machine.
    """
    for path, array in named:
        first, *inner = path[skipped:]
        name = f"argument {getattr(first, 'key', getattr(first, 'idx', ''))!r}{jax.tree_util.keystr(tuple(inner))}"
        refuse_masked(array, name)
        if not getattr(getattr(array, "dtype", None), "isnative", True):
            raise UserError(
                f"{name} has its bytes in the order of another machine ({array.dtype.str}); give "
                'array.astype(array.dtype.newbyteorder("="))'
            )


class OnnxJitted:
    """A function that runs in onnxruntime, from `onnxjit`; called like the original one."""

    def __init__(self, function: Callable[..., Any], static_argnums: Sequence[int], threads: int) -> None:
        """Store the function; it is traced at the first call."""
        functools.update_wrapper(self, function)
        self._function = function
        self._static = frozenset(static_argnums)
        self._threads = threads
        self._sessions: dict[Any, Session] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the function's result, computed by onnxruntime.

        Args:
            *arguments: of the function.
            **keywords: of the function.

        Raises:
            UserError: see `convert`.
        """
        dynamic, static = self._parted(arguments)
        for index, value in static:
            if not isinstance(value, Hashable):
                raise UserError(
                    f"argument {index} is static and of type {type(value).__name__}, which cannot be hashed; make it a "
                    "number, a word or a tuple, or leave it out of static_argnums"
                )
        leaves, structure = jax.tree.flatten((dynamic, keywords))
        where = f"an argument of {one_line(getattr(self, '__name__', 'the function'), 40)}"
        tracing.refuse_tracers(leaves, f"onnxjit: {where}")
        if any(isinstance(leaf, np.ma.MaskedArray) for leaf in leaves):
            _refuse_arrays(jax.tree_util.tree_flatten_with_path((dynamic, keywords))[0], 1)
        for leaf in leaves:
            kind = getattr(getattr(leaf, "dtype", None), "kind", "")
            if isinstance(leaf, str | bytes) or (kind and kind in "USOMm"):
                raise UserError(
                    f"{leaf!r:.40} is no array of numbers; name its argument in static_argnums, or pass numbers"
                )
            if type(leaf) is int:
                check_fit(np.asarray(leaf), jax.dtypes.canonicalize_dtype(int), where)
        key = (
            static,
            structure,
            bool(jax.config.jax_enable_x64),  # pyright: ignore[reportAttributeAccessIssue]
            tuple(tracing.aval_of(leaf) for leaf in leaves),
        )
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
            known = {**dict(static), **dynamic}
            return self._function(*(known[index] for index in range(len(known))), **keywords)

        if keywords:
            return _converted(function, (dynamic, keywords), 1, Graph())
        return _converted(lambda dynamic: function(dynamic, {}), (dynamic,), 1, Graph())

    def _parted(self, arguments: Sequence[Any]) -> tuple[dict[int, Any], tuple[tuple[int, Any], ...]]:
        count = len(arguments)
        # As in jax.jit, an index beyond the positional arguments of a call has no effect.
        static = {index % count for index in self._static if -count <= index < count}
        dynamic = {index: value for index, value in enumerate(arguments) if index not in static}
        return dynamic, tuple((index, arguments[index]) for index in sorted(static))


def onnxjit(function: Callable[..., Any], *, static_argnums: int | Sequence[int] = (), threads: int = 1) -> OnnxJitted:
    """Return a function that runs in onnxruntime instead of XLA: a drop-in for ``jax.jit``.

    The function is traced and converted once for each combination of shapes, dtypes and static arguments.

    Args:
        function: pure, of trees of arrays, returning one.
        static_argnums: indices of positional arguments that are hashable values instead of arrays, as for ``jax.jit``.
        threads: largest number of threads of one operator.

    Raises:
        UserError: if it is no function, has no positional argument of an index, or ``threads`` is not positive; when
            called, see `convert`; also if it is called while JAX traces.
    """
    if not callable(function):
        raise UserError(f"onnxjit({function!r:.40}) is given no function; pass the function, and its arguments later")
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise UserError(
            f"threads = {threads!r:.40} is not a positive integer; give the number of threads, 1 for instance"
        )
    return OnnxJitted(function, _indices(function, static_argnums), threads)


def _indices(function: Callable[..., Any], arguments: Any) -> tuple[int, ...]:
    """Return the indices of static arguments, counted from the start where the function's arguments are known.

    Args:
        function: with the arguments.
        arguments: one index or several; negative ones count from the end.

    Raises:
        UserError: if one is no integer, or the function has no such positional argument.
    """
    indices: tuple[Any, ...] = (
        tuple(arguments)
        if isinstance(arguments, Sequence | set | frozenset) and not isinstance(arguments, str)
        else (arguments,)
    )
    for index in indices:
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            raise UserError(
                f"static_argnums = {arguments!r:.40} is not made of integers; give the index of each argument"
            )
    try:
        kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions of C have no signature
        return tuple(int(index) for index in indices)
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return tuple(int(index) for index in indices)
    count = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    for index in indices:
        if not -count <= index < count:
            allowed = f"it has {count}, so choose in [{-count}, {count - 1}]" if count else "it has none; leave it out"
            raise UserError(f"static_argnums = {index}: the function has no such positional argument; {allowed}")
    return tuple(int(index) % count for index in indices)


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
    return aval.key is None and aval.dtype.kind in "fiu" and math.prod(aval.shape) * aval.dtype.itemsize >= LEAST_SHARED


def _decoded(array: Any, aval: Aval) -> Any:

    if aval.key is not None:
        return jax.random.wrap_key_data(array.reshape(*array.shape[:-1], *aval.key.key_shape), impl=aval.key.name)
    return jax.lax.complex(array[..., 0], array[..., 1]) if aval.dtype.kind == "c" else jnp.asarray(array)
