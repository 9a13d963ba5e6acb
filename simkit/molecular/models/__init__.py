"""Models of particle systems: force fields with their parameters and units."""
