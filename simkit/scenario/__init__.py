"""Scenario files: read, checked, overridden, found and built into simulations."""
