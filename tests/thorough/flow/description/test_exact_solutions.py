"""Stokes' second problem and the onset of convection on `flow.domain`."""

import jax
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.scenario.made_in_python import load

pytestmark = pytest.mark.usefixtures("x64")

LAYER = "exp(-y)*cos(time - y)"


def layer(cells, steps, implicit):
    """The velocity at time 1, and its largest deviation from the closed form."""
    simulation = flow.system(
        axes={
            "x": {"cells": 4, "length": 1, "periodic": True},
            "y": {
                "cells": cells,
                "length": 4,
                "lower": {"kind": "wall", "u": LAYER},
                "upper": {"kind": "wall", "u": LAYER},
            },
        },
        viscosity=0.5,
        initial={"u": "exp(-y)*cos(y)"},
        implicit=implicit,
        parameters={"time_step": 1 / steps},
    )

    def run(params):
        start = simulation.init(params, jax.random.key(0))
        return jax.lax.fori_loop(0, steps, lambda _, s: simulation.step(s, params), start)

    velocity = np.asarray(jax.jit(run)(simulation.params).velocity[0])
    y = (np.arange(cells) + 0.5) * 4 / cells
    return velocity, float(np.abs(velocity - np.exp(-y) * np.cos(1 - y)).max())


@pytest.mark.parametrize(("implicit", "steps"), [([], (80, 320)), (["y"], (16, 32))])
def test_stokes_layer_is_of_second_order_in_grid_and_time(implicit, steps):
    # Measured: 1.71 from 16 to 32 cells, 1.85 from 32 to 64. Explicit friction asks for steps that fall as the square.
    coarse, fine = (layer(cells, count, implicit)[1] for cells, count in zip((32, 64), steps, strict=True))
    assert fine < 2e-4
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.2)


def test_implicit_stokes_layer_is_of_second_order_in_time():
    (fine, _), (middle, _), (coarse, _) = (layer(32, count, ["y"]) for count in (64, 8, 4))
    ratio = np.abs(coarse - fine).max() / np.abs(middle - fine).max()
    assert np.log2(ratio) == pytest.approx(2, abs=0.3)


def test_convection_sets_in_at_the_theoretical_rayleigh_number():
    """Chandrasekhar, Hydrodynamic and Hydromagnetic Stability (1961): 1707.762 between rigid plates."""
    numbers = [1690.0, 1725.0]
    size = {"config.axes.x.cells": 16, "config.axes.y.cells": 16, "disturbance": 1e-5}
    swept = simkit.sweep(load("rayleigh_benard_onset", size), over={"rayleigh": numbers})
    energy, time = swept["energy"].isel(seed=0).values, swept["time"].isel(seed=0).values[0]
    half = len(time) // 2
    growth = (energy[:, -1] - energy[:, half:].mean(axis=1)) / time[-1]
    onset = np.interp(0, growth, numbers)
    # Measured: 0.22 % below, and 0.035 % with 32 cells across.
    assert onset == pytest.approx(1707.762, rel=0.005)


def test_a_stream_function_with_flow_through_walls_gives_a_solenoidal_start():
    walls = {"cells": 8, "length": 1.0, "lower": "wall", "upper": "wall"}
    simulation = flow.system(
        axes={"x": walls, "y": walls},
        viscosity="nu",
        initial={"stream_function": "x*y"},
        parameters={"nu": 0.1, "time_step": 0.01},
    )
    state = simulation.init(simulation.params, jax.random.key(0))
    assert float(simulation.diagnose(state, simulation.params)["divergence"]) < 1e-13
