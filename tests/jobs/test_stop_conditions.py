"""Conditions at which a run stops: in runs, resumed ones, sweeps and derivatives."""

import pytest

import simkit
from simkit.errors import UserError
from tests.molecular.clusters import cluster
from tests.tables import every

FILE = """
name = "falling"
title = "Falling"
summary = "A ball falls until it is low."
simulation = "rigid.bouncing_ball"
params = { launch_speed = 8.0, launch_height = 1.5, time_step = 0.01 }
run = { steps = 300, every = 10, stop = "height < low" }
quantities.low = { expression = "launch_height / 2", unit = "m", doc = "where to stop" }
objectives.time = { doc = "how long it flies", quantity = "time" }
objectives.end = { doc = "where it ends", expression = "position_x" }
render = { view = "bodies", quantity = "velocity" }

[[validation]]
expression = "largest(time)"
expected = 1.5
tolerance = 0.2
source = "free fall"
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "falling.toml"
    path.write_text(FILE)
    return path


@every(
    ("stop", "message"),
    [
        ("height", "is a number where a condition is needed; compare it with another"),
        ("hight < 1", "'hight' is not known here; did you mean 'height'?"),
        ("final(height) < 1", "reduces frames, and here is the present one only"),
        ("height <", "run.stop"),
    ],
)
def test_a_mistake_marks_its_column(file, stop, message):
    file.write_text(FILE.replace('stop = "height < low"', f'stop = "{stop}"'))
    with pytest.raises(UserError) as refused:
        simkit.build(file)
    assert message in str(refused.value) and "run.stop" in str(refused.value)


def test_a_converging_simulation_refuses_a_condition():
    from simkit.core.expressions.measures import stopped_when

    with pytest.raises(UserError, match="runs until it converges, and needs no condition"):
        stopped_when(cluster(particles=3), "energy < 0", "stop")
