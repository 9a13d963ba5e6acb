"""Fixtures of the quick tests."""

from tests.core.test_expressions import channel

__all__ = ["channel"]
