"""Fixtures of the tests of physics."""

from tests.physics.test_strained_glass import glassy  # noqa: F401
