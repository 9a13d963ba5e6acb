"""Morse potentials of clusters and of diatomic molecules."""

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.molecular.potentials.pair import PairPotential


@part(
    values={
        "epsilon": formula("depth of the minimum", unit="energy"),
        "sigma": formula("distance of the minimum", unit="length"),
        "rho": formula("inverse range in units of 1 / sigma"),
    }
)
def morse() -> PairPotential:
    """Return the Morse potential of clusters, with a dimensionless range.

    ``U(r) = epsilon x (x - 2)`` with ``x = exp(rho (1 - r / sigma))``. The minimum is ``-epsilon`` at ``sigma``. The
    parameters are ``epsilon``, the depth, ``sigma``, the distance of the minimum, and ``rho``, the inverse range in
    units of 1 / sigma. At distance zero U is about ``epsilon exp(2 rho)``, finite in float32 up to rho = 40.

    Good values of rho: 3 (long range), 6 (the curvature of Lennard-Jones), 10 and 14 (sticky spheres).

    Example:
        >>> U = molecular.potentials.morse()
        >>> at = {"epsilon": 1.0, "sigma": 1.0, "rho": 6.0}
        >>> print(f"{U.energy(jnp.array(1.0), **at):.4f}, stiffness {U.bond(**at)[1]:.0f} = 2 rho^2")
        -1.0000, stiffness 72 = 2 rho^2

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

    def bond(*, epsilon: jax.Array, sigma: jax.Array, rho: jax.Array) -> tuple[jax.Array, jax.Array]:
        return sigma, 2 * epsilon * (rho / sigma) ** 2

    return PairPotential(energy=energy, force=force, bond=bond)


def morse_diatomic() -> PairPotential:
    """Return the Morse potential of diatomic molecules, with its range as a length.

    ``U(r) = D x (x - 2)`` with ``x = exp(-alpha (r - r0))``, which is `morse` for ``rho = alpha r0``. The parameters
    are ``depth`` D, energy, ``alpha``, 1 / length, and ``bond_length`` r0. The stiffness of the bond is
    ``2 D alpha^2``.

    Example:
        >>> hydrogen = molecular.potentials.morse_diatomic()
        >>> length, stiffness = hydrogen.bond(depth=4.75, alpha=1.94, bond_length=0.741)
        >>> print(f"{length} A, 2 D alpha^2 = {stiffness:.2f} eV/A^2")
        0.741 A, 2 D alpha^2 = 35.75 eV/A^2

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

    def bond(*, depth: jax.Array, alpha: jax.Array, bond_length: jax.Array) -> tuple[jax.Array, jax.Array]:
        return bond_length, 2 * depth * alpha**2

    return PairPotential(energy=energy, force=force, bond=bond)
