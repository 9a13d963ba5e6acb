"""Buckingham potential of ions and molecules: exponential repulsion and dispersion."""

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.molecular.potentials.pair import PairPotential

# Distance in units of rho below which the dispersion stays constant: far inside the barrier of any ion.
CORE = 0.1


@part(
    values={
        "repulsion": formula("A, energy of the repulsion continued to distance zero", unit="energy"),
        "rho": formula("length over which the repulsion falls to 1 / e", unit="length"),
        "dispersion": formula("C; zero for the repulsion of Born and Mayer", 0.0, unit="energy length^6"),
    },
)
def buckingham() -> PairPotential:
    """Return the exp-6 potential of Buckingham; without dispersion, the repulsion of Born and Mayer.

    ``U(r) = A exp(-r / rho) - C / r^6``. The parameters are ``repulsion`` A, ``rho`` and ``dispersion`` C. With
    dispersion U falls without bound toward distance zero, inside a barrier that is typically at 3 to 4 rho: starts must
    be outside. Below 0.1 rho the dispersion stays constant.

    Example:
        >>> U = molecular.potentials.buckingham()
        >>> print(f"{U.energy(jnp.array(2.0), repulsion=np.e**4, rho=0.5, dispersion=64.0):.4f}")
        0.0000

    Reference: Buckingham, Proc. R. Soc. A 168, 264 (1938), doi:10.1098/rspa.1938.0173.
    """

    def energy(distance: jax.Array, *, repulsion: jax.Array, rho: jax.Array, dispersion: jax.Array) -> jax.Array:
        return repulsion * jnp.exp(-distance / rho) - dispersion / jnp.maximum(distance, CORE * rho) ** 6

    def force(distance: jax.Array, *, repulsion: jax.Array, rho: jax.Array, dispersion: jax.Array) -> jax.Array:
        attraction = jnp.where(distance > CORE * rho, 6 * dispersion / jnp.maximum(distance, CORE * rho) ** 7, 0)
        return repulsion / rho * jnp.exp(-distance / rho) - attraction

    return PairPotential(energy=energy, force=force)
