"""Fixtures shared by every test.

The folder says when a test runs: tests/physics, tests/reference, tests/reliability and tests/longer with .ci/run (`make
acceptance`), tests/thorough by hand (`make thorough`), everything else with `make test`, which is a plain `pytest`.
"""

import jax
import pytest

# Its claims are those of several modules of tests.
pytest.register_assert_rewrite("tests.scenarios.contract")


@pytest.fixture
def x64():
    """Run the test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="session")
def compilation_cache():
    """Compile each program once per machine, not once per test process."""
    from simkit.core.compilation import use_compilation_cache

    use_compilation_cache()


@pytest.fixture(autouse=True, scope="module")
def clear_compiled_programs():
    """Clear the compiled programs of a module, which would fill the memory of a test process."""
    yield
    jax.clear_caches()
