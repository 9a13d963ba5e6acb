"""Global minimization: basin hopping."""
