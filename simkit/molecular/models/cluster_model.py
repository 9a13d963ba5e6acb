"""Model of a cluster in free space: interaction, units, initial positions."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.core.parameter import Parameter
from simkit.core.simulation import Arrays, Params
from simkit.errors import UserError, nearest
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import Interaction
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers import Scale
from simkit.molecular.models.parameters import LENNARD_JONES_PARAMETERS, MORSE_PARAMETERS
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import lennard_jones, morse
from simkit.molecular.sizes import MAX_PARTICLES_IN_PAIRS, check_particles
from simkit.molecular.spaces import Cell

DIMENSION = 3
# sigma^2 U''(r) / epsilon of Lennard-Jones at its minimum, 72 / 2^(1/3).
LENNARD_JONES_STIFFNESS = 72 / 2 ** (1 / 3)


class ClusterModel(NamedTuple):
    """A cluster with a pair potential without cut-off.

    Attributes:
        params: ``epsilon``, ``sigma`` and, for Morse, ``rho``.
        bond: distance of the minimum of the pair potential, in units of sigma.
        radius: of a close-packed ball of the atoms, in units of sigma.
        interaction: the sum over all pairs.
        scale: ``params -> Scale`` of a bond.
        force_unit: ``params -> force``, epsilon / sigma.
        start: ``(params, key) -> position``, (N, 3), uniformly random in a sphere.
        energies: ``(position, params) -> (N,)``, half the pair energies of each atom.
        observe: ``(position, cell, params) -> arrays``: ``diameter`` and ``energy_of_particle``.
    """

    params: dict[str, Parameter]
    bond: float
    radius: float
    interaction: Interaction
    scale: Callable[[Params], Scale]
    force_unit: Callable[[Params], jax.Array]
    start: Callable[[Params, jax.Array], jax.Array]
    energies: Callable[[jax.Array, Params], jax.Array]
    observe: Callable[[jax.Array, Cell, Params], Arrays]


def cluster_model(*, particles: int, potential: str, spread: float) -> ClusterModel:
    """Return the model of a Lennard-Jones or Morse cluster.

    Args:
        particles: number of atoms, at least 2.
        potential: ``"lennard_jones"`` or ``"morse"``.
        spread: radius of the sphere of starts, in units of the radius of a close-packed ball of the atoms.

    Raises:
        UserError: if an argument is out of its range.
    """
    if particles < 2:
        raise UserError(f"particles = {particles}; a cluster needs at least 2")
    check_particles(particles, f"particles = {particles}", MAX_PARTICLES_IN_PAIRS)
    if not spread > 0:
        raise UserError(f"spread = {spread} is not positive; choose 1 to 1.5")
    if potential not in ("lennard_jones", "morse"):
        raise UserError(f"unknown potential '{potential}'{nearest(potential, ['lennard_jones', 'morse'])}")
    is_morse = potential == "morse"
    pair = morse() if is_morse else lennard_jones()
    bond = 1 if is_morse else 2 ** (1 / 6)
    # A close-packed crystal has sqrt(2) atoms per cubed bond length.
    radius = bond * (3 * particles / (4 * math.pi * math.sqrt(2))) ** (1 / 3)
    declared = MORSE_PARAMETERS if is_morse else LENNARD_JONES_PARAMETERS

    def start(params: Params, key: jax.Array) -> jax.Array:
        direction_key, distance_key = jax.random.split(key)
        dtype = params["sigma"].dtype
        direction = jax.random.normal(direction_key, (particles, DIMENSION), dtype)
        direction = direction / jnp.sqrt(jnp.sum(direction**2, axis=1, keepdims=True))
        distance = jax.random.uniform(distance_key, (particles, 1), dtype) ** (1 / 3)
        return spread * radius * params["sigma"] * distance * direction

    def stiffness(params: Params) -> jax.Array:
        """Return the curvature of the pair potential at its minimum, in units of epsilon / sigma^2."""
        return 2 * params["rho"] ** 2 if is_morse else jnp.full_like(params["sigma"], LENNARD_JONES_STIFFNESS)

    def scale(params: Params) -> Scale:
        unit = params["epsilon"] / params["sigma"] ** 2
        return Scale(length=params["sigma"], stiffness=stiffness(params) * unit)

    def energies(position: jax.Array, params: Params) -> jax.Array:
        apart = pairs.all_pairs(position, spaces.free(DIMENSION))
        return pairs.energy_per_particle(apart, pair, **{name: params[name] for name in declared})

    def observe(position: jax.Array, cell: Cell, params: Params) -> Arrays:
        del cell
        return {
            "diameter": jnp.full(particles, bond, position.dtype) * params["sigma"],
            "energy_of_particle": energies(position, params),
        }

    return ClusterModel(
        params=declared,
        bond=bond,
        radius=radius,
        interaction=pair_interaction(pair, cutoff=None, parameters=list(declared), method="all_pairs"),
        scale=scale,
        force_unit=lambda params: params["epsilon"] / params["sigma"],
        start=start,
        energies=energies,
        observe=observe,
    )
