"""Systems ready to run: clusters, crystals, structures, assemblies."""
