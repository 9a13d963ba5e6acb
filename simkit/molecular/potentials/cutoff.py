"""Cut-offs of pair potentials: truncated, energy-shifted, force-shifted, switched.

Each takes any pair potential and returns one that is zero beyond its new parameter ``cutoff`` r_c. Truncation leaves
the force unchanged and makes the energy discontinuous, so minimizers fail; shifting the energy leaves the force
discontinuous; shifting the force makes both continuous, but changes the force everywhere; a switch changes only a shell
inside the cut-off and is twice differentiable.
"""

import jax
import jax.numpy as jnp

from simkit.molecular.potentials.pair import PairPotential


def truncated(potential: PairPotential) -> PairPotential:
    """Return the truncated potential: ``U(r)`` for ``r < r_c``, zero beyond.

    Args:
        potential: any pair potential; ``cutoff``, length, joins its parameters.
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


# Ways to end at a cut-off, by name.
ENDINGS = {
    "switch": switched,
    "shift_energy": energy_shifted,
    "shift_force": force_shifted,
    "truncate": truncated,
}
