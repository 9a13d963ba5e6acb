"""Boundary conditions at the sides of a domain, and ghost layers around its fields."""
