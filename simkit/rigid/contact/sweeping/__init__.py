"""Gauss-Seidel sweeps over all contacts until their impulses converge."""
