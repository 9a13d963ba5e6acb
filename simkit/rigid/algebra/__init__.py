"""Vectors, rotations and inertia tensors as named components, so that equations read like the mathematics."""
