"""Runs, sweeps, derivatives, optimizations and validations."""
