"""Running means: values, derivatives, independence of the division into segments."""

import jax
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from tests.core.test_averages import EVERY, SKIP, mean_oscillator
from tests.core.toys import oscillator


def test_means_are_those_of_the_samples_after_the_skipped_ones(x64):
    simulation, plain, samples, key = mean_oscillator(), oscillator(2), 20, jax.random.key(0)
    _, frames, found = jax.jit(trajectory(simulation, samples, 1))(simulation.params, key)
    _, positions, expected = jax.jit(trajectory(plain, samples * EVERY, EVERY))(plain.params, key)
    np.testing.assert_allclose(found["time"], expected["time"], rtol=1e-13)
    np.testing.assert_allclose(frames["position"], positions["position"], rtol=0, atol=1e-13)
    squares = np.asarray(positions["position"])[:, 0] ** 2 * 1.3
    # A mean of no samples is NaN, in diagnostics and in observed arrays; the state stays finite.
    assert np.isnan(found["mean_square"][: SKIP + 1]).all() and np.isnan(frames["mean_position"][: SKIP + 1]).all()
    for number in range(SKIP + 1, samples + 1):
        mean = squares[SKIP + 1 : number + 1].mean()
        assert float(found["mean_square"][number]) == pytest.approx(mean, rel=1e-12)
    last = np.asarray(positions["position"])[SKIP + 1 :].mean(axis=0)
    np.testing.assert_allclose(frames["mean_position"][-1], last, rtol=0, atol=1e-13)
    assert simulation.dimensions["mean_position"] == ("oscillator",)
    assert list(simulation.coordinates["oscillator"]) == [0, 1]


def test_derivative_of_a_mean_equals_its_central_difference(x64):
    objective = Objective(mean_oscillator(), "mean_square", steps=12)
    found = gradient.check_gradient(
        objective, objective.simulation.params, jax.random.key(3), ["frequency", "time_step"]
    )
    for name, difference in found.relative_difference.items():
        assert abs(found.derivative[name]) > 1e-3
        assert difference < 1e-6, name
