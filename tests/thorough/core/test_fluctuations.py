"""Error bars of derivatives by fluctuations: how many of 200 runs are within their bars of exact answers."""

import jax
import numpy as np
import pytest

from simkit.core.fluctuations import WITHIN_95, ensemble_derivative
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
    derive = ensemble_derivative(made, quantity, wrt, steps=16_500, every=10, skip=500)
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
