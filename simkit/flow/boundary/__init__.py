"""Boundary conditions at the sides of a domain, and the values laid around its fields."""
