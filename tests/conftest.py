"""Fixtures shared by every test."""

import jax
import pytest


@pytest.fixture
def x64():
    """Run the test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="session")
def compilation_cache(tmp_path_factory):
    """Compile each program once per machine, not once per test process."""
    from simkit.runtime.environment import use_compilation_cache

    use_compilation_cache()
