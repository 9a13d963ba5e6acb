"""Energies of bonds, angles and dihedrals by name."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.parts import part
from simkit.core.settings import arguments, formula, whole
from simkit.molecular.potentials.pair import PairPotential, pair_potential


class AngularPotential(NamedTuple):
    """An energy of one angle; parameters broadcast against the angles.

    Attributes:
        energy: ``(angle, **parameters) -> U``, elementwise; the angle in radians, of a dihedral from -pi to pi.
        stiffness: ``(**parameters) -> `` the largest ``U''``, energy, from which minimizers take their first step.
        rest: ``(**parameters) -> `` angle in which molecules are drawn at random starts; ``None`` for any.

    Example:
        >>> bend = molecular.bonded.AngularPotential(lambda theta, k: k * (1 + jnp.cos(theta)), lambda k: k)
        >>> print(f"{bend.energy(jnp.array(np.pi / 2), k=2.0):.1f}")
        2.0
    """

    energy: Callable[..., jax.Array]
    stiffness: Callable[..., jax.Array]
    rest: Callable[..., jax.Array] | None = None


BOND_STIFFNESS = formula("stiffness, the curvature of the energy", unit="energy / length^2", bounds=NOT_NEGATIVE)


@part(
    values={
        "stiffness": BOND_STIFFNESS,
        "length": formula("distance of the minimum", unit="length", bounds=NOT_NEGATIVE),
    }
)
def harmonic_bond() -> PairPotential:
    """Return the energy ``U(r) = k / 2 (r - r0)^2`` of a bond.

    The parameters are ``stiffness`` k and ``length`` r0. Other programs write the energy without the half: LAMMPS's
    coefficient K is k / 2. With length zero it is the spring of an ideal chain, whose force is smooth at r = 0.

    Example:
        >>> U = molecular.bonded.harmonic_bond()
        >>> float(U.energy(jnp.array(1.5), stiffness=8.0, length=1.0))
        1.0
    """
    smooth = pair_potential(lambda r, *, stiffness, length: stiffness / 2 * (r - length) ** 2)
    return smooth._replace(bond=lambda *, stiffness, length: (length, stiffness))


@part(
    values={
        "stiffness": BOND_STIFFNESS,
        "extent": formula("distance at which the energy is infinite", unit="length", bounds=POSITIVE),
    }
)
def fene() -> PairPotential:
    """Return the finitely extensible nonlinear elastic energy, ``U(r) = -k R^2 / 2 log(1 - (r / R)^2)``.

    The parameters are ``stiffness`` k and ``extent`` R; at a distance of R or more the energy and its derivatives are
    NaN. Bead-spring chains add a repulsion of all beads, bonded ones too: Weeks-Chandler-Andersen without exclusions.
    Good values: k = 30 epsilon / sigma^2 and R = 1.5 sigma.

    Example:
        >>> U = molecular.bonded.fene()
        >>> print(f"{U.energy(jnp.array(0.97), stiffness=30.0, extent=1.5):.3f}")
        18.279

    Reference: Kremer, Grest, J. Chem. Phys. 92, 5057 (1990), doi:10.1063/1.458541.
    """

    def energy(distance: jax.Array, *, stiffness: jax.Array, extent: jax.Array) -> jax.Array:
        left = 1 - (distance / extent) ** 2
        return -stiffness * extent**2 / 2 * jnp.log(jnp.where(left > 0, left, jnp.nan))

    smooth = pair_potential(energy)
    return smooth._replace(bond=lambda *, stiffness, extent: (extent, stiffness))


ANGLE_STIFFNESS = formula("stiffness, the curvature of the energy", unit="energy / rad^2", bounds=NOT_NEGATIVE)


@part(
    values={
        "stiffness": ANGLE_STIFFNESS,
        "angle": formula("angle of the minimum", unit="rad", bounds=(0.0, np.pi)),
    }
)
def harmonic_angle() -> AngularPotential:
    """Return the energy ``U(theta) = k / 2 (theta - theta0)^2`` of an angle.

    The parameters are ``stiffness`` k and ``angle`` theta0, radians. The force is smooth for theta0 = pi, too.

    Example:
        >>> U = molecular.bonded.harmonic_angle()
        >>> print(f"{U.energy(jnp.array(2.0), stiffness=8.0, angle=1.5):.1f}")
        1.0
    """
    return AngularPotential(
        lambda theta, *, stiffness, angle: stiffness / 2 * (theta - angle) ** 2,
        lambda *, stiffness, angle: stiffness,
        lambda *, stiffness, angle: angle,
    )


PERIODICITY = whole("number n of minima in a full turn", 1, low=1, high=12)


@part(
    keys={"periodicity": PERIODICITY},
    values={
        "strength": formula("half the barrier", unit="energy"),
        "phase": formula("phase, n times the angle of a maximum", 0.0, unit="rad"),
    },
)
@arguments(periodicity=PERIODICITY)
def periodic_dihedral(periodicity: int = 1) -> AngularPotential:
    """Return the energy ``U(phi) = k (1 + cos(n phi - delta))`` of a dihedral.

    The parameters are ``strength`` k and ``phase`` delta. The dihedral is 0 for the first and the fourth atom on one
    side (cis) and pi in trans, positive if the fourth is turned clockwise as seen along the middle bond.

    Args:
        periodicity: n.

    Example:
        >>> U = molecular.bonded.periodic_dihedral(3)
        >>> print(f"{U.energy(jnp.array(np.pi / 3), strength=2.0, phase=0.0):.1f}")
        0.0
    """
    return AngularPotential(
        lambda phi, *, strength, phase: strength * (1 + jnp.cos(periodicity * phi - phase)),
        lambda *, strength, phase: periodicity**2 * jnp.abs(strength),
    )


COEFFICIENTS = tuple(f"c{power}" for power in range(6))


@part(values={name: formula(f"coefficient of cos(psi)^{name[1]}", 0.0, unit="energy") for name in COEFFICIENTS})
def ryckaert_bellemans() -> AngularPotential:
    """Return the energy ``U(phi) = sum_n c_n cos(psi)^n`` of a dihedral, with ``psi = phi - pi`` zero in trans.

    The parameters are ``c0`` to ``c5``.

    Example:
        >>> U = molecular.bonded.ryckaert_bellemans()
        >>> c = dict(c0=9.28, c1=12.16, c2=-13.12, c3=-3.06, c4=26.24, c5=-31.5)  # kJ/mol, butane
        >>> print([f"{U.energy(jnp.array(phi), **c):.2f}" for phi in (np.pi, np.pi / 3)])
        ['0.00', '2.93']

    Reference: Ryckaert, Bellemans, Faraday Discuss. Chem. Soc. 66, 95 (1978), doi:10.1039/dc9786600095.
    """

    def energy(phi: jax.Array, **coefficients: jax.Array) -> jax.Array:
        x, total = -jnp.cos(phi), coefficients[COEFFICIENTS[-1]]
        for name in reversed(COEFFICIENTS[:-1]):
            total = coefficients[name] + x * total
        return total

    def stiffness(**coefficients: jax.Array) -> jax.Array:
        # |d2 cos^n / dphi2| is at most n^2.
        return sum(power**2 * jnp.abs(coefficients[name]) for power, name in enumerate(COEFFICIENTS))  # type: ignore[return-value]

    return AngularPotential(energy, stiffness)


@part(
    values={
        "stiffness": ANGLE_STIFFNESS,
        "angle": formula("angle of the minimum", 0.0, unit="rad", bounds=(-np.pi, np.pi)),
    }
)
def harmonic_dihedral() -> AngularPotential:
    """Return the energy ``U(phi) = k / 2 (phi - phi0)^2``, of the shorter way around; usual for impropers.

    The parameters are ``stiffness`` k and ``angle`` phi0, radians.

    Example:
        >>> U = molecular.bonded.harmonic_dihedral()
        >>> print(f"{U.energy(jnp.array(3.0), stiffness=2.0, angle=-3.0):.4f} = {(2 * np.pi - 6) ** 2:.4f}")
        0.0802 = 0.0802
    """

    def energy(phi: jax.Array, *, stiffness: jax.Array, angle: jax.Array) -> jax.Array:
        away = phi - angle
        return stiffness / 2 * (away - 2 * np.pi * jnp.round(away / (2 * np.pi))) ** 2

    return AngularPotential(energy, lambda *, stiffness, angle: stiffness)
