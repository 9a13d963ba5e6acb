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


# Compiling these takes up to half a minute each; their whole set runs with -m slow.
SLOW_TO_COMPILE = ("lennard_jones_crystal", "lennard_jones_cluster", "jax_md_soft_spheres", "silicon")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name in ("scenarios", "export"):
            name = getattr(item, "callspec", None) and item.callspec.params.get("name")
            if name in SLOW_TO_COMPILE:
                item.add_marker(pytest.mark.slow)
