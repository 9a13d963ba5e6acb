"""Error bars of derivatives by fluctuations: how many of 200 runs are within their bars of exact answers."""

import warnings

import jax
import numpy as np
import pytest

import simkit
from simkit.core.fluctuations import WITHIN_95, ensemble_derivative, weight_of
from simkit.molecular import system
from tests.core.wells import PISTON, WELL, in_a_well, piston, slopes, volume, well

HARMONIC = WELL | {"quartic": 0.0}


@pytest.mark.parametrize(
    ("simulation", "quantity", "average", "values", "wrt"),
    [
        (well, "spread", in_a_well, WELL, [*WELL]),
        (lambda: well(**HARMONIC), "spread", in_a_well, HARMONIC, ["stiffness", "temperature"]),
        (piston, "volume", volume, PISTON, [*PISTON]),
    ],
    ids=["anharmonic", "harmonic", "isobaric"],
)
def test_of_200_runs_90_to_99_percent_are_within_their_95_percent_bars(x64, simulation, quantity, average, values, wrt):
    made = simulation()
    derive = ensemble_derivative(made, quantity, wrt, steps=33_000, every=20, skip=1000)
    found, _, _ = jax.jit(jax.vmap(derive, (None, 0)))(made.params, jax.random.split(jax.random.key(3), 200))
    exact = slopes(average, values)
    shares = {"value": np.mean(np.abs(found.value - average(**values)) < WITHIN_95 * found.value_error)}
    for name in wrt:
        away = np.abs(found.derivative[name] - exact[name])
        shares[name] = np.mean(away < WITHIN_95 * found.error[name])
        # The mean of all runs has no bias above its own error.
        bias = np.mean(found.derivative[name]) - exact[name]
        assert abs(bias) < 4 * np.std(found.derivative[name]) / 200**0.5, name
    assert all(0.90 <= share <= 0.99 for share in shares.values()), shares


def liquid(**more):
    """Return particles of a file that repel each other in a plane."""
    return system(
        dimension=2,
        particles={"bead": {"count": 16}},
        start={"separation": 0.8},
        cell={"density": "density"},
        interactions=[{"potential": "soft_sphere"}],
        task="dynamics",
        dynamics={"method": "langevin", "time_step": 0.01, "friction": 2.0, "temperature": "warm"} | more,
        averages={"every": 5, "skip": 0, "of": ["pressure"]},
        parameters={"warm": 0.5, "epsilon": 1.0, "sigma": 1.0, "density": 0.5},
    )


def test_a_file_with_running_means_serves_in_single_precision():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short run
        found = simkit.ensemble_derivative(
            liquid(), ["warm", "epsilon", "density"], quantity="pressure", steps=300, every=2
        )
    assert all(np.isfinite(slope) for slope in found.derivative.values())
    # An ideal gas has dp/dT = density, and repulsion adds to it.
    assert found.derivative["warm"] > 0.5 - 4 * found.error["warm"]
    assert isinstance(weight_of(liquid(temperature="warm * (1 + time)")), str)
