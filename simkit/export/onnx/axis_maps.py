"""Linear maps along one axis: sums of slices and concatenations of one array as one product with a constant matrix.

A finite difference is two slices, a difference and a factor, which onnxruntime computes in four passes; the product
with a matrix along a short axis takes as long as one or two of them.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from simkit.export.onnx.nodes import NodeGraph, Tensor

# Longest axis whose product with a matrix is faster than slices and sums, measured on 64 x 48 cells.
LONGEST = 72
# For one tensor: ``{base.name: (base, matrix)}`` with tensor = matrix base; the tensor itself is the first base.
type Maps = dict[str, tuple[Tensor, np.ndarray]]


def combined(graph: NodeGraph, operator: str, x: Tensor, y: Tensor) -> Tensor | None:
    """Return the sum or difference of two maps of one array as one map, or ``None``.

    Args:
        graph: under construction.
        operator: ``"Add"`` or ``"Sub"``.
        x: first term.
        y: second term, of the same shape.
    """
    if x is y:
        return None
    sign = 1 if operator == "Add" else -1
    for axis in _axes(x):
        joint = _together([maps(graph, x, axis), maps(graph, y, axis)], lambda each: each[0] + sign * each[1])
        if joint:
            base, matrix = joint[-1]
            return _applied(graph, base, matrix, axis)
    return None


def scaled(graph: NodeGraph, x: Tensor, operator: str, number: np.ndarray) -> Tensor | None:
    """Return a map times constants, or divided by them, as one map, or ``None``.

    Args:
        graph: under construction.
        x: result of a map.
        operator: ``"Mul"`` or ``"Div"``.
        number: constants that broadcast to x.
    """
    for axis in _axes(x):
        maker = _matrix(x, axis)
        if maker is not None and (factors := _along(operator, number, x.shape, axis)) is not None:
            return _applied(graph, maker[0], factors[:, None] * maker[1], axis)
    return None


def joined_maps(graph: NodeGraph, parts: Sequence[Tensor], axis: int) -> Tensor | None:
    """Return the concatenation of maps of one array as one map, or ``None``.

    Args:
        graph: under construction.
        parts: results of maps, of equal shapes except along the axis.
        axis: of the maps and of the concatenation.
    """
    if axis not in _axes(parts[0]) or sum(_matrix(part, axis) is not None for part in parts) < 2:
        return None
    joint = _together([maps(graph, part, axis) for part in parts], np.concatenate)
    if not joint:
        return None
    base, matrix = joint[-1]
    return _applied(graph, base, matrix, axis)


def product(graph: NodeGraph, x: Tensor, matrix: np.ndarray, axis: int) -> Tensor | None:
    """Return the product of a constant matrix with a map as one map, or ``None``.

    Args:
        graph: under construction.
        x: result of the map.
        matrix: ``(m, n)``, from the n values along the axis to m others.
        axis: the last but one, or the last.
    """
    maker = _matrix(x, axis)
    return (
        _applied(graph, maker[0], matrix @ maker[1], axis)
        if maker is not None and max(matrix.shape) <= LONGEST
        else None
    )


def maps(graph: NodeGraph, x: Tensor, axis: int) -> Maps:
    """Return the arrays of which a tensor is a linear map along an axis, with ``(n, m)`` matrices."""
    bases: Maps = {x.name: (x, np.eye(x.shape[axis]))}
    if x.value is not None or x.maker is None or x.shape[axis] > LONGEST:
        return bases
    inner = _inner(graph, x, axis)
    for name, (base, matrix) in inner.items():
        if base.shape[axis] <= LONGEST:
            bases.setdefault(name, (base, matrix))
    return bases


def _inner(graph: NodeGraph, x: Tensor, axis: int) -> Maps:
    """Return the maps of a tensor through the node that computes it, without the tensor itself."""
    maker = x.maker
    assert maker is not None
    inputs = [tensor for tensor in maker.inputs if tensor is not None]
    source = inputs[0]
    if (base_map := _matrix(x, axis)) is not None:
        return {k: (base, base_map[1] @ m) for k, (base, m) in maps(graph, base_map[0], axis).items()}
    if maker.operator == "Slice":
        values = [tensor.value.tolist() for tensor in inputs[1:] if tensor.value is not None]
        if len(values) < 4 or axis not in values[2]:
            return {}
        position = values[2].index(axis)
        if len(values[2]) > 1:
            # The base is the slice along the other axes.
            others = [graph.vector([*each[:position], *each[position + 1 :]]) for each in values]
            shape = [source.shape[a] if a == axis else size for a, size in enumerate(x.shape)]
            source = graph.op("Slice", [source, *others], shape, x.dtype)
        begin, end, _, step = (each[position] for each in values)
        size = source.shape[axis]
        rows = np.arange(size)[slice(begin, None if step < 0 and end < -size else end, step)]
        return {k: (base, m[rows]) for k, (base, m) in maps(graph, source, axis).items()}
    if maker.operator == "Concat" and maker.attributes["axis"] == axis:
        return _by_name(_together([maps(graph, part, axis) for part in inputs], np.concatenate))
    if maker.operator in ("Add", "Sub") and all(part.shape == x.shape for part in inputs):
        sign = 1 if maker.operator == "Add" else -1
        both = [maps(graph, part, axis) for part in inputs]
        return _by_name(_together(both, lambda each: each[0] + sign * each[1]))
    if maker.operator == "Neg":
        return {k: (base, -m) for k, (base, m) in maps(graph, source, axis).items()}
    if maker.operator in ("Mul", "Div"):
        number = inputs[1].value if inputs[1].value is not None else inputs[0].value
        other = inputs[0] if inputs[1].value is not None else inputs[1]
        if number is None or other.shape != x.shape or (maker.operator == "Div" and other is inputs[1]):
            return {}
        factor = _along(maker.operator, number, x.shape, axis)
        if factor is not None:
            return {k: (base, factor[:, None] * m) for k, (base, m) in maps(graph, other, axis).items()}
    return {}


def _together(
    each: Sequence[Maps], combine: Callable[[list[np.ndarray]], np.ndarray]
) -> list[tuple[Tensor, np.ndarray]]:
    """Return ``[(base, matrix), ...]`` for the common bases of several maps, the nearest first.

    Constant zeros are maps of every base.
    """
    real = [m for m in each if not _is_zero(next(iter(m.values()))[0])]
    names = [name for name in real[0] if all(name in m for m in real)] if real else []
    pairs = []
    for name in names:
        base, matrix = real[0][name]
        matrices = []
        for m in each:
            tensor, square = next(iter(m.values()))
            matrices.append(m[name][1] if name in m else np.zeros((len(square), matrix.shape[1])))
            assert name in m or _is_zero(tensor)
        pairs.append((base, combine(matrices)))
    return pairs


def _by_name(pairs: list[tuple[Tensor, np.ndarray]]) -> Maps:
    return {base.name: (base, matrix) for base, matrix in pairs}


def _matrix(x: Tensor, axis: int) -> tuple[Tensor, np.ndarray] | None:
    """Return the base and the matrix of a tensor that is a MatMul with a constant along this axis, else ``None``."""
    if x.maker is None or x.maker.operator != "MatMul":
        return None
    first, second = x.maker.inputs
    assert first is not None and second is not None
    if axis == len(x.shape) - 1 and second.value is not None and second.value.ndim == 2:
        return first, second.value.T.astype(float)
    if axis == len(x.shape) - 2 and first.value is not None and first.value.ndim == 2:
        return second, first.value.astype(float)
    return None


def _along(operator: str, number: np.ndarray, shape: Sequence[int], axis: int) -> np.ndarray | None:
    """Return the finite factors (size,) of a scaling that varies along one axis only, ``None`` for others."""
    with np.errstate(all="ignore"):
        factor = 1 / number.astype(float) if operator == "Div" else number.astype(float)
    if not np.isfinite(factor).all():
        return None
    full = (1,) * (len(shape) - factor.ndim) + factor.shape
    if any(size > 1 for each, size in enumerate(full) if each != axis) or factor.ndim > len(shape):
        return None
    return np.broadcast_to(factor.reshape(-1), shape[axis])


def _axes(x: Tensor) -> list[int]:
    """Return the axes along which a tensor may be a product with a matrix: the last two, if short enough."""
    if x.dtype.name not in ("float32", "float64") or len(x.shape) < 2 or 0 in x.shape:
        return []
    return [axis for axis in (len(x.shape) - 1, len(x.shape) - 2) if 1 < x.shape[axis] <= LONGEST]


def _is_zero(tensor: Tensor) -> bool:
    value = (tensor.narrow or tensor).value
    return value is not None and not value.any()


def _applied(graph: NodeGraph, base: Tensor, matrix: np.ndarray, axis: int) -> Tensor:
    """Return the product of a matrix with an array along an axis."""
    shape = [len(matrix) if each == axis else size for each, size in enumerate(base.shape)]
    if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix))):
        return base
    known = functools.partial(graph.known, dtype=base.dtype)
    inputs = [base, known(matrix.T)] if axis == len(base.shape) - 1 else [known(matrix), base]
    return graph.op("MatMul", inputs, shape, base.dtype)
