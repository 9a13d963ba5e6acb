"""The pressure in a channel with a mirror-symmetric grid: both halves solved as one complex field.

On a mirror-symmetric grid the systems of the lower and of the upper half, each taken from the wall to the middle, are
the middle, are the same. So the lower half becomes the real part of a complex field and the upper half, mirrored, the
imaginary part. They are transformed and eliminated together, in half as many rows, until they meet: with the fluxes A
and B of mode k into the middle, the field holds ``F(k) = A(k) + i B(k)``, and those of real halves are told apart by ::

    F(k) + i conj(F(-k)) = (1 + i) (A + B),   F(k) - i conj(F(-k)) = (1 - i) (A - B)

Complex transforms replace the inverse real transform, which takes twice as long.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.flow.grid import Axis, Grid
from simkit.flow.operators.differences import joined
from simkit.flow.solvers.modes import Periodic, SecondDifference, transpose, widened
from simkit.flow.solvers.tridiagonal import eliminate, substitute


def has_halves(grid: Grid) -> bool:
    """Return whether a grid has one bounded axis, with an even number of mirror-symmetric cells."""
    bounded = [axis for axis in grid.axes if not axis.periodic]
    if len(bounded) != 1 or bounded[0].cells % 2:
        return False
    widths = bounded[0].widths
    return bool(np.abs(widths - widths[::-1]).max() <= 1e-14 * bounded[0].length)


def solver_of_halves(grid: Grid, matrices: Sequence[SecondDifference]) -> Callable[[jax.Array], jax.Array]:
    """Return the solver of `simkit.flow.solvers.pressure.pressure_solver` for a grid of which `has_halves` is true.

    Args:
        grid: the grid.
        matrices: the second difference along each axis.
    """
    along = next(i for i, axis in enumerate(grid.axes) if not axis.periodic)
    across = [i for i in range(grid.dimension) if i != along]
    axis, lengths = grid.axes[along], tuple(grid.cells[i] for i in across)
    eigenvalues = functools.reduce(np.add.outer, [m.eigenvalues for m in matrices if isinstance(m, Periodic)])
    # The mode that is constant along the walls; zero up to rounding.
    eigenvalues.flat[0] = 0
    half = axis.cells // 2
    widths, last = axis.widths[:half], tuple(range(1, grid.dimension))
    fraction, inverse, even, odd = _coefficients(axis, eigenvalues)

    def solve(source: jax.Array) -> jax.Array:
        lower, upper = jnp.split(source, 2, along)
        field = transpose(jax.lax.complex(lower, jnp.flip(upper, along)), [along, *across])
        amplitudes = jnp.fft.fftn(field, axes=last)
        w, f, i, e, o = (jnp.asarray(constant, source.dtype) for constant in (-widths, fraction, inverse, even, odd))

        def meet(flux: jax.Array) -> jax.Array:
            flux = flux.reshape(lengths)
            mirrored = 1j * jnp.conj(_opposite(flux))
            return (e * (flux + mirrored) + o * (flux - mirrored)).ravel()

        mean = (1 + 1j) * _mean(amplitudes, widths / axis.length)
        pressure = substitute(amplitudes, w, f, i, mean, meet)
        # Subtracted here, where no additional pass over the array is needed.
        mean = _mean(pressure, widths / axis.length) / eigenvalues.size
        return _apart(jnp.fft.ifftn(pressure, axes=last), mean, along)

    return solve


def _coefficients(axis: Axis, eigenvalues: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the coefficients of the elimination up to the middle, and the weights of sum and difference there."""
    half = axis.cells // 2
    coupling = 1 / axis.distances[: half - 1]
    excess = np.multiply.outer(axis.widths[:half], eigenvalues)
    fraction, inverse = eliminate(excess, coupling)
    # Remaining diagonal of the last row of each half, 1/inverse, and its coupling to the other half.
    singular = inverse[-1] == 0
    total = np.where(singular, 0, 1 / np.where(singular, 1, inverse[-1]))
    even, odd = 0.5 * inverse[-1], 0.5 / (total + 2 / axis.distances[half - 1])
    # The last row of each half is solved together with that of the other.
    fraction[-1] = inverse[-1] = 0
    return fraction, inverse, even, odd


def _opposite(f: jax.Array) -> jax.Array:
    """Return the amplitudes of the opposite wave vectors."""
    for axis in range(f.ndim):
        f = jnp.roll(jnp.flip(f, axis), 1, axis)
    return f


def _mean(amplitudes: jax.Array, shares: np.ndarray) -> jax.Array:
    """Return the mean over both halves of the first mode."""
    first = amplitudes.reshape(len(shares), -1)[:, 0]
    return jnp.sum(jnp.asarray(shares, first.real.dtype) * (first.real + first.imag))


def _apart(field: jax.Array, mean: jax.Array, along: int) -> jax.Array:
    """Return the values on the grid less their mean, from halves whose rows come first."""
    if along == field.ndim - 1:
        # Both halves are read from one array, since a transpose of each would cost more passes.
        half, *lengths = field.shape
        table = widened(field.reshape(half, -1))
        count = field.size // half
        halves = [table.real.T[:count] - mean, jnp.flip(table.imag, 0).T[:count] - mean]
        return joined(halves, axis=1).reshape(*lengths, 2 * half)
    # One long loop is faster than nested loops.
    table = field.reshape(len(field), -1)
    rows = jnp.concatenate([table.real - mean, jnp.flip(table.imag, 0) - mean])
    moved = jnp.moveaxis(computed_once(rows).reshape(-1, *field.shape[1:]), 0, along)
    # Flattened, the array is materialized in row-major order; otherwise the compiler would transpose it at each use.
    return computed_once(moved.reshape(-1)).reshape(moved.shape)
