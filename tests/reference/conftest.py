"""Fixtures: libraries that are compared with."""

import warnings

import pytest


@pytest.fixture(scope="session")
def jax_md():
    """Import jax-md once: its import takes seconds and warns about its own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("jax_md")
