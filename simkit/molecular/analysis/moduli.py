"""Bulk and shear moduli from elastic constants, for single directions and as bounds for polycrystals and glasses."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.molecular.analysis.elasticity import voigt_pairs


class Bounds(NamedTuple):
    """Bounds on a modulus of an isotropic polycrystal.

    Attributes:
        voigt: for equal strain of all grains; the upper bound.
        reuss: for equal stress of all grains; the lower bound.
    """

    voigt: jax.Array
    reuss: jax.Array

    @property
    def hill(self) -> jax.Array:
        """The mean of the bounds, the usual estimate."""
        return (self.voigt + self.reuss) / 2


def bulk_modulus(stiffness: jax.Array) -> Bounds:
    """Return the bulk modulus; both bounds are ``K = -V dp/dV`` if the crystal is cubic.

    ``K_V = C_aabb / d^2`` and ``1 / K_R = S_aabb`` with S the inverse of the stiffness C. In two dimensions they are
    energies per area.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.

    Reference: Hill, Proc. Phys. Soc. A 65, 349 (1952), doi:10.1088/0370-1298/65/5/307.
    """
    operator, volumetric, _ = _operator(stiffness)
    compliance = jnp.linalg.inv(operator)
    return Bounds(voigt=voigt_bulk_modulus(stiffness), reuss=1 / (volumetric @ compliance @ volumetric))


def shear_modulus(stiffness: jax.Array) -> Bounds:
    """Return the shear modulus; both bounds are equal if the material is isotropic.

    ``G_V = (C_abab - C_aabb / d) / m`` and ``1 / G_R = 4 (S_abab - S_aabb / d) / m`` with ``m = (d - 1) (d + 2)`` and S
    the inverse of the stiffness C.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.

    Reference: Hill, Proc. Phys. Soc. A 65, 349 (1952), doi:10.1088/0370-1298/65/5/307.
    """
    operator, volumetric, dimension = _operator(stiffness)
    compliance = _deviatoric(jnp.linalg.inv(operator), volumetric, dimension)
    return Bounds(voigt=voigt_shear_modulus(stiffness), reuss=_shears(dimension) / (4 * compliance))


def voigt_bulk_modulus(stiffness: jax.Array) -> jax.Array:
    """Return the upper bound of `bulk_modulus` alone, without a matrix inverse and so without a library call.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.
    """
    operator, volumetric, dimension = _operator(stiffness)
    return volumetric @ operator @ volumetric / dimension**2


def voigt_shear_modulus(stiffness: jax.Array) -> jax.Array:
    """Return the upper bound of `shear_modulus` alone, the mean over all directions, without a matrix inverse.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.
    """
    operator, volumetric, dimension = _operator(stiffness)
    return _deviatoric(operator, volumetric, dimension) / _shears(dimension)


def directional_shear_modulus(stiffness: jax.Array, direction: jax.Array, normal: jax.Array) -> jax.Array:
    """Return the shear modulus of one slip system, ``G = C_abcd s_a n_b s_c n_d``, with all other strains zero.

    Args:
        stiffness: energy / length^d, (n, n) in Voigt notation, n = 3 or 6.
        direction: s, of slip, (d,), of any length.
        normal: n, of the slip plane, (d,), perpendicular to the direction, of any length.
    """
    direction, normal = jnp.asarray(direction, stiffness.dtype), jnp.asarray(normal, stiffness.dtype)
    slide = jnp.outer(direction / jnp.linalg.norm(direction), normal / jnp.linalg.norm(normal))
    # Engineering shear strain: the sum of both tensor components.
    strain = jnp.stack([slide[a, a] if a == b else slide[a, b] + slide[b, a] for a, b in voigt_pairs(len(slide))])
    return strain @ stiffness @ strain


def _deviatoric(matrix: jax.Array, volumetric: jax.Array, dimension: int) -> jax.Array:
    return jnp.trace(matrix) - volumetric @ matrix @ volumetric / dimension


def _shears(dimension: int) -> int:
    """Return twice the number of independent shears."""
    return (dimension - 1) * (dimension + 2)


def _operator(stiffness: jax.Array) -> tuple[jax.Array, jax.Array, int]:
    """Return the stiffness as an operator on strains in an orthonormal basis, the volumetric strain, and d."""
    dimension = 2 if len(stiffness) == 3 else 3
    is_volumetric = jnp.arange(len(stiffness)) < dimension
    weight = jnp.where(is_volumetric, 1, jnp.sqrt(jnp.asarray(2, stiffness.dtype)))
    return stiffness * weight[:, None] * weight, is_volumetric.astype(stiffness.dtype), dimension
