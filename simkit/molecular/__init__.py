"""Molecular simulation: interacting particles, minimizers, packings, clusters and crystals."""

from simkit.molecular.clusters import cluster
from simkit.molecular.crystal import crystal
from simkit.molecular.jax_md_packing import jax_md_soft_spheres
from simkit.molecular.packing import soft_sphere_packing

__all__ = ["cluster", "crystal", "jax_md_soft_spheres", "soft_sphere_packing"]
