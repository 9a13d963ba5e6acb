"""Joints between bodies, loads in joints, and time stepping of jointed bodies."""
