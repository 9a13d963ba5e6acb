"""Invalid flow settings give one line and exit code 2, and leave no folder."""

import pytest

FACES = "config.axes.y={ faces = [-1.0, -0.5, -0.6, 0.5, 1.0], lower = 'wall', upper = 'wall' }"
MISTAKES = {
    "faces that do not increase": (
        ["couette_poiseuille", "--set", FACES],
        ["faces[1] = -0.5 is followed by -0.6", "increasing"],
    ),
    "stretching": (["couette_poiseuille", "--set", "config.axes.y.stretching=9.0"], ["stretching = 9", "[0, 6]"]),
    "time step of the cavity": (["lid_driven_cavity", "--set", "time_step=0.01"], ["time_step = 0.01", "0.00292"]),
    "time step of the vortices": (
        ["taylor_green", "--set", "time_step=0.1"],
        ["time_step = 0.1", "advection", "0.0212"],
    ),
    "time step with friction": (
        ["taylor_green", "--set", "kinematic_viscosity=0.1", "--set", "time_step=0.015"],
        ["time_step = 0.015", "explicit friction", "0.00756"],
    ),
    "time step of the channel": (
        [
            "channel_flow",
            "--set",
            "config.axes.x.cells=256",
            "--set",
            "config.axes.y.cells=8",
            "--set",
            "time_step=0.02",
        ],
        ["0.00781"],
    ),
    "time step of the oscillation": (
        ["womersley", "--set", "config.axes.x.cells=512"],
        ["time_step = 0.0314159", "advection", "0.0135"],
    ),
    "cells of the cavity": (
        ["lid_driven_cavity", "--set", "config.axes.x.cells=2"],
        ["axes.x.cells = 2", "integer of 4 to 16384"],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_is_one_line_and_exit_code_2(case, simkit, tmp_path):
    words, expected = MISTAKES[case]
    ran = simkit("run", *words)
    assert ran.code == 2
    for part in expected:
        assert part in ran.line
    assert not list(tmp_path.iterdir())
