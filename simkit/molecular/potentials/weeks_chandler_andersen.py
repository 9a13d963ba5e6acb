"""Weeks-Chandler-Andersen potential, the repulsive part of Lennard-Jones."""

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.molecular.potentials.lennard_jones import lennard_jones
from simkit.molecular.potentials.pair import PairPotential

# The minimum of the 12-6 potential in units of sigma.
REACH = 2 ** (1 / 6)


@part(
    values={
        "epsilon": formula("depth of the potential that is cut at its minimum", unit="energy"),
        "sigma": formula("distance at which that potential crosses zero", unit="length"),
    },
    excludes={"cutoff": "which ends by itself"},
)
def weeks_chandler_andersen() -> PairPotential:
    """Return the Lennard-Jones potential, shifted by its depth and truncated at its minimum.

    ``U(r) = 4 epsilon ((sigma / r)^12 - (sigma / r)^6) + epsilon`` for ``r < 2^(1/6) sigma``, zero beyond; energy and
    force are continuous. Parameters and behavior at small distances as for `lennard_jones`.

    Example:
        >>> U = molecular.potentials.weeks_chandler_andersen()
        >>> print(U.energy(jnp.array([1.0, 1.2]), epsilon=1.0, sigma=1.0))
        [1. 0.]

    Reference: Weeks, Chandler, Andersen, J. Chem. Phys. 54, 5237 (1971), doi:10.1063/1.1674820.
    """
    full = lennard_jones()

    def energy(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        shifted = full.energy(distance, epsilon=epsilon, sigma=sigma) + epsilon
        return jnp.where(distance < REACH * sigma, shifted, 0)

    def force(distance: jax.Array, *, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        return jnp.where(distance < REACH * sigma, full.force(distance, epsilon=epsilon, sigma=sigma), 0)

    def reach(*, epsilon: jax.Array, sigma: jax.Array) -> jax.Array:
        del epsilon
        return REACH * sigma

    # The range is the minimum of the 12-6 potential, and the curvature just within is its own.
    return PairPotential(energy=energy, force=force, bond=full.bond, reach=reach)
