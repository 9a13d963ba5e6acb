"""Rigid-body systems that scenarios name, each a scene made into a simulation."""
