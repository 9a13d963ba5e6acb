"""The toy simulation of the example file."""

import pytest

from simkit.scenario import registry


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Register the toy simulation."""
    monkeypatch.setitem(registry.FACTORIES, "toy.decay", "tests.scenario.examples:decay")
