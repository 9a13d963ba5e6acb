"""Neighbor lists, and sums over pairs."""
