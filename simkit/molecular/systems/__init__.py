"""Factories of complete particle systems: clusters, crystals, structures, assemblies."""
