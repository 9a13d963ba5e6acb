"""Lennard-Jones and Mie potentials, with tail corrections of energy and pressure for a cut-off."""

import math

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.errors import UserError
from simkit.molecular.potentials.pair import PairPotential, power

# Largest (sigma / r)^n. Forces of this size and their squares do not overflow float32.
STEEPEST = 1e12


@part(
    values={
        "epsilon": formula("depth of the minimum", unit="energy"),
        "sigma": formula("distance at which the energy crosses zero", unit="length"),
    },
)
def lennard_jones() -> PairPotential:
    """Return the 12-6 potential of simple liquids and rare gases.

    ``U(r) = 4 epsilon ((sigma / r)^12 - (sigma / r)^6)``, with its minimum ``-epsilon`` at ``2^(1/6) sigma``. The
    parameters are ``epsilon``, the depth, and ``sigma``, the distance at which the energy crosses zero.

    Below 0.1 sigma, where U exceeds 4e12 epsilon, the energy is a parabola with its maximum at distance zero, so that
    forces of overlapping random starts are finite, in float32 too.

    Example:
        >>> U = molecular.potentials.lennard_jones()
        >>> r = jnp.array([1.0, 2 ** (1 / 6), 2.5])
        >>> print(np.round(U.energy(r, epsilon=1.0, sigma=1.0), 4))
        [ 0.     -1.     -0.0163]

    Reference: Lennard-Jones, Proc. Phys. Soc. 43, 461 (1931), doi:10.1088/0959-5309/43/5/301.
    """
    return mie(12, 6)


def mie(repulsion: float = 12, attraction: float = 6) -> PairPotential:
    """Return the Mie or n-m potential, Lennard-Jones with other exponents.

    ``U(r) = C epsilon ((sigma / r)^n - (sigma / r)^m)`` with ``C = n / (n - m) (n / m)^(m / (n - m))``, so that the
    minimum is ``-epsilon`` at ``(n / m)^(1 / (n - m)) sigma``. Parameters as for `lennard_jones`. Where
    ``(sigma / r)^n`` exceeds 1e12 the energy is a parabola of the same slope, with its maximum at distance zero.

    Args:
        repulsion: n. Good values: 9 to 36.
        attraction: m, positive and below n. In three dimensions only m > 3 gives an energy proportional to N.

    Raises:
        UserError: if not ``0 < attraction < repulsion``.

    Example:
        >>> U = molecular.potentials.mie(9, 3)
        >>> print(f"{U.energy(jnp.array(3 ** (1 / 6)), epsilon=2.0, sigma=1.0):.4f}")
        -2.0000

    Reference: Mie, Ann. Phys. 316, 657 (1903), doi:10.1002/andp.19033160802.
    """
    if not 0 < attraction < repulsion:
        raise UserError(f"attraction = {attraction} is not between 0 and repulsion = {repulsion}; choose 12 and 6")
    n, m = repulsion, attraction
    prefactor = n / (n - m) * (n / m) ** (m / (n - m))
    core = STEEPEST ** (-1 / n)

    def powers(squared: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        # One division, which costs as much as all else.
        inverse = 1 / jnp.maximum(squared, (core * sigma) ** 2)
        ratio = sigma * sigma * inverse
        if n == 2 * m:
            low = power(ratio, m / 2)
            return inverse, low * low, low
        return inverse, power(ratio, n / 2), power(ratio, m / 2)

    def energy(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        squared = distance * distance
        inverse, high, low = powers(squared, sigma)
        inside = (jnp.maximum(squared, (core * sigma) ** 2) - squared) * inverse
        return prefactor * epsilon * (high - low + (n * high - m * low) * inside / 2)

    def force(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        return distance * force_over_distance(distance * distance, epsilon=epsilon, sigma=sigma)

    def force_over_distance(squared_distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        inverse, high, low = powers(squared_distance, sigma)
        return prefactor * epsilon * (n * high - m * low) * inverse

    def bond(*, epsilon: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array]:
        length = (n / m) ** (1 / (n - m)) * sigma
        return length, n * m * epsilon / length**2

    return PairPotential(energy=energy, force=force, force_over_distance=force_over_distance, bond=bond)


def tail_energy(density: jax.Array, *, cutoff: jax.Array, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
    """Return the tail correction of the energy per particle of the truncated 12-6 potential.

    ``(8 / 3) pi rho epsilon sigma^3 ((1 / 3) (sigma / r_c)^9 - (sigma / r_c)^3)``: the integral of U over all partners
    beyond the cut-off at uniform density in three dimensions.

    Args:
        density: rho, particles per volume.
        cutoff: r_c, length.
        epsilon: energy.
        sigma: length.

    Returns:
        Energy, to be added per particle.

    Example:
        >>> print(f"{molecular.potentials.tail_energy(0.8, cutoff=2.5, epsilon=1.0, sigma=1.0):.3f} per particle")
        -0.428 per particle

    Reference: Allen, Tildesley, Computer Simulation of Liquids, 2nd ed., Oxford (2017), section 2.8,
    doi:10.1093/oso/9780198803195.001.0001.
    """
    cube = (sigma / cutoff) ** 3
    return 8 / 3 * math.pi * density * sigma**3 * epsilon * (cube**3 / 3 - cube)


def tail_pressure(density: jax.Array, *, cutoff: jax.Array, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
    """Return the tail correction of the pressure of the truncated 12-6 potential.

    ``(16 / 3) pi rho^2 epsilon sigma^3 ((2 / 3) (sigma / r_c)^9 - (sigma / r_c)^3)``: the virial of all partners beyond
    the cut-off at uniform density in three dimensions.

    Args:
        density: rho, particles per volume.
        cutoff: r_c, length.
        epsilon: energy.
        sigma: length.

    Returns:
        Energy / volume, to be added to the pressure.

    Example:
        >>> print(f"{molecular.potentials.tail_pressure(0.8, cutoff=2.5, epsilon=1.0, sigma=1.0):.3f}")
        -0.684

    Reference: as for `tail_energy`.
    """
    cube = (sigma / cutoff) ** 3
    return 16 / 3 * math.pi * density**2 * sigma**3 * epsilon * (2 * cube**3 / 3 - cube)
