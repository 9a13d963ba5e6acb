"""Modes in which a discrete Laplacian is diagonal: Fourier on periodic axes, eigenvectors on the others."""

import dataclasses
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import by_device, computed_once, prefers_whole_arrays

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


def is_worth_folding(length: int) -> bool:
    """Return whether two products of half the length, with sums and differences of mirror images, are faster."""
    return length > LONGEST_UNFOLDED or not prefers_whole_arrays()


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
    mirrored = np.abs(matrix - matrix[::-1, ::-1]).max() <= 1e-12 * np.abs(matrix).max()
    if not (fold and mirrored):
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
        first: the axis left out that comes first in the amplitudes, if any.
        fold: whether to use mirror symmetry.
    """

    def __init__(self, matrices: Sequence[SecondDifference | None], first: int | None = None, fold: bool = True):
        bases = [
            eigenvectors(m, fold and is_worth_folding(len(m))) if isinstance(m, np.ndarray) else m for m in matrices
        ]
        self._bounded = {axis: basis for axis, basis in enumerate(bases) if isinstance(basis, Eigenvectors)}
        periodic = {axis: basis for axis, basis in enumerate(bases) if isinstance(basis, Periodic)}
        omitted = [axis for axis, basis in enumerate(bases) if basis is None and axis != first]
        self._order = [*([] if first is None else [first]), *omitted, *self._bounded, *periodic]
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
