"""Soft-sphere potential: elastic repulsion of overlapping pairs."""

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import arguments, formula, number
from simkit.molecular.potentials.pair import PairPotential, power

# Overlap at which the stiffness of a contact is taken: the curvature of exponents above 2 vanishes at first contact.
OVERLAP = 0.3


EXPONENT = number("2 (harmonic) or 2.5 (Hertzian)", 2.0, (2.0, 64.0))


@part(
    keys={"exponent": EXPONENT},
    values={
        "epsilon": formula("energy scale of an overlap", unit="energy"),
        "sigma": formula("distance of first contact", unit="length"),
    },
    excludes={"cutoff": "which ends by itself"},
)
@arguments(exponent=EXPONENT)
def soft_sphere(exponent: float = 2.0) -> PairPotential:
    """Return the repulsion of two elastic spheres that overlap.

    ``U(r) = (epsilon / alpha) (1 - r / sigma)^alpha`` for ``r < sigma``, zero beyond. The parameters are ``epsilon``,
    the energy scale, and ``sigma``, the distance of first contact (the mean diameter of the pair).

    Args:
        exponent: alpha; 2 is a linear spring, 2.5 Hertzian contact. At least 2, so that the stiffness stays finite.

    Example:
        >>> U = molecular.potentials.soft_sphere(exponent=2.0)
        >>> [float(U.energy(jnp.array(r), epsilon=8.0, sigma=1.0)) for r in (0.5, 1.0, 1.5)]
        [1.0, 0.0, 0.0]

    Reference: O'Hern, Silbert, Liu, Nagel, Phys. Rev. E 68, 011306 (2003), doi:10.1103/PhysRevE.68.011306.
    """

    def overlap(distance: jax.Array, sigma: jax.Array) -> jax.Array:
        return jnp.where(distance < sigma, 1 - distance / sigma, 0)

    def energy(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        return epsilon / exponent * power(overlap(distance, sigma), exponent)

    def force(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        return epsilon / sigma * power(overlap(distance, sigma), exponent - 1)

    def bond(*, epsilon: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array]:
        return sigma, epsilon * (exponent - 1) * OVERLAP ** (exponent - 2) / sigma**2

    def reach(*, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        del epsilon
        return sigma

    return PairPotential(energy=energy, force=force, bond=bond, reach=reach)
