"""Registers the toy simulations."""

import pytest

from simkit.scenario import registry
from tests.runtime.toy import FACTORIES, begun, toy


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    for name, target in FACTORIES.items():
        monkeypatch.setitem(registry.FACTORIES, name, target)


@pytest.fixture
def stored(tmp_path):
    """A run directory in which nothing has been computed."""
    return begun(tmp_path / "run", toy(frequency=0.1 + 0.2, seed=7))
