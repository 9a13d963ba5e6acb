"""Joints between bodies, what acts in them, and the method that follows jointed bodies in time."""
