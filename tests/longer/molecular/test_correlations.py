"""Correlations in space and time against closed forms, and their running means in a file."""

import numpy as np
import pytest

import simkit
from simkit.molecular import system
from tests.molecular.test_correlations import (
    FRICTION,
    MASS,
    STEP,
    TEMPERATURE,
    run,  # noqa: F401
)


def test_velocities_of_free_particles_in_a_bath_decay_exponentially(run):
    time = STEP * run["lag"].values
    expected = 3 * TEMPERATURE / MASS * np.exp(-FRICTION * time)
    # 3,000 components over 20 times of decay: 0.5 %, four of them, of the value without lag.
    np.testing.assert_allclose(run["velocity_autocorrelation"][-1], expected, rtol=0, atol=0.02 * expected[0])


def test_stress_and_viscosity_of_a_run_are_those_of_its_samples(x64):
    run = simkit.run(
        system(
            particles={"bead": {}},
            start={"lattice": "face_centered_cubic", "repeats": [2, 2, 2]},
            cell={"density": 0.8},
            interactions=[{"potential": "lennard_jones", "cutoff": 1.5, "ending": "shift_force"}],
            task="dynamics",
            dynamics={"time_step": 0.004, "temperature": 1.0},
            observed=["stress"],
            averages={"every": 2, "skip": 0, "of": ["stress_xy"], "correlation": {"lags": 3}},
            parameters={"epsilon": 1.0, "sigma": 1.0},
        ),
        steps=7,
        every=1,
    )
    volume = 32 / 0.8
    trace = sum(run[f"stress_{axes}"].values for axes in ("xx", "yy", "zz"))
    np.testing.assert_allclose(-trace / 3 + run["temperature"] / volume, run["pressure"], rtol=1e-12)
    # The first sample is after two time steps; each counts once there are three before it.
    shear = np.stack([run[f"stress_{axes}"].values[1:] for axes in ("yz", "xz", "xy")])
    lags = [np.mean(shear[:, 3:] * shear[:, 3 - lag : 7 - lag]) for lag in range(4)]
    np.testing.assert_allclose(run["stress_autocorrelation"].values[-1], lags, rtol=1e-10)
    integral = 2 * 0.004 * (lags[0] / 2 + lags[1] + lags[2] + lags[3] / 2)
    expected = volume / run["temperature"].values[4:].mean() * integral
    assert float(run["viscosity"].values[-1]) == pytest.approx(expected, rel=1e-10)
    assert float(run["mean_stress_xy"].values[-1]) == pytest.approx(shear[2, 3:].mean(), rel=1e-10)
