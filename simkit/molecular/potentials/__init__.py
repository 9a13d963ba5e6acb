"""Pair potentials: energy and force of two particles at a distance."""

from simkit.molecular.potentials.buckingham import buckingham
from simkit.molecular.potentials.coulomb import coulomb, reaction_field
from simkit.molecular.potentials.lennard_jones import lennard_jones, mie, tail_energy, tail_pressure
from simkit.molecular.potentials.morse import morse, morse_diatomic
from simkit.molecular.potentials.pair import (
    PairPotential,
    energy_shifted,
    force_shifted,
    lorentz_berthelot,
    mean_diameter,
    pair_potential,
    per_pair,
    switched,
    truncated,
)
from simkit.molecular.potentials.soft_sphere import soft_sphere
from simkit.molecular.potentials.tabulated import tabulated
from simkit.molecular.potentials.weeks_chandler_andersen import weeks_chandler_andersen

__all__ = [
    "PairPotential",
    "buckingham",
    "coulomb",
    "energy_shifted",
    "force_shifted",
    "lennard_jones",
    "lorentz_berthelot",
    "mean_diameter",
    "mie",
    "morse",
    "morse_diatomic",
    "pair_potential",
    "per_pair",
    "reaction_field",
    "soft_sphere",
    "switched",
    "tabulated",
    "tail_energy",
    "tail_pressure",
    "truncated",
    "weeks_chandler_andersen",
]
