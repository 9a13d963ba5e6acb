"""Coulomb potentials of pairs: plain, damped, and in a reaction field."""

import math

import jax
import jax.numpy as jnp

from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.molecular.potentials.pair import PairPotential

CHARGES = {
    "charge_i": formula("charge of one particle; left out, the `charge` of its species", unit="charge"),
    "charge_j": formula("charge of the other; left out, the `charge` of its species", unit="charge"),
}
CONSTANT = {
    "coulomb_constant": formula(
        "energy of two unit charges at unit distance: 138.935458 in kJ/mol, nm and elementary charges, 14.3996454 in "
        "eV and angstrom",
        1.0,
        unit="energy length / charge^2",
    )
}


@part(values={**CHARGES, **CONSTANT, "damping": formula("alpha", 0.0, unit="1 / length")})
def coulomb() -> PairPotential:
    """Return the Coulomb potential of two charges, which may be damped.

    ``U(r) = k q_i q_j erfc(alpha r) / r``. The parameters are the charges ``charge_i`` and ``charge_j``, the constant
    ``coulomb_constant`` k, and alpha, ``damping``: zero for the plain potential, which serves clusters in free space.

    In a periodic cell a sum over pairs that ends at a cut-off replaces the lattice sum by screening. With
    `simkit.molecular.potentials.force_shifted` it is the damped shifted force potential of Fennell and Gezelter; good
    values of alpha: 1.8 to 2.5 over the cut-off. `simkit.molecular.electrostatics.ewald` needs no such approximation.

    Example:
        >>> U = molecular.potentials.coulomb()
        >>> at = dict(charge_i=1.0, charge_j=-2.0, coulomb_constant=3.0, damping=0.0)
        >>> print(U.energy(jnp.array(2.0), **at), U.force(jnp.array(2.0), **at))
        -3.0 -1.5
        >>> shifted = molecular.potentials.force_shifted(U)
        >>> print(f"{shifted.force(jnp.array(8.9999), **at | {'damping': 0.2}, cutoff=9.0):.4f}")
        -0.0000

    Reference: Fennell, Gezelter, J. Chem. Phys. 124, 234104 (2006), doi:10.1063/1.2206581.
    """

    def energy(
        distance: jax.Array,
        *,
        charge_i: jax.Array,
        charge_j: jax.Array,
        coulomb_constant: jax.Array,
        damping: jax.Array,
    ) -> jax.Array:
        return coulomb_constant * charge_i * charge_j * jax.lax.erfc(damping * distance) / distance

    def force(
        distance: jax.Array,
        *,
        charge_i: jax.Array,
        charge_j: jax.Array,
        coulomb_constant: jax.Array,
        damping: jax.Array,
    ) -> jax.Array:
        damped = damping * distance
        screened = jax.lax.erfc(damped) / distance + 2 / math.sqrt(math.pi) * damping * jnp.exp(-damped * damped)
        return coulomb_constant * charge_i * charge_j * screened / distance

    return PairPotential(energy=energy, force=force)


@part(
    values={
        **CHARGES,
        **CONSTANT,
        "permittivity": formula("relative permittivity of the medium beyond the radius; 1e9 is a conductor"),
        "radius": formula("radius of the cavity, where energy and interaction end", unit="length"),
    },
    excludes=dict.fromkeys(("cutoff", "ending", "switch_on", "tail"), "which ends at its radius"),
)
def reaction_field() -> PairPotential:
    """Return the Coulomb potential in a cavity of a polarizable medium.

    ``U(r) = k q_i q_j (1 / r + k_rf r^2 - c_rf)`` for ``r < R``, zero beyond, with
    ``k_rf = (epsilon - 1) / ((2 epsilon + 1) R^3)`` and ``c_rf = 1 / R + k_rf R^2``, so that U(R) = 0. The parameters
    are ``charge_i``, ``charge_j``, the constant k, ``coulomb_constant``, epsilon, ``permittivity``, and R, ``radius``.
    The force is continuous at R for a conductor only. Good values of R: 3 to 4 molecular diameters. A pair that is
    excluded from pair sums does not feel its reaction field either.

    Example:
        >>> U = molecular.potentials.reaction_field()
        >>> at = dict(charge_i=1.0, charge_j=1.0, coulomb_constant=1.0, permittivity=1e9, radius=2.0)
        >>> print(f"{U.energy(jnp.array(1.0), **at):.4f} = 1 + 1 / 16 - 3 / 4")
        0.3125 = 1 + 1 / 16 - 3 / 4

    Reference: Tironi et al., J. Chem. Phys. 102, 5451 (1995), doi:10.1063/1.469273.
    """

    def energy(
        distance: jax.Array,
        *,
        charge_i: jax.Array,
        charge_j: jax.Array,
        coulomb_constant: jax.Array,
        permittivity: jax.Array,
        radius: jax.Array,
    ) -> jax.Array:
        stiffness = _field(permittivity, radius)
        shape = 1 / distance - 1 / radius + stiffness * (distance * distance - radius * radius)
        return jnp.where(distance < radius, coulomb_constant * charge_i * charge_j * shape, 0)

    def force(
        distance: jax.Array,
        *,
        charge_i: jax.Array,
        charge_j: jax.Array,
        coulomb_constant: jax.Array,
        permittivity: jax.Array,
        radius: jax.Array,
    ) -> jax.Array:
        slope = 1 / (distance * distance) - 2 * _field(permittivity, radius) * distance
        return jnp.where(distance < radius, coulomb_constant * charge_i * charge_j * slope, 0)

    def reach(*, radius: jax.Array, **others: jax.Array) -> jax.Array:
        del others
        return radius

    return PairPotential(energy=energy, force=force, reach=reach)


def _field(permittivity: jax.Array, radius: jax.Array) -> jax.Array:
    return (permittivity - 1) / ((2 * permittivity + 1) * radius**3)
