"""Fixtures: the registered toy simulations."""

from tests.toys import stored, toys

__all__ = ["stored", "toys"]
