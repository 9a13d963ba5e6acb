"""Fixtures of the quick comparisons."""

from tests.reference.conftest import jax_md  # noqa: F401
