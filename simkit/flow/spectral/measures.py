"""Numbers that describe a flow made of Stokes modes on a base profile."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.barrier import computed_once
from simkit.flow.spectral.chebyshev import derivative_matrix, lobatto_points
from simkit.flow.spectral.galerkin import Base, fields, like
from simkit.flow.spectral.stokes_modes import StokesModes, gauss_points


def projection(modes: StokesModes, points: tuple[int, int], profile: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the amplitudes ``(n,)`` of the mean modes that come nearest to a profile u(y) (of degree below ny)."""
    y, weights = gauss_points(points)
    return modes.at(y, 1)[0] @ (weights * profile(y))


def mean_flow(modes: StokesModes, points: tuple[int, int]) -> Callable[[jax.Array, Base], dict[str, jax.Array]]:
    """Return ``(mean amplitudes (n,), base) -> {name: number}`` for the flow averaged along the channel.

    The names are ``bulk_velocity``, ``centerline_velocity``, ``energy`` (kinetic, per unit volume and density), and
    ``slopes (2,)``, du/dy on the lower and on the upper wall.
    """
    y, weights = gauss_points(points)
    at_gauss, at_center = modes.at(y, 1)[0], modes.at(np.zeros(1), 1)[0]
    at_walls = modes.at(np.array([-1.0, 1.0]), 2)[0]

    def run(mean: jax.Array, base: Base) -> dict[str, jax.Array]:
        profile = base(like(mean, y)) + mean @ like(mean, at_gauss)
        walls = jnp.asarray([-1, 1], mean.dtype)
        base_slopes = jax.jvp(base, (walls,), (jnp.ones_like(walls),))[1]
        return {
            "bulk_velocity": profile @ like(mean, weights) / 2,
            "centerline_velocity": (base(jnp.zeros(1, mean.dtype)) + mean @ like(mean, at_center))[0],
            "energy": profile**2 @ like(mean, weights) / 4,
            "slopes": base_slopes + mean @ like(mean, at_walls),
        }

    return run


def extremes(
    modes: StokesModes, points: tuple[int, int], length: float
) -> Callable[[jax.Array, Base, jax.Array], dict[str, jax.Array]]:
    """Return ``(amplitudes, base, time step) -> {"divergence": ..., "courant_number": ...}``, largest over the points.

    The divergence is that of the values of u and v at nx by ny points, differentiated as a Fourier series and as a
    polynomial. The Courant number is ``dt max(|u|/dx + |v|/dy)`` with the distances between those points.
    """
    y = lobatto_points(points[1])
    velocity = fields(modes, np.arange(points[0]) * length / points[0], y)
    turns = 2j * np.pi / length * np.fft.fftfreq(points[0], 1 / points[0])[:, None]
    along = np.real(np.fft.ifft(turns * np.fft.fft(np.eye(points[0]), axis=0), axis=0))
    across = derivative_matrix(points[1])

    def run(amplitudes: jax.Array, base: Base, time_step: jax.Array) -> dict[str, jax.Array]:
        u, v, _ = velocity(amplitudes)
        divergence = jnp.matmul(like(u, along), u, precision="highest")
        divergence += jnp.matmul(v, like(v, across.T), precision="highest")
        # The barrier keeps this from being fused differently, and so rounded differently, in different programs.
        total, v = computed_once((u + base(like(u, y)), v))
        crossed = jnp.abs(total) / (length / points[0]) + jnp.abs(v) / like(v, np.gradient(y))
        return {"divergence": jnp.max(jnp.abs(divergence)), "courant_number": time_step * jnp.max(crossed)}

    return run


def turn(before: jax.Array, after: jax.Array) -> jax.Array:
    """Return the phase angle that a harmonic with amplitudes ``(2, n)`` travels downstream, in radians, at most pi."""
    sine = jnp.sum(before[0] * after[1] - before[1] * after[0])
    cosine = jnp.sum(before * after)
    still = sine**2 + cosine**2 == 0
    return jnp.arctan2(jnp.where(still, 0, sine), jnp.where(still, 1, cosine))


def growth(before: jax.Array, after: jax.Array) -> jax.Array:
    """Return half the logarithm of the ratio of two energies, that of the amplitudes; zero without energy."""
    none = (before <= 0) | (after <= 0)
    return jnp.log(jnp.where(none, 1, after) / jnp.where(none, 1, before)) / 2
