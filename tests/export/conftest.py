"""Small scenarios of their own, and a run of one for a module's tests of pictures and files."""

from pathlib import Path

import pytest

import simkit
from simkit.scenario import registry
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from tests.export.runs import CHANNEL
from tests.toys import FACTORIES


@pytest.fixture(scope="module", autouse=True)
def factories():
    with pytest.MonkeyPatch.context() as patch:
        own = {f"toy.{name}": f"tests.export.runs:{name}" for name in ("channel", "logistic")}
        for name, target in {**FACTORIES, **own}.items():
            patch.setitem(registry.FACTORIES, name, target)
        yield


@pytest.fixture(scope="module")
def flow(factories, tmp_path_factory):
    """The result of a run of three frames, and its folder."""
    folder = tmp_path_factory.mktemp("flow") / "run"
    return simkit.run(load(parse_scenario(CHANNEL, Path("channel.toml")), {}), output=folder), folder
