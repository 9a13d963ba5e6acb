"""The Morse potential: a bond of adjustable range that can break."""

import jax
import jax.numpy as jnp

from simkit.molecular.potentials.pair import PairPotential


def morse() -> PairPotential:
    """Return the Morse potential as it is used for clusters, its range given by a pure number.

    ``U(r) = epsilon x (x - 2)`` with ``x = exp(rho (1 - r / sigma))``. The minimum is ``-epsilon`` at ``sigma``. The
    parameters are ``epsilon``, the depth, ``sigma``, the distance of the minimum, and ``rho``, which is large for a
    short range. Finite at distance zero, ``epsilon exp(2 rho)`` or so: up to rho = 40 in float32.

    Good values of rho: 3 (long range), 6 (the curvature of Lennard-Jones), 10 and 14 (sticky spheres).

    Reference: Doye, Wales, J. Chem. Soc., Faraday Trans. 93, 4233 (1997), doi:10.1039/a706221d.
    """

    def factor(distance: jax.Array, sigma: jax.Array, rho: jax.Array) -> jax.Array:
        return jnp.exp(rho * (1 - distance / sigma))

    def energy(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array, rho: jax.Array) -> jax.Array:
        x = factor(distance, sigma, rho)
        return epsilon * x * (x - 2)

    def force(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array, rho: jax.Array) -> jax.Array:
        x = factor(distance, sigma, rho)
        return 2 * epsilon * rho / sigma * x * (x - 1)

    return PairPotential(energy=energy, force=force)


def morse_diatomic() -> PairPotential:
    """Return the Morse potential as it is used for molecules, its range given by a width.

    ``U(r) = D x (x - 2)`` with ``x = exp(-alpha (r - r0))``, which is `morse` for ``rho = alpha r0``. The parameters
    are ``depth`` D, energy, ``alpha``, 1 / length, and ``bond_length`` r0. The stiffness of the bond is
    ``2 D alpha^2``.

    Reference: Morse, Phys. Rev. 34, 57 (1929), doi:10.1103/PhysRev.34.57.
    """

    def factor(distance: jax.Array, alpha: jax.Array, bond_length: jax.Array) -> jax.Array:
        return jnp.exp(-alpha * (distance - bond_length))

    def energy(distance: jax.Array, *, depth: jax.Array, alpha: jax.Array, bond_length: jax.Array) -> jax.Array:
        x = factor(distance, alpha, bond_length)
        return depth * x * (x - 2)

    def force(distance: jax.Array, *, depth: jax.Array, alpha: jax.Array, bond_length: jax.Array) -> jax.Array:
        x = factor(distance, alpha, bond_length)
        return 2 * depth * alpha * x * (x - 1)

    return PairPotential(energy=energy, force=force)
