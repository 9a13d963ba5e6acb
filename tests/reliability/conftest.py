"""Fixtures: the registered toy simulations."""

import pytest

from simkit.scenario import registry
from tests.toys import FACTORIES


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    for name, target in FACTORIES.items():
        monkeypatch.setitem(registry.FACTORIES, name, target)
