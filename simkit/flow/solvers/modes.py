"""Modes in which a discrete Laplacian is diagonal: Fourier on periodic axes, eigenvectors on the others."""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once, precise_product, prefers_whole_arrays
from simkit.flow.operators.differences import joined

# Length up to which one product with all eigenvectors is faster, in runtimes that run each operation separately.
LONGEST_UNFOLDED = 128


@dataclasses.dataclass(frozen=True)
class Periodic:
    """The second difference of equal cells around a periodic axis.

    Attributes:
        cells: number of cells n.
        width: width of a cell, unit h.
    """

    cells: int
    width: float

    @property
    def eigenvalues(self) -> np.ndarray:
        """``(n,)`` eigenvalues of minus the second difference in the order of the discrete Fourier transform."""
        return (2 / self.width * np.sin(np.pi * np.arange(self.cells) / self.cells)) ** 2


@dataclasses.dataclass(frozen=True, eq=False)
class OpenEnds:
    """The second difference at the centers of a bounded axis, without the slopes at its ends.

    These are given to the solver with each source, relative to the slope at a wall; they may be traced.

    Attributes:
        widths: ``(n,)`` of the cells.
        distances: ``(n - 1,)`` between their centers.
        weights: ``(2, 2)`` near and far weight of the slope at a wall on the lower and the upper side, see
            `simkit.flow.boundary.side_data.Place`.
    """

    widths: np.ndarray
    distances: np.ndarray
    weights: np.ndarray


type SecondDifference = Periodic | np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenvectors:
    """The eigenvectors of minus a second difference along one bounded axis.

    On a mirror-symmetric axis every vector is even or odd, and half of each suffices.

    Attributes:
        eigenvalues: ``(n,)`` not negative, ascending; where folded, those of the even vectors before those of the odd.
        analysis: ``amplitudes = analysis @ values``: one ``(n, n)`` matrix; or two, for the sums and the differences of
            the values and their mirror images.
        synthesis: ``values = synthesis @ amplitudes``, or the even and the odd part of the values.
    """

    eigenvalues: np.ndarray
    analysis: tuple[np.ndarray, ...]
    synthesis: tuple[np.ndarray, ...]


def eigenvectors(matrix: np.ndarray, fold: bool = True) -> Eigenvectors:
    """Return the eigenvectors of minus a second difference, computed in float64.

    Args:
        matrix: ``(n, n)`` tridiagonal with positive off-diagonal entries.
        fold: whether to use the mirror symmetry, if there is one.

    Reference: Lynch, Rice and Thomas, Numer. Math. 6, 185 (1964), doi:10.1007/BF01386067.
    """
    n = len(matrix)
    # A diagonal scaling turns such a tridiagonal matrix into a symmetric one, whose eigenvectors are orthogonal.
    scale = np.sqrt(symmetric_weights(matrix))
    symmetric = -scale[:, None] * matrix / scale
    symmetric = (symmetric + symmetric.T) / 2
    if not (fold and is_mirrored(matrix)):
        eigenvalues, vectors = np.linalg.eigh(symmetric)
        return Eigenvectors(eigenvalues, (vectors.T * scale,), (vectors / scale[:, None],))
    parts = []
    for sign, count in ((1, n - n // 2), (-1, n // 2)):
        basis = (np.eye(n)[:, :count] + sign * np.eye(n)[:, ::-1][:, :count]) / np.sqrt(2)
        basis /= np.linalg.norm(basis, axis=0)
        eigenvalues, vectors = np.linalg.eigh(basis.T @ symmetric @ basis)
        half = (basis @ vectors)[:count]
        parts.append((eigenvalues, half.T * scale[:count], half / scale[:count, None]))
    values, analysis, synthesis = zip(*parts, strict=True)
    return Eigenvectors(np.concatenate(values), analysis, synthesis)


def is_mirrored(matrix: np.ndarray) -> bool:
    """Return whether a matrix is mirror-symmetric up to rounding."""
    return bool(np.abs(matrix - matrix[::-1, ::-1]).max() <= 1e-12 * np.abs(matrix).max())


def symmetric_weights(matrix: np.ndarray) -> np.ndarray:
    """Return the ``(n,)`` positive row weights that make a tridiagonal matrix symmetric."""
    return np.cumprod(np.concatenate([[1.0], np.diag(matrix, 1) / np.diag(matrix, -1)]))


class Transform:
    """Transform between values on a grid and amplitudes of modes, along some of the axes.

    The amplitudes have first the axes left out, then the bounded and last the periodic ones: the real Fourier transform
    works on the last axes, and a product with eigenvectors may bring its axis to the front at no cost.

    Attributes:
        eigenvalues: sums over the axes of the eigenvalues of minus the second differences, in the order of the
            amplitudes; of length 1 along the axes left out.
        constant: amplitude of the first mode where every value is 1.

    Args:
        matrices: the second difference along each axis; None for an axis that is left out.
        first: the axis left out that comes first in the amplitudes.
    """

    def __init__(self, matrices: Sequence[SecondDifference | None], first: int):
        bases = [eigenvectors(m) if isinstance(m, np.ndarray) else m for m in matrices]
        self._bounded = {axis: basis for axis, basis in enumerate(bases) if isinstance(basis, Eigenvectors)}
        periodic = {axis: basis for axis, basis in enumerate(bases) if isinstance(basis, Periodic)}
        omitted = [axis for axis, basis in enumerate(bases) if basis is None and axis != first]
        self._order = [first, *omitted, *self._bounded, *periodic]
        self._lengths = tuple(basis.cells for basis in periodic.values())
        self._last = tuple(range(-len(periodic), 0))
        self.constant = math.prod(self._lengths) * math.prod(_of_ones(basis) for basis in self._bounded.values())
        self.eigenvalues = np.zeros(())
        for axis in self._order:
            basis = bases[axis]
            along = np.zeros(1) if basis is None else basis.eigenvalues
            if periodic and axis == self._order[-1]:
                # Amplitudes of real values come in complex conjugate pairs.
                along = along[: self._lengths[-1] // 2 + 1]
            self.eigenvalues = self.eigenvalues[..., None] + along

    def to_modes(self, f: jax.Array) -> jax.Array:
        """Return the amplitudes of values on the grid, complex if any axis is periodic."""
        axes = list(range(f.ndim))
        for axis, basis in reversed(self._bounded.items()):
            last = axis == self._order[-1]
            f = _analyze(f, axes.index(axis), basis, last)
            _move(axes, axis, last)
        f = transpose(f, [axes.index(axis) for axis in self._order])
        return jnp.fft.rfftn(f, axes=self._last) if self._last else f

    def from_modes(self, amplitudes: jax.Array) -> jax.Array:
        """Return the values on the grid that have the given amplitudes."""
        f = jnp.fft.irfftn(amplitudes, s=self._lengths, axes=self._last) if self._last else amplitudes
        axes = list(self._order)
        for axis, basis in self._bounded.items():
            last = axis == f.ndim - 1
            f = _synthesize(f, axes.index(axis), basis, last)
            _move(axes, axis, last)
        return transpose(f, [axes.index(axis) for axis in range(f.ndim)])


class BatchedModes:
    """The modes of several arrays as one batch: one product per bounded axis and one Fourier transform for all of them.

    An accelerator pays for each operation, not for its size. Along an axis on which all matrices are mirror-symmetric,
    an array is an even and an odd part of half its length. The parts of all arrays, padded with zeros to one shape, are
    the batch. Eigenvalues are summed where they are used, rather than stored as a table of the size of the grid.
    With a single bounded axis, analysis, response and synthesis are one matrix, and the arrays are read by one product.

    Args:
        matrices: of each array, the second difference along each axis; None for an axis that is left out, for all.
        is_singular: whether a constant is a mode of eigenvalue zero, along every axis.
        fold: whether to use mirror symmetry.
    """

    def __init__(
        self, matrices: Sequence[Sequence[SecondDifference | None]], *, is_singular: bool = False, fold: bool = True
    ):
        kinds = list(enumerate(matrices[0]))
        bounded = [axis for axis, kind in kinds if isinstance(kind, np.ndarray)]
        periodic = {axis: kind for axis, kind in kinds if isinstance(kind, Periodic)}
        self._folded, self._tables = [], {}
        bases = {}
        for axis in bounded:
            along = [matrix for row in matrices if isinstance(matrix := row[axis], np.ndarray)]
            is_worthwhile = len(along[0]) > LONGEST_UNFOLDED or not prefers_whole_arrays()
            halves = fold and is_worthwhile and all(map(is_mirrored, along))
            self._folded += [axis] if halves else []
            bases[axis] = [_parts_of(eigenvectors(m, halves)) for m in along]
        self._order = [*bounded, *(axis for axis, kind in kinds if kind is None), *periodic]
        self._lengths = tuple(kind.cells for kind in periodic.values())
        self._last = tuple(range(-len(periodic), 0))
        # The part of each entry of the batch along each bounded axis.
        rows = [parts for i in range(len(matrices)) for parts in product(*(bases[axis][i] for axis in bounded))]
        values = dict.fromkeys(self._order, np.zeros((1, 1)))
        for position, axis in enumerate(bounded):
            values[axis], *self._tables[axis] = _padded([row[position] for row in rows])
            if is_singular:
                values[axis][0, 0] = 0
        for axis, kind in periodic.items():
            # Amplitudes of real values come in complex conjugate pairs.
            count = kind.cells // 2 + 1 if axis == self._order[-1] else kind.cells
            values[axis] = kind.eigenvalues[None, :count]
        self._values = [values[axis] for axis in self._order]

    def filtered(self, arrays: Sequence[jax.Array], response: Callable[[Any], Any]) -> list[jax.Array]:
        """Return the arrays whose amplitudes are those of the given ones times ``response(eigenvalues)``."""
        parts = [part for f in arrays for part in self._halves(f)]
        lengths = [max(each) for each in zip(*(part.shape for part in parts), strict=True)]
        is_batch = len(parts) > 1
        batch = jnp.stack([_extended(part, lengths) for part in parts]) if is_batch else parts[0]
        axes = list(range(len(lengths)))
        if self._is_one_product(lengths):
            batch = self._product(batch, axes, response)
        else:
            batch = self._by_transforms(batch, axes, response)
        batch = _ordered(batch, [axes.index(axis) for axis in range(len(axes))])
        parts, count = list(batch) if is_batch else [batch], len(parts) // len(arrays)
        return [self._whole(parts[i * count : (i + 1) * count], f.shape) for i, f in enumerate(arrays)]

    def _is_one_product(self, lengths: Sequence[int]) -> bool:
        """Return whether the product of the tables costs less than a second product with arrays of these lengths."""
        rows = [lengths[axis] for axis in self._tables]
        return not self._last and len(rows) == 1 and rows[0] ** 2 <= math.prod(lengths)

    def _product(self, batch: jax.Array, axes: list[int], response: Callable[[Any], Any]) -> jax.Array:
        """Return the response of a batch along its only axis of modes, which then comes first."""
        ((axis, tables),) = self._tables.items()
        analysis, synthesis, values = (
            jnp.asarray(f, batch.dtype) for f in (*tables, self._values[self._order.index(axis)])
        )
        matrices = precise_product(synthesis * response(values)[:, None, :], analysis)
        return _products(matrices, batch, axes, axis)

    def _by_transforms(self, batch: jax.Array, axes: list[int], response: Callable[[Any], Any]) -> jax.Array:
        """Return the response of a batch, with its axes in the order that ``axes`` then has."""
        is_batch = batch.ndim > len(axes)
        for axis in reversed(self._tables):
            batch = _products(self._tables[axis][0], batch, axes, axis)
        batch = _ordered(batch, [axes.index(axis) for axis in self._order])
        amplitudes = jnp.fft.rfftn(batch, axes=self._last) if self._last else batch
        dtype, count = batch.dtype, len(self._order)
        shapes = [[-1 if i == n else 1 for i in range(count)] for n in range(count)]
        tables = [v.reshape([len(v)] * is_batch + shape) for v, shape in zip(self._values, shapes, strict=True)]
        if prefers_whole_arrays():
            # Runtimes that run each operation separately get the sum as a constant.
            tables = [functools.reduce(np.add, tables)]
        constants = [v.astype(dtype) if prefers_whole_arrays() else jnp.asarray(v, dtype) for v in tables]
        amplitudes = amplitudes * response(functools.reduce(operator.add, constants))
        batch = jnp.fft.irfftn(amplitudes, s=self._lengths, axes=self._last) if self._last else amplitudes
        axes[:] = self._order
        for axis in self._tables:
            batch = _products(self._tables[axis][1], batch, axes, axis)
        return batch

    def _halves(self, f: jax.Array) -> list[jax.Array]:
        """Return the sums and the differences of the values and their mirror images, up to the middle of each axis."""
        parts = [f]
        for axis in self._folded:
            half = -(-f.shape[axis] // 2)
            pairs = [[_part(g, axis, 0, half) for g in (part, jnp.flip(part, axis))] for part in parts]
            parts = [part for near, far in pairs for part in (near + far, near - far)]
        return parts

    def _whole(self, parts: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
        """Return the values of an array of some shape from its even and odd parts along each axis, the last in turn."""
        parts = [_cut(part, [-(-n // 2) if i in self._folded else n for i, n in enumerate(shape)]) for part in parts]
        for axis in reversed(self._folded):
            rest = shape[axis] // 2
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [
                joined([even + odd, jnp.flip(_part(even - odd, axis, 0, rest), axis)], axis) for even, odd in pairs
            ]
        return parts[0]


type Part = tuple[np.ndarray, np.ndarray, np.ndarray]


def _parts_of(basis: Eigenvectors) -> list[Part]:
    """Return the eigenvalues, the analysis and the synthesis of each part; the middle of an odd length counts once."""
    starts = np.cumsum([len(analysis) for analysis in basis.analysis])[:-1]
    analyses = [analysis.copy() for analysis in basis.analysis]
    if len(analyses) == 2 and len(basis.eigenvalues) % 2:
        analyses[0][:, -1] /= 2
    return list(zip(np.split(basis.eigenvalues, starts), analyses, basis.synthesis, strict=True))


def _padded(parts: list[Part]) -> Part:
    """Return the eigenvalues and the matrices of some parts as arrays with one row for each, padded with zeros."""
    count = max(len(values) for values, _, _ in parts)

    def stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack([np.pad(a, [(0, count - n) for n in a.shape]) for a in arrays])

    values, analysis, synthesis = map(stacked, zip(*parts, strict=True))
    return values, analysis, synthesis


def _products(matrices: np.ndarray | jax.Array, batch: jax.Array, axes: list[int], axis: int) -> jax.Array:
    """Return the products of a batch of matrices, or of its only one, with an axis, which then comes first."""
    lead = batch.ndim - len(axes)
    constant = jnp.asarray(matrices if lead else matrices[0], batch.dtype)
    numbers = (((lead + 1,), (lead + axes.index(axis),)), ((0,) * lead, (0,) * lead))
    _move(axes, axis, last=False)
    return jax.lax.dot_general(constant, batch, numbers, precision=jax.lax.Precision.HIGHEST)


def _ordered(batch: jax.Array, order: list[int]) -> jax.Array:
    """Return a batch of arrays with their axes in another order."""
    lead = batch.ndim - len(order)
    return jnp.transpose(batch, [*range(lead), *(lead + axis for axis in order)])


def _extended(f: jax.Array, lengths: Sequence[int]) -> jax.Array:
    return jnp.pad(f, [(0, length - n) for length, n in zip(lengths, f.shape, strict=True)])


def _cut(f: jax.Array, lengths: Sequence[int]) -> jax.Array:
    return jax.lax.slice(f, [0] * f.ndim, lengths)


def _of_ones(basis: Eigenvectors) -> float:
    """Return the amplitude of the first mode of values that are all 1."""
    row, n = basis.analysis[0][0], len(basis.eigenvalues)
    # Where folded, it is multiplied by sums of two values, but for the middle one of an odd number.
    return float(2 * row.sum() - (row[-1] if n % 2 else 0)) if len(basis.analysis) > 1 else float(row.sum())


def transpose(f: jax.Array, order: Sequence[int]) -> jax.Array:
    """Return an array with its axes in another order, on a CPU by a loop that is not fused with others."""
    order = list(order)
    k = order[0]
    if order == list(range(f.ndim)):
        return f
    if order != [*range(k, f.ndim), *range(k)]:
        return jnp.transpose(f, order)

    def by_wide_rows(f: jax.Array) -> jax.Array:
        rows, columns = math.prod(f.shape[:k]), math.prod(f.shape[k:])
        table = widened(f.reshape(rows, columns))
        return computed_once(table.T[:columns]).reshape(f.shape[k:] + f.shape[:k])

    return by_device(f, cpu=by_wide_rows, accelerator=lambda f: jnp.transpose(f, order))


def widened(table: jax.Array) -> jax.Array:
    """Return a table with a few more columns, which is faster to read by columns.

    Rows whose distance in memory is a power of two map to few cache sets: with a few more numbers in each row the
    transpose of 1024 x 512 numbers is five times as fast. The added numbers are copies of existing ones: zeros would
    become a padding, with a branch for each number.
    """
    table = computed_once(table)
    return computed_once(jnp.concatenate([table, table[:, :16]], axis=1))


def _move(axes: list[int], axis: int, last: bool) -> None:
    axes.remove(axis)
    axes.insert(len(axes) if last else 0, axis)


def _analyze(f: jax.Array, axis: int, basis: Eigenvectors, last: bool) -> jax.Array:
    """Return the amplitudes along one axis, which comes last or else first."""
    if len(basis.analysis) == 1:
        return _contract(basis.analysis[0], f, axis, last)
    n = f.shape[axis]
    half = n // 2
    lower, middle = _part(f, axis, 0, half), _part(f, axis, half, n - half)
    upper = jnp.flip(_part(f, axis, n - half, n), axis)
    even = _contract(basis.analysis[0], jnp.concatenate([lower + upper, middle], axis), axis, last)
    odd = _contract(basis.analysis[1], lower - upper, axis, last)
    return jnp.concatenate([even, odd], -1 if last else 0)


def _synthesize(f: jax.Array, axis: int, basis: Eigenvectors, last: bool) -> jax.Array:
    """Return the values along one axis, which comes last or else first."""
    if len(basis.synthesis) == 1:
        return _contract(basis.synthesis[0], f, axis, last)
    n = f.shape[axis]
    half = n // 2
    even = _contract(basis.synthesis[0], _part(f, axis, 0, n - half), axis, last)
    odd = _contract(basis.synthesis[1], _part(f, axis, n - half, n), axis, last)
    axis = f.ndim - 1 if last else 0
    outer, middle = _part(even, axis, 0, half), _part(even, axis, half, n - half)
    return jnp.concatenate([outer + odd, middle, jnp.flip(outer - odd, axis)], axis)


def _part(f: jax.Array, axis: int, start: int, end: int) -> jax.Array:
    return jax.lax.slice_in_dim(f, start, end, axis=axis)


def _contract(matrix: np.ndarray, f: jax.Array, axis: int, last: bool) -> jax.Array:
    """Return the product with one axis; at full float32 precision on accelerators too."""
    constant = jnp.asarray(matrix, f.dtype)
    factors, axes = ((f, constant), ((axis,), (1,))) if last else ((constant, f), ((1,), (axis,)))
    return jax.lax.dot_general(*factors, (axes, ((), ())), precision=jax.lax.Precision.HIGHEST)
