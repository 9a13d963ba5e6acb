"""Rigid bodies: shapes and masses, positions and motion."""
