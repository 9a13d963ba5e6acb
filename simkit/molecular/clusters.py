"""Clusters of atoms in free space, quenched from random positions to the nearest minimum."""

import math

import jax
import jax.numpy as jnp

from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError, nearest
from simkit.molecular import pairs, spaces
from simkit.molecular.minimizers import Scale
from simkit.molecular.pair_interaction import pair_interaction
from simkit.molecular.potentials import lennard_jones, morse
from simkit.molecular.relaxation import relaxation
from simkit.molecular.spaces import Cell

DIMENSION = 3
# sigma^2 U''(r) / epsilon of Lennard-Jones at its minimum, 72 / 2^(1/3).
LENNARD_JONES_STIFFNESS = 72 / 2 ** (1 / 3)


def cluster(
    *,
    particles: int = 13,
    potential: str = "lennard_jones",
    minimizer: str = "lbfgs",
    force_tolerance: float = 1e-10,
    spread: float = 1.25,
) -> Simulation:
    """Return the quench of a cluster of atoms in free space from random positions.

    The energy is the sum over all pairs of ``4 epsilon ((sigma/r)^12 - (sigma/r)^6)``, or of ``epsilon x (x - 2)`` with
    ``x = exp(rho (1 - r / sigma))``. The atoms start anywhere in a sphere, on top of each other as it happens, and
    walk downhill until no force exceeds the tolerance. Which of the many minima they end in depends on the key.

    Parameters: ``epsilon``, the depth of the pair potential, energy; ``sigma``, its zero (Lennard-Jones) or minimum
    (Morse), length; for Morse ``rho``, the range: 3 long, 6 like Lennard-Jones, 14 sticky.

    Args:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        minimizer: as for `simkit.molecular.minimizers.by_name`.
        force_tolerance: largest force left, in units of epsilon / sigma. Good values: 1e-10 in float64, 1e-3 in
            float32.
        spread: radius of the sphere of starts, in units of that of a close-packed ball of the atoms. Good values: 1 to
            1.5; further out a cluster may condense into two.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Wales and Doye, J. Phys. Chem. A 101, 5111 (1997), doi:10.1021/jp970984n; Cambridge Cluster Database.
    """
    if particles < 2:
        raise UserError(f"particles = {particles}; a cluster needs at least 2")
    if not spread > 0:
        raise UserError(f"spread = {spread} is not positive; choose 1 to 1.5")
    if potential not in ("lennard_jones", "morse"):
        raise UserError(f"unknown potential '{potential}'{nearest(potential, ['lennard_jones', 'morse'])}")
    is_morse = potential == "morse"
    pair = morse() if is_morse else lennard_jones()
    # Distance of the pair's minimum, in units of sigma.
    bond = 1 if is_morse else 2 ** (1 / 6)

    def start(params: Params, key: jax.Array) -> jax.Array:
        heading_key, distance_key = jax.random.split(key)
        dtype = params["sigma"].dtype
        heading = jax.random.normal(heading_key, (particles, DIMENSION), dtype)
        heading = heading / jnp.sqrt(jnp.sum(heading**2, axis=1, keepdims=True))
        # A close-packed crystal has sqrt(2) atoms per cubed bond length.
        radius = spread * bond * (3 * particles / (4 * math.pi * math.sqrt(2))) ** (1 / 3)
        distance = jax.random.uniform(distance_key, (particles, 1), dtype) ** (1 / 3)
        return radius * params["sigma"] * distance * heading

    def stiffness(params: Params) -> jax.Array:
        """Return the curvature of the pair potential at its minimum, in units of epsilon / sigma^2."""
        return 2 * params["rho"] ** 2 if is_morse else jnp.full_like(params["sigma"], LENNARD_JONES_STIFFNESS)

    def scale(params: Params) -> Scale:
        unit = params["epsilon"] / params["sigma"] ** 2
        return Scale(length=params["sigma"], stiffness=stiffness(params) * unit)

    def observe(position: jax.Array, cell: Cell, params: Params) -> Arrays:
        apart = pairs.all_pairs(position, spaces.of_cell(cell, DIMENSION))
        return {
            "diameter": jnp.full(particles, bond, position.dtype) * params["sigma"],
            "energy_of_particle": pairs.energy_per_particle(apart, pair, **params),
        }

    defaults = {"epsilon": 1.0, "sigma": 1.0} | ({"rho": 6.0} if is_morse else {})
    return relaxation(
        pair_interaction(pair, cutoff=None, parameters=list(defaults), method="all_pairs"),
        start,
        params={name: jnp.asarray(value, dtype=float) for name, value in defaults.items()},
        scale=scale,
        minimizer=minimizer,
        force_tolerance=force_tolerance,
        force_unit=lambda params: params["epsilon"] / params["sigma"],
        observe=observe,
        dimensions={"energy_of_particle": ("particle",)},
    )
