"""Interactions of particles: energies, forces and stresses."""

from simkit.molecular.interactions.full_lennard_jones import full_lennard_jones
from simkit.molecular.interactions.interaction import Interaction, ManyBody, combined
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.interactions.stillinger_weber import stillinger_weber
from simkit.molecular.interactions.uniform_tail import uniform_tail
from simkit.molecular.interactions.user_energy import user_energy

__all__ = [
    "Interaction",
    "ManyBody",
    "combined",
    "from_jax_md",
    "full_lennard_jones",
    "pair_interaction",
    "stillinger_weber",
    "uniform_tail",
    "user_energy",
]
