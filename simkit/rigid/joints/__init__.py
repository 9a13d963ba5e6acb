"""Joints between bodies, loads in them, and time stepping of jointed bodies."""
