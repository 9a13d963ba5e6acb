"""Systems ready to run: clusters, crystals, packings, fluids, assemblies."""
