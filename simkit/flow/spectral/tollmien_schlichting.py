"""The Tollmien-Schlichting wave in terms of Stokes modes, as a smooth function of the Reynolds number."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from simkit.errors import UserError
from simkit.flow.spectral.galerkin import linear_advection
from simkit.flow.spectral.stokes_modes import StokesModes

# Wavelengths for which the wave can be continued over all these Reynolds numbers, from well below the critical 5772.
LENGTHS = (5.0, 16.0)
REYNOLDS = (2000.0, 50000.0)
REFERENCE = 10000.0
# Interpolation in log(Re): its error falls by ten or more for every three nodes, to 1e-8 or less at 32.
NODES = 32


def tollmien_schlichting_wave(
    modes: StokesModes, points: tuple[int, int], length: float
) -> Callable[[jax.Array], jax.Array]:
    """Return ``reynolds -> amplitudes (2, n)`` of the first harmonic: an eigenmode of the discrete flow.

    Eigenvectors are computed here, once, at Chebyshev nodes in the logarithm of the Reynolds number; the function
    interpolates, so it is differentiable and holds no eigenvalue solver. Beyond 2000 to 50000 it returns the wave at
    the nearer end. The modes' energy ``sum(amplitudes^2)`` is 1.

    Args:
        modes: the modes.
        points: ``(nx, ny)`` of those modes.
        length: wavelength, the period of the modes, 5 to 16 half-widths.

    Raises:
        UserError: if the wavelength is out of range.
    """
    if not LENGTHS[0] <= length <= LENGTHS[1]:
        raise UserError(
            f"length = {length:g} is out of [{LENGTHS[0]:g}, {LENGTHS[1]:g}], where Tollmien-Schlichting waves are; "
            "choose for example length = 6.283185307179586, or start = 'laminar'"
        )
    operator, damping = linear_advection(modes, 1, points), np.diag(modes.decay[1])
    nodes = np.cos((np.arange(NODES) + 0.5) * np.pi / NODES)
    low, high = math.log(REYNOLDS[0]), math.log(REYNOLDS[1])
    reynolds = np.exp(low + (nodes + 1) / 2 * (high - low))
    eigenvalues, vectors = np.linalg.eig(operator - damping / REFERENCE)
    start = vectors[:, np.argmax(eigenvalues.real)]
    start = start / np.linalg.norm(start) * np.exp(-1j * np.angle(start[0]))
    table = np.empty((NODES, len(start)), dtype=complex)
    # From the reference node outward in both directions, each wave selected by its overlap with that of its neighbor.
    above = np.flatnonzero(reynolds >= REFERENCE)[::-1]
    for chain in (above, np.flatnonzero(reynolds < REFERENCE)):
        vector = start
        for node in chain:
            _, vectors = np.linalg.eig(operator - damping / reynolds[node])
            vector = vectors[:, np.argmax(np.abs(vector.conj() @ vectors))]
            table[node] = vector / (start.conj() @ vector)
    coefficients = np.linalg.solve(chebyshev.chebvander(nodes, NODES - 1), table)
    parts = np.stack([coefficients.real, -coefficients.imag], axis=1)  # amplitudes A = a - i b

    def run(reynolds: jax.Array) -> jax.Array:
        place = (2 * jnp.log(reynolds) - (low + high)) / (high - low)
        angle = jnp.arccos(jnp.clip(place, -1 + 1e-6, 1 - 1e-6))
        polynomials = jnp.cos(angle * np.arange(NODES))
        amplitudes = jnp.tensordot(polynomials, jnp.asarray(parts, reynolds.dtype), 1, precision="highest")
        return amplitudes / jnp.sqrt(jnp.sum(amplitudes**2))

    return run
