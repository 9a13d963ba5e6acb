"""Compiled programs of simulations, and the host loop that runs them."""
