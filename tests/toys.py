"""Small scenarios that compile quickly, for tests of everything around a simulation."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simkit.core.simulation import Simulation
from simkit.scenario import registry
from simkit.scenario.catalog import parse_scenario
from simkit.scenario.made_in_python import load
from simkit.scenario.scenario import Scenario
from simkit.storage.run_directory import RunDirectory
from tests.core.toys import descent, oscillator

FACTORIES = {"toy.pendulums": "tests.toys:pendulums", "toy.springs": "tests.toys:springs"}

PENDULUMS = """\
name = "toy_pendulums"
title = "Pendulums"
summary = "Pendulums that swing from random angles."
simulation = "toy.pendulums"

[config]
size = 3

[params.frequency]
default = 1.3
bounds = [0.1, 10.0]
unit = "1/s"
doc = "of small swings"

[params.time_step]
default = 0.01
bounds = [1e-4, 0.1]
unit = "s"
doc = "time step"

[run]
steps = 20
every = 2
precision = "float64"

[objectives.energy]
doc = "energy at the end"

[render]
view = "field"
quantity = "position"
"""

SPRINGS = """\
name = "toy_springs"
title = "Springs"
summary = "A chain of springs comes to rest."
simulation = "toy.springs"

[config]
tolerance = 1e-6

[params.rest]
default = 1.0
bounds = [0.5, 2.0]
doc = "length of a spring at rest"

[params.stiffness]
default = 2.0
bounds = [1.0, 10.0]
doc = "of a spring"

[run]
steps = 2000
every = 50
precision = "float64"

[objectives.length]
doc = "length of the chain at rest"

[render]
view = "field"
quantity = "position"
"""


def pendulums(*, size: int = 3) -> Simulation:
    """Make pendulums that are observed as a field of one column."""
    simulation = oscillator(size)
    return dataclasses.replace(
        simulation,
        observe=lambda state, params: {"position": state.position[:, None]},
        dimensions={"position": ("pendulum", "column")},
        coordinates={"pendulum": np.arange(size) + 0.5},
    )


def springs(*, tolerance: float = 1e-6) -> Simulation:
    """Make a chain of springs that is observed as a field of one column."""
    simulation = descent(tolerance)
    return dataclasses.replace(
        simulation,
        observe=lambda state, params: {"position": state.position[:, None]},
        dimensions={"position": ("mass", "column")},
    )


# Objectives other than the last value of a diagnostic.
SQUARED = PENDULUMS.replace(
    "[render]",
    """
[objectives.mean_time]
doc = "mean of the time"
quantity = "time"
reduce = "mean"

[objectives.spread]
doc = "of the last angles"
expression = "final(rms(position)) / time_mean(energy)"

[render]""",
).replace('doc = "energy at the end"', 'doc = "energy at the end"\nsquare = true')


def toy(text: str = PENDULUMS, **values: Any) -> Scenario:
    """Return a toy scenario with values replaced; its factory must be registered."""
    return load(parse_scenario(text, Path("toy.toml")), values)


NOTHING = {"labels": {"dimensions": {}, "coordinates": {}, "quantities": {}}, "arrays": {}}
REQUESTS = {
    "run": NOTHING,
    "sweep": NOTHING | {"over": {}, "seeds": 2, "chunk": 2, "final_frames": True},
    "config_sweep": NOTHING | {"over": {}, "seeds": 2, "chunk": 2, "memory": None, "final_frames": True, "configs": {}},
    "optimize": NOTHING
    | {
        "wrt": ["frequency"],
        "objective": "energy",
        "method": "adam",
        "iterations": 2,
        "learning_rate": 0.1,
        "mode": "shortest",
    },
    "grad": NOTHING | {"wrt": ["frequency"], "objective": "energy", "segments": 21},
}


def begun(path: Path, scenario: Scenario, kind: str = "run", *, overwrite: bool = False) -> RunDirectory:
    """Return a new run directory without results, which is not locked."""
    with RunDirectory.created(path, kind, scenario, REQUESTS[kind], overwrite=overwrite) as directory:
        return directory


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Register the factories of the toys, in a fixture of a module."""
    with pytest.MonkeyPatch.context() as patch:
        for name, target in FACTORIES.items():
            patch.setitem(registry.FACTORIES, name, target)
        yield


@pytest.fixture(autouse=True)
def toys():
    with registered():
        yield


@pytest.fixture
def stored(tmp_path):
    """A run directory without results."""
    return begun(tmp_path / "run", toy(frequency=0.1 + 0.2, seed=7))
