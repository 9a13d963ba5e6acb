"""Scenario files: reading, checks, overrides, catalog, and building of simulations."""
