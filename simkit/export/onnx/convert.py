"""Conversion of a traced program into a graph: values, converters, functions of JAX added to the graph."""

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from simkit.errors import UserError
from simkit.export.onnx import registry, tracing
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.tracing import SHORT, Aval, Equation, Program

_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


@dataclasses.dataclass(frozen=True)
class Value:
    """An array of a program.

    Attributes:
        parts: one tensor of a real array, the real and imaginary part, or the words of random keys; of equal shapes.
        key: the random number generator of keys, ``None`` for other arrays.
    """

    parts: tuple[Tensor, ...]
    key: Any = None

    @property
    def single(self) -> bool:
        """Whether the value is one real tensor."""
        return len(self.parts) == 1 and self.key is None


def real(tensor: Tensor) -> Value:
    """Return the value of a real tensor."""
    return Value((tensor,))


def parts_of(aval: Aval) -> tuple[int, np.dtype]:
    """Return the number of tensors of a value, and their type."""
    if aval.key is not None:
        return int(np.prod(aval.key.key_shape)), np.dtype(np.uint32)
    if aval.dtype.name in _PARTS:
        return 2, _PARTS[aval.dtype.name]
    return 1, aval.dtype


def constant(graph: Graph, value: Any) -> Value:
    """Return a constant of a program as a value."""
    if key := getattr(getattr(value, "dtype", None), "_impl", None):
        words = np.asarray(jax.random.key_data(value))
        words = words.reshape(*value.shape, -1)
        return Value(tuple(graph.constant(words[..., i]) for i in range(words.shape[-1])), key)
    array = np.asarray(value)
    if array.dtype == SHORT:
        array = array.astype(np.float32)
    if array.dtype.name in _PARTS:
        return Value((graph.constant(np.real(array)), graph.constant(np.imag(array))))
    return real(graph.constant(array))


def joined(graph: Graph, value: Value) -> Tensor:
    """Return a value as one tensor; several parts lie along a new last axis."""
    if value.single:
        return value.parts[0]
    shape = value.parts[0].shape
    columns = [graph.reshape(part, (*shape, 1)) for part in value.parts]
    return graph.op("Concat", columns, (*shape, len(columns)), columns[0].dtype, axis=len(shape))


def split(graph: Graph, tensor: Tensor, aval: Aval) -> Value:
    """Return the value of a tensor from `joined`."""
    count, _ = parts_of(aval)
    if count == 1 and aval.key is None:
        return real(tensor)
    axis = len(tensor.shape) - 1
    indices = [graph.constant(np.int64(i)) for i in range(count)]
    return Value(
        tuple(graph.op("Gather", [tensor, i], tensor.shape[:-1], tensor.dtype, axis=axis) for i in indices), aval.key
    )


def run(graph: Graph, program: Program, arguments: Sequence[Value]) -> list[Value]:
    """Add a program to the graph, and return its results.

    Args:
        graph: under construction.
        program: to add.
        arguments: one per input.

    Raises:
        UserError: if a primitive cannot be converted, with the source line of the user's program.
    """
    values: dict[Any, Value] = dict(zip(program.inputs, arguments, strict=True))
    values |= {variable: constant(graph, value) for variable, value in program.constants}

    def read(variable: Any) -> Value:
        if not hasattr(variable, "val"):
            return values[variable]
        dtype = variable.aval.dtype
        return constant(graph, variable.val if hasattr(dtype, "_impl") else np.asarray(variable.val, dtype))

    outer, ours = graph.origin, graph.ours
    graph.ours = ours or program.ours
    for equation, inputs, outputs in program.equations():
        if not graph.ours and equation.where:
            graph.origin = equation.where
        results = apply(graph, equation, [read(variable) for variable in inputs])
        for variable, aval, result in zip(outputs, equation.outputs, results, strict=True):
            count, dtype = parts_of(aval)
            assert len(result.parts) == count, equation.name
            for part in result.parts:
                assert part.shape == aval.shape and part.dtype == dtype, (
                    f"{equation.name}: {part.shape} {part.dtype}, not {aval.shape} {dtype}"
                )
            values[variable] = result
    graph.origin, graph.ours = outer, ours
    return [read(variable) for variable in program.outputs]


def apply(graph: Graph, equation: Equation, values: list[Value]) -> list[Value]:
    """Add one equation to the graph, and return its results.

    Args:
        graph: under construction.
        equation: to add.
        values: its arguments.

    Raises:
        UserError: if its primitive has no converter.
    """
    _load()
    entry = registry.REAL.get(equation.name)
    single = all(value.single for value in values) and all(parts_of(a)[0] == 1 for a in equation.outputs)
    if not single and equation.name in registry.COMPLEX:
        entry = registry.COMPLEX[equation.name]
    if entry is None:
        inner = tracing.called(equation) or tracing.defined(equation)
        if inner is not None:
            return run(graph, inner, values)
    if entry is None or not (single or entry.each or entry.whole):
        kind = "" if single else " of complex numbers or random keys"
        remedy = "leave it out" if equation.name.startswith("debug_") else "use other primitives"
        raise UserError(
            f"{graph.origin}: the primitive '{equation.name}'{kind} has no ONNX form; {remedy}, or keep this part "
            "under jax.jit"
        )
    if entry.whole:
        return list(entry.convert(graph, equation, *values))
    moves = entry.each and "scatter" not in equation.name
    key = next((value.key for value in values if value.key is not None), None)
    columns = [
        _listed(entry.convert(graph, equation, *(v.parts[0] if v.single else v.parts[part] for v in values)))
        for part in range(max((len(value.parts) for value in values), default=1))
    ]
    return [
        Value(tuple(rounded(graph, part) if aval.short and not moves else part for part in parts), key)
        for parts, aval in zip(zip(*columns, strict=True), equation.outputs, strict=True)
    ]


def rounded(graph: Graph, tensor: Tensor) -> Tensor:
    """Return numbers of float32 rounded to those of bfloat16."""
    return graph.cast(graph.cast(tensor, SHORT), np.float32)


def inline(graph: Graph, function: Any, *tensors: Tensor, **params: Any) -> list[Tensor]:
    """Add a JAX function to the graph, for primitives that are defined by others, and return its results.

    Args:
        graph: under construction.
        function: of real arrays.
        *tensors: its arguments.
        **params: its keyword arguments, which can be hashed.
    """
    avals = tuple(Aval(tensor.shape, tensor.dtype) for tensor in tensors)
    program = _program(function, tuple(sorted(params.items())), avals)
    return [value.parts[0] for value in run(graph, program, [real(tensor) for tensor in tensors])]


@functools.lru_cache(maxsize=4096)
def _program(function: Any, params: tuple[tuple[str, Any], ...], avals: tuple[Aval, ...]) -> Program:
    return tracing.program_of(functools.partial(function, **dict(params)), avals)


def _listed(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, list | tuple) else [result]


@functools.cache
def _load() -> None:
    # The modules of this package register converters when they are imported; those of a user keep precedence.
    before = dict(registry.REAL)
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"simkit.export.onnx.{module.name}")
    registry.REAL.update(before)
