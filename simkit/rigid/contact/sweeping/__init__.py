"""Gauss-Seidel sweeps over all contacts for their impulses."""
