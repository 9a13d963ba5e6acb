"""Global minimization by basin hopping."""
