"""Fixtures: the registered toy simulations."""

from tests.toys import toys

__all__ = ["toys"]
