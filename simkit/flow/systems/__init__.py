"""Factories of flow simulations, each with its domain, equations and diagnostics."""
