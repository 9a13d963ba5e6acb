"""Random eddies between two walls or in a periodic box, as an initial velocity."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.formulation import precise_product
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.grid import Grid, Velocity, like
from simkit.flow.operators.differences import curl, difference_at_centers

SHORTEST_WAVELENGTH = 0.75
WAVES_ACROSS = 3


def random_eddies(grid: Grid, key: jax.Array, dtype: jnp.dtype) -> Velocity:
    """Return a smooth random plane velocity with no divergence, no slip on the walls and root-mean-square speed 1.

        u = dpsi/dy,   v = -dpsi/dx,   s = (y - y_lower)/H,
        psi = sum over k, q of a sin(q s) sin(pi s) cos(k x + phase) / (k^2 + (q/H)^2)

    with normal random amplitudes a, so that large eddies are faster than small ones. k runs over the wavelengths that
    fit the period and are at least 3/4 of the height H (and four cells) long, q over pi, 2 pi and 3 pi. psi and its
    slope vanish on the walls, and its differences between the corners of the cells have no divergence beyond round-off.

    Args:
        grid: periodic along x, bounded along y.
        key: random key.
        dtype: floating-point type of the velocity.

    Example:
        >>> grid = flow.Grid((flow.periodic_axis(32, 4.0), flow.bounded_axis(16, 2.0)))
        >>> u, v = flow.random_eddies(grid, jax.random.key(0), np.dtype("float32"))
        >>> u.shape, v.shape, bool((v[:, 0] == 0).all())
        ((32, 16), (32, 17), True)
    """
    along, across = grid.axes
    waves_along = min(max(int(along.length / (SHORTEST_WAVELENGTH * across.length)), 1), along.cells // 4)
    k = 2 * math.pi / along.length * np.arange(1, waves_along + 1)
    q = math.pi * np.arange(1, min(WAVES_ACROSS, across.cells // 4) + 1)
    phase = k * (along.points - along.faces[0])[:, None]
    waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    height = (across.faces[:, None] - across.faces[0]) / across.length
    profiles = np.sin(q * height) * np.sin(math.pi * height)
    profiles[-1] = 0.0
    weights = np.tile(1 / (k[:, None] ** 2 + (q / across.length) ** 2), (2, 1))

    amplitudes = jax.random.normal(key, weights.shape, dtype)
    weighted = amplitudes * like(amplitudes, weights)
    stream = precise_product(like(amplitudes, waves), weighted, like(amplitudes, profiles.T))
    return _of_unit_speed(curl(stream, grid), grid)


def spectrum_of_eddies(k: jax.Array, wavenumber: jax.Array | float) -> jax.Array:
    """Return the energy of `periodic_eddies` per wavenumber, but for a factor: ``(k/k_p)^4 exp(-2 (k/k_p)^2)``.

    Args:
        k: wavenumbers, of any shape.
        wavenumber: k_p, where the spectrum has its maximum.
    """
    return (k / wavenumber) ** 4 * jnp.exp(-2 * (k / wavenumber) ** 2)


def periodic_eddies(grid: Grid, key: jax.Array, wavenumber: jax.Array | float, dtype: jnp.dtype) -> Velocity:
    """Return a random velocity in a periodic box, with no divergence, no mean and root-mean-square speed 1.

        u = curl(A),   A_k = a_k sqrt(E(k)/k^(d - 1))/|k|,   E(k) as in `spectrum_of_eddies`

    with normal random a_k: of d = 2 axes the stream function, of 3 the vector potential on the edges of the cells.
    Divided by the wavenumber of the differences, the velocity on the faces has the spectrum E on the grid.

    Args:
        grid: periodic along all axes.
        key: random key.
        wavenumber: where the spectrum has its maximum, in radians per length, scalar.
        dtype: floating-point type of the velocity.

    Reference: Rogallo, NASA TM 81315 (1981), for the method; the spectrum of Orszag and Patterson,
    Phys. Rev. Lett. 28, 76 (1972), doi:10.1103/PhysRevLett.28.76.
    """
    dimension, cells = grid.dimension, grid.cells
    noise = jax.random.normal(key, (1 if dimension == 2 else 3, *cells), dtype)
    square, of_differences = jnp.zeros((), dtype), jnp.zeros((), dtype)
    for i, (axis, n) in enumerate(zip(grid.axes, cells, strict=True)):
        waves = np.fft.rfftfreq(n, 1 / n) if i == dimension - 1 else np.fft.fftfreq(n, 1 / n)
        k = 2 * math.pi / axis.length * waves
        width = axis.length / n
        square = square + like(noise, grid.along(k**2, i))
        of_differences = of_differences + like(noise, grid.along((2 / width * np.sin(k * width / 2)) ** 2, i))
    is_wave = square > 0
    k = jnp.sqrt(jnp.where(is_wave, square, 1))
    of_differences = jnp.sqrt(jnp.where(is_wave, of_differences, 1))
    energy = spectrum_of_eddies(k, wavenumber)
    # Powers of k over k_p: the result is the same in other units of length.
    amplitude = jnp.sqrt(energy / (k / wavenumber) ** (dimension - 1)) / (of_differences / wavenumber)
    axes = tuple(range(1, dimension + 1))
    filtered = jnp.fft.rfftn(noise, axes=axes) * jnp.where(is_wave, amplitude, 0)
    potential = jnp.fft.irfftn(filtered, s=cells, axes=axes).astype(dtype)
    if dimension == 2:
        return _of_unit_speed(curl(potential[0], grid), grid)
    a, b, c = potential
    slope = difference_at_centers
    velocity = (
        slope(c, 1, grid) - slope(b, 2, grid),
        slope(a, 2, grid) - slope(c, 0, grid),
        slope(b, 0, grid) - slope(a, 1, grid),
    )
    return _of_unit_speed(velocity, grid)


def _of_unit_speed(velocity: Velocity, grid: Grid) -> Velocity:
    scale = jnp.sqrt(2 * kinetic_energy(velocity, grid))
    return tuple(f / scale for f in velocity)
