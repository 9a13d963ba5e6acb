"""Recordings: noise, misfit and standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.estimation import beside_recording
from simkit.core.rollout import trajectory
from tests.core.toys import oscillator

pytestmark = pytest.mark.usefixtures("x64")

FRAMES, SIZE, EVERY, NOISE = 40, 30, 3, 0.05
TRUTH = 1.3


def made(**start):
    return beside_recording(
        oscillator(SIZE),
        {"frequency": TRUTH},
        lambda state, params: {"position": state.position},
        every=EVERY,
        noise=NOISE,
        **(start or {"fixed": ("time_step",)}),
    )


def test_the_misfit_of_the_true_parameters_is_the_noise():
    simulation = made()
    assert set(simulation.params) == {"frequency", "noise"}
    run = jax.jit(trajectory(simulation, FRAMES, 1))
    _, frames, found = run(simulation.params, jax.random.key(1))
    errors = np.asarray(frames["recorded_position"] - frames["position"])[1:] / NOISE
    # 1,200 numbers: the mean scatters by 1 / sqrt(count), the standard deviation by 1 / sqrt(2 count); 4 of these.
    assert abs(errors.mean()) < 4 / np.sqrt(errors.size)
    assert errors.std() == pytest.approx(1, abs=4 / np.sqrt(2 * errors.size))
    assert float(found["misfit"][-1]) == pytest.approx(np.mean(errors**2), rel=1e-12)
    assert float(found["distance"][-1]) == 0


def test_the_recording_does_not_depend_on_the_trial_parameters():
    run = jax.jit(trajectory(made(), FRAMES, 1))
    truth, other = (
        run(made().params | {"frequency": jnp.asarray(value)}, jax.random.key(1))[1] for value in (TRUTH, 1.0)
    )
    np.testing.assert_array_equal(truth["recorded_position"], other["recorded_position"])
    alone = trajectory(oscillator(SIZE).with_params(frequency=1.0), FRAMES * EVERY, EVERY)
    expected = alone(oscillator(SIZE).with_params(frequency=1.0).params, jax.random.key(1))[1]
    np.testing.assert_allclose(other["position"], expected["position"], rtol=1e-13)


def test_misfit_is_least_within_the_noise_of_the_truth():
    simulation = made()
    record = trajectory(simulation, FRAMES, 1)

    def misfit(frequency):
        return record(simulation.params | {"frequency": frequency}, jax.random.key(2))[2]["misfit"][-1]

    slope, curvature = jax.jit(jax.grad(misfit)), jax.jit(jax.hessian(misfit))
    guess = jnp.asarray(1.25)
    for _ in range(8):
        guess = guess - slope(guess) / curvature(guess)
    # misfit = chi^2 / count, so its curvature is 2 / (count sigma^2) with the standard error sigma; 4 of these.
    error = np.sqrt(2 / (FRAMES * SIZE * float(curvature(guess))))
    assert float(guess) == pytest.approx(TRUTH, abs=4 * error)
    assert error < 0.01


def test_seeds_differ_in_their_noise_only_where_the_start_has_a_key_of_its_own():
    simulation = made(start=lambda key: jax.random.key(7))
    keys = jax.random.split(jax.random.key(0), 2)
    run = jax.jit(trajectory(ensemble(simulation), 4, 1))
    frames = run(simulation.params, keys)[1]
    np.testing.assert_array_equal(frames["position"][:, 0], frames["position"][:, 1])
    assert np.all(frames["recorded_position"][:, 0] != frames["recorded_position"][:, 1])
