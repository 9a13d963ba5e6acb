"""Interactions of particles: energies, forces and stresses."""

from simkit.molecular.interactions.ase_calculator import ase_calculator
from simkit.molecular.interactions.atom_tables import AtomTables, read_embedded_atom, tabulated_embedded_atom
from simkit.molecular.interactions.embedded_atom import embedded_atom
from simkit.molecular.interactions.interaction import Atoms, Interaction, ManyBody, combined, user_energy
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.learned import learned_energy
from simkit.molecular.interactions.pair_interaction import full_lennard_jones, pair_interaction, uniform_tail
from simkit.molecular.interactions.stillinger_weber import stillinger_weber
from simkit.molecular.interactions.tersoff import tersoff
from simkit.molecular.interactions.tersoff_files import TersoffEntries, parse_tersoff

__all__ = [
    "AtomTables",
    "Atoms",
    "Interaction",
    "ManyBody",
    "TersoffEntries",
    "ase_calculator",
    "combined",
    "embedded_atom",
    "from_jax_md",
    "full_lennard_jones",
    "learned_energy",
    "pair_interaction",
    "parse_tersoff",
    "read_embedded_atom",
    "stillinger_weber",
    "tabulated_embedded_atom",
    "tersoff",
    "uniform_tail",
    "user_energy",
]
