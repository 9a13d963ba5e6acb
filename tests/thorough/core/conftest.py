"""Fixtures of the quick tests."""

from tests.core.test_expressed_quantities import channel

__all__ = ["channel"]
