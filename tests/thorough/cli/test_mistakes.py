"""Invalid input whose refusal needs a simulation that takes long to make: one line, exit code 2, no folder left."""

import pytest

from tests.cli.test_mistakes import SMALL, toy
from tests.toys import toys

__all__ = ["toy", "toys"]

MISTAKES = {
    "memory": (
        ["sweep", "channel_flow", "--over", "reynolds=100,200", *SMALL, "--memory", "1kB"],
        ["needs", "KiB", "--memory"],
    ),
    "memory for a chunk": (
        ["sweep", "channel_flow", "--over", "reynolds=10:90:9", *SMALL, "--chunk", "9", "--memory", "20kB"],
        ["needs", "--chunk"],
    ),
    "frames beyond memory": (
        ["run", "channel_flow", "--set", "steps=2000000000", "--set", "every=1"],
        ["2000000001 frames", "GiB", "larger every"],
    ),
    "members beyond memory": (
        ["sweep", "channel_flow", *SMALL, "--seeds", "2000000000"],
        ["2000000000 frames need", "GiB", "sweep fewer"],
    ),
    "a forecast beyond memory": (
        ["sweep", "channel_flow", "--over", "reynolds=1,2", "--dry-run", "--memory", "1kB"],
        ["one member needs", "--memory"],
    ),
    "time step of the cavity": (
        ["run", "lid_driven_cavity", "--set", "time_step=0.01"],
        ["time_step = 0.01", "0.00292"],
    ),
    "time step of the vortices": (
        ["run", "taylor_green", "--set", "time_step=0.1"],
        ["time_step = 0.1", "advection", "0.0212"],
    ),
    "time step with friction": (
        ["run", "taylor_green", "--set", "kinematic_viscosity=0.1", "--set", "time_step=0.015"],
        ["time_step = 0.015", "explicit friction", "0.00756"],
    ),
    "time step of the channel": (
        [
            *("run", "channel_flow", "--set", "config.axes.x.cells=256"),
            *("--set", "config.axes.y.cells=8", "--set", "time_step=0.02"),
        ],
        ["0.00781"],
    ),
    "time step of the oscillation": (
        ["run", "womersley", "--set", "config.axes.x.cells=512"],
        ["time_step = 0.0314159", "advection", "0.0135"],
    ),
}


@pytest.mark.parametrize(("words", "phrases"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(simkit, tmp_path, words, phrases):
    ran = simkit(*words)
    assert ran.code == 2
    assert ran.line.startswith("simkit: ")
    for phrase in phrases:
        assert phrase in ran.line
    assert ran.out == ""
    assert not list(tmp_path.iterdir())


def test_sweeps_and_optimizations_have_no_animation(toy, tmp_path):
    toy("sweep", "toy.toml", "--over", "frequency=1,2", "--output", "swept")
    ran = toy("export", "swept", "--to", "extended_xyz")
    assert ran.code == 2
    assert "holds a sweep" in ran.line
    for option in (("--format", "png"), ("--size", "640x360")):
        ran = toy("resume", "swept", *option)
        assert ran.code == 2
        assert f"{option[0]} is not for a sweep" in ran.line
    for option in (("--format", "gif"), ("--size", "640x360"), ("--frame", 1, "--format", "png")):
        ran = toy("render", "swept", *option)
        assert ran.code == 2
        assert f"{option[0]} is not for a sweep" in ran.line
    ran = toy("render", "swept", "-o", "x.gif")
    assert ran.code == 2
    assert "x.gif is not the name of a png file; name it x.png" in ran.line
    assert toy("render", "swept", "--format", "png", "-o", "x.png").code == 0
    (chart := tmp_path / "swept/sweep.png").unlink()
    assert toy("resume", "swept", "--no-render").code == 0
    assert not chart.exists()
    toy("sweep", "toy.toml", "--seeds", "2", "--output", "seeds")
    ran = toy("render", "seeds")
    assert ran.code == 2
    assert "no number was swept" in ran.line
