"""Pair potentials: interface, potentials from an energy function, tables of pair parameters, cut-offs."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.formulation import root


class PairPotential(NamedTuple):
    """A pair potential U(r); parameters broadcast against the distances, so each pair may have its own.

    Attributes:
        energy: ``(distance, **parameters) -> U``.
        force: ``(distance, **parameters) -> -dU/dr``, positive where the pair repels.
        force_over_distance: ``(squared_distance, **parameters) -> -U'(r) / r``, finite down to distance zero, if it
            needs no square root; otherwise ``None``.
        bond: ``(**parameters) -> (length, stiffness)``: the distance of the minimum and ``U''`` there; of a repulsion,
            its range and a typical ``U''`` within. Minimizers take their first step from it. ``None`` if unknown.
        reach: ``(**parameters) -> `` distance beyond which U is zero; ``None`` if it does not end by itself.

    Example:
        >>> yukawa = molecular.potentials.PairPotential(
        ...     energy=lambda r, strength: strength * jnp.exp(-r) / r,
        ...     force=lambda r, strength: strength * jnp.exp(-r) * (1 + r) / r**2,
        ... )
        >>> r = jnp.array(1.0)
        >>> print(f"{yukawa.energy(r, strength=np.e):.4f}, {yukawa.force(r, strength=np.e):.4f}")
        1.0000, 2.0000
    """

    energy: Callable[..., jax.Array]
    force: Callable[..., jax.Array]
    force_over_distance: Callable[..., jax.Array] | None = None
    bond: Callable[..., tuple[jax.Array, jax.Array]] | None = None
    reach: Callable[..., jax.Array] | None = None


def pair_potential(energy: Callable[..., jax.Array]) -> PairPotential:
    """Return the pair potential of an energy function, with the force ``F(r) = -dU/dr`` by differentiation.

    Args:
        energy: ``(distance, **parameters) -> U``, elementwise, of `jax.numpy` functions. Energy and derivatives must be
            finite at every positive distance: entries that are no pair have some distance too, and the derivative of a
            masked NaN is NaN.

    Example:
        >>> U = molecular.potentials.pair_potential(lambda r, k: k / 2 * (r - 1) ** 2)
        >>> float(U.energy(jnp.array(1.5), k=8.0)), float(U.force(jnp.array(1.5), k=8.0))
        (1.0, -4.0)
    """

    def force(distance: jax.Array, **parameters: jax.Array) -> jax.Array:
        # Forward mode: every energy depends on its own distance only, so one tangent of ones gives all slopes at once.
        distance = jnp.asarray(distance)
        slope = jax.jvp(lambda r: energy(r, **parameters), (distance,), (jnp.ones_like(distance),))[1]
        return -slope

    return PairPotential(energy=energy, force=force)


def power(base: jax.Array, exponent: float) -> jax.Array:
    """Return a power of numbers that are not negative, with a finite derivative at zero.

    Products and a square root are several times faster than the general power.

    Args:
        base: numbers.
        exponent: at least 1.
    """
    if exponent == int(exponent):
        return base ** int(exponent)
    if 2 * exponent == int(2 * exponent):
        return base ** int(exponent) * jnp.sqrt(jnp.where(base > 0, base, 1))
    return base**exponent


def per_pair(table: jax.Array, species: jax.Array) -> jax.Array:
    """Return a parameter of every pair, (N, N), from a table by species.

    Args:
        table: symmetric, (S, S); the parameter for species a with species b.
        species: species of each particle, (N,) integers in [0, S).

    Example:
        >>> sigma = jnp.array([[1.0, 1.5], [1.5, 2.0]])
        >>> molecular.potentials.per_pair(sigma, jnp.array([0, 0, 1])).tolist()
        [[1.0, 1.0, 1.5], [1.0, 1.0, 1.5], [1.5, 1.5, 2.0]]
    """
    return table[species[:, None], species[None, :]]


def mean_diameter(diameter: jax.Array) -> jax.Array:
    """Return the contact distance of two spheres, ``(d_i + d_j) / 2``.

    Args:
        diameter: length, (N,).

    Returns:
        Length, (N, N).

    Example:
        >>> molecular.potentials.mean_diameter(jnp.array([1.0, 1.5])).tolist()
        [[1.0, 1.25], [1.25, 1.5]]
    """
    return (diameter[:, None] + diameter[None, :]) / 2


def lorentz_berthelot(epsilon: jax.Array, sigma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of pairs of unlike species by the Lorentz-Berthelot mixing rules.

    ``epsilon_ab = sqrt(epsilon_a epsilon_b)`` and ``sigma_ab = (sigma_a + sigma_b) / 2``.

    Args:
        epsilon: energy of each species, (S,), positive (the square root has no derivative at zero).
        sigma: length of each species, (S,).

    Returns:
        The tables ``epsilon_ab`` and ``sigma_ab``, both (S, S).

    Example:
        >>> epsilon, sigma = molecular.potentials.lorentz_berthelot(jnp.array([1.0, 4.0]), jnp.array([1.0, 2.0]))
        >>> print(epsilon.tolist(), sigma.tolist())
        [[1.0, 2.0], [2.0, 4.0]] [[1.0, 1.5], [1.5, 2.0]]

    Reference: Lorentz, Ann. Phys. 248, 127 (1881), doi:10.1002/andp.18812480110; Berthelot, C. R. Acad. Sci. 126,
    1703 (1898).
    """
    return jnp.sqrt(epsilon[:, None] * epsilon[None, :]), (sigma[:, None] + sigma[None, :]) / 2


def truncated(potential: PairPotential) -> PairPotential:
    """Return the truncated potential: ``U(r)`` for ``r < r_c``, zero beyond.

    Args:
        potential: any pair potential; ``cutoff``, length, joins its parameters.

    Example:
        >>> U = molecular.potentials.truncated(molecular.potentials.lennard_jones())
        >>> print(np.round(U.energy(jnp.array([2.4999, 2.5001]), epsilon=1.0, sigma=1.0, cutoff=2.5), 4))
        [-0.0163  0.    ]
    """

    def energy(distance: jax.Array, *, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        return jnp.where(distance < cutoff, potential.energy(distance, **parameters), 0)

    def force(distance: jax.Array, *, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        return jnp.where(distance < cutoff, potential.force(distance, **parameters), 0)

    return PairPotential(energy=energy, force=force)


def energy_shifted(potential: PairPotential) -> PairPotential:
    """Return the potential shifted to a continuous energy: ``U(r) - U(r_c)`` for ``r < r_c``.

    The force is that of `truncated`.

    Args:
        potential: any pair potential; ``cutoff``, length, joins its parameters.

    Example:
        >>> U = molecular.potentials.energy_shifted(molecular.potentials.lennard_jones())
        >>> print(f"{U.energy(jnp.array(2 ** (1 / 6)), epsilon=1.0, sigma=1.0, cutoff=2.5):.4f} = -1 + 0.0163")
        -0.9837 = -1 + 0.0163
    """

    def energy(distance: jax.Array, *, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        shifted = potential.energy(distance, **parameters) - potential.energy(cutoff, **parameters)
        return jnp.where(distance < cutoff, shifted, 0)

    return PairPotential(energy=energy, force=truncated(potential).force)


def force_shifted(potential: PairPotential) -> PairPotential:
    """Return the potential shifted to a continuous energy and force.

    ``U(r) - U(r_c) + (r - r_c) F(r_c)`` for ``r < r_c``, hence ``F(r) - F(r_c)``.

    Args:
        potential: any pair potential; ``cutoff``, length, joins its parameters.

    Example:
        >>> U, r = molecular.potentials.lennard_jones(), jnp.array(2.4999)
        >>> at = {"epsilon": 1.0, "sigma": 1.0, "cutoff": 2.5}
        >>> jump = molecular.potentials.truncated(U).force(r, **at)
        >>> print(f"{jump:.3f}, shifted {abs(molecular.potentials.force_shifted(U).force(r, **at)):.3f}")
        -0.039, shifted 0.000

    Reference: Toxvaerd, Dyre, J. Chem. Phys. 134, 081102 (2011), doi:10.1063/1.3558787.
    """

    def energy(distance: jax.Array, *, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        shifted = potential.energy(distance, **parameters) - potential.energy(cutoff, **parameters)
        linear = (distance - cutoff) * potential.force(cutoff, **parameters)
        return jnp.where(distance < cutoff, shifted + linear, 0)

    def force(distance: jax.Array, *, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        shifted = potential.force(distance, **parameters) - potential.force(cutoff, **parameters)
        return jnp.where(distance < cutoff, shifted, 0)

    return PairPotential(energy=energy, force=force)


def switched(potential: PairPotential) -> PairPotential:
    """Return the potential switched off between two distances, with continuous first and second derivatives.

    ``U(r) S(x)`` with ``x = (r - r_on) / (r_c - r_on)`` clipped to [0, 1] and ``S = 1 - 10 x^3 + 15 x^4 - 6 x^5``.
    Good values of r_on: 0.8 to 0.9 of the cut-off; a thinner shell makes the force steep there.

    Args:
        potential: any pair potential; ``switch_on`` r_on and ``cutoff`` r_c > r_on, lengths, join its parameters.

    Example:
        >>> U = molecular.potentials.switched(molecular.potentials.lennard_jones())
        >>> at = dict(epsilon=1.0, sigma=1.0, switch_on=2.0, cutoff=2.5)
        >>> print([f"{U.energy(jnp.array(r), **at):.4f}" for r in (2.0, 2.25, 2.4)])
        ['-0.0615', '-0.0153', '-0.0012']

    Reference: Eastman et al., PLoS Comput. Biol. 13, e1005659 (2017), doi:10.1371/journal.pcbi.1005659.
    """

    def progress(distance: jax.Array, switch_on: jax.Array, cutoff: jax.Array) -> jax.Array:
        return jnp.clip((distance - switch_on) / (cutoff - switch_on), 0, 1)

    def switch(x: jax.Array) -> jax.Array:
        return 1 - x**3 * (10 - x * (15 - 6 * x))

    def energy(distance: jax.Array, *, switch_on: jax.Array, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        return potential.energy(distance, **parameters) * switch(progress(distance, switch_on, cutoff))

    def force(distance: jax.Array, *, switch_on: jax.Array, cutoff: jax.Array, **parameters: jax.Array) -> jax.Array:
        x = progress(distance, switch_on, cutoff)
        steepness = 30 * (x * (1 - x)) ** 2 / (cutoff - switch_on)
        return (
            potential.force(distance, **parameters) * switch(x) + potential.energy(distance, **parameters) * steepness
        )

    return PairPotential(energy=energy, force=force)


def arithmetic_mean(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``(a + b) / 2``, elementwise."""
    return (a + b) / 2


def geometric_mean(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``sqrt(a b)``, elementwise, with derivative zero where it is zero."""
    return root(a * b)


# Mean of the lengths of two species, by the name of a mixing rule; of all other values it is the geometric one.
MIXING = {"lorentz_berthelot": arithmetic_mean, "geometric": geometric_mean}
# Ways to end at a cut-off, by name.
ENDINGS = {
    "switch": switched,
    "shift_energy": energy_shifted,
    "shift_force": force_shifted,
    "truncate": truncated,
}
