"""Reynolds number and forcing are identified from noisy frames, within the standard error."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.estimation import standard_errors
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.flow.systems.viscosity_from_frames import viscosity_from_frames

TRUE = {"reynolds": 150.0, "forcing": 1.0}
SMALL = {"cells": [16, 12], "frame_every": 2}
FRAMES = 16
# Fewer frames of fewer cells, so less noise: the truth is then known as well as at the shipped size.
SMALL_NOISE = 0.02


def at_truth(simulation):
    return simulation.params | {name: jnp.asarray(value) for name, value in TRUE.items()}


@functools.cache
def small():
    simulation = viscosity_from_frames(**SMALL).with_params(noise=SMALL_NOISE, time_step=0.05)
    return simulation, jax.jit(trajectory(simulation, FRAMES, 1))


def test_misfit_at_the_truth_is_that_of_the_noise_alone(x64):
    simulation, run = small()
    count = FRAMES * 16 * 12 * 2
    for seed in range(4):
        _, frames, found = run(at_truth(simulation), jax.random.key(seed))
        # The mean of the squares of normal numbers scatters by sqrt(2/count); 4 standard deviations.
        assert found["misfit"][-1] == pytest.approx(1, abs=4 * np.sqrt(2 / count))
        assert found["distance"][-1] == 0
        errors = np.asarray(frames["recorded_u"] - frames["u"]) / SMALL_NOISE
        assert errors.std() == pytest.approx(1, abs=4 / np.sqrt(count))


def test_misfit_grows_as_the_fisher_information_predicts(x64):
    """Near the truth misfit = that of the noise + (p - p_true)^2 F / count, F from `standard_errors`."""
    simulation, run = small()
    count = FRAMES * 16 * 12 * 2
    for name in TRUE:
        error = standard_errors(simulation, at_truth(simulation), FRAMES, (name,), "uv")[name]
        values = [TRUE[name] + sign * error for sign in (-1, 0, 1)]
        misfits = [
            float(run(at_truth(simulation) | {name: jnp.asarray(value)}, jax.random.key(0))[2]["misfit"][-1])
            for value in values
        ]
        # One standard error either way: the second difference is 2/count. The fourth derivative of a misfit that
        # changes over the parameter itself adds the square of the relative error, below 1e-2.
        assert (misfits[0] - 2 * misfits[1] + misfits[2]) * count == pytest.approx(2, rel=0.02)


def test_least_squares_through_the_flow_find_the_truth_within_its_standard_error(x64):
    simulation, _ = small()
    params, key, names = simulation.params, jax.random.key(5), tuple(TRUE)
    run = trajectory(simulation, FRAMES, 1)

    def residual(values):
        frames = run(params | dict(zip(names, values, strict=True)), key)[1]
        differences = [frames[name] - frames[f"recorded_{name}"] for name in "uv"]
        return jnp.stack(differences).ravel() / SMALL_NOISE

    @jax.jit
    def improved(values):
        slopes, left = jax.jacfwd(residual)(values), residual(values)
        return values - jnp.linalg.solve(slopes.T @ slopes, slopes.T @ left)

    errors = standard_errors(simulation, at_truth(simulation), FRAMES, names, "uv")
    found = jnp.asarray([100.0, 0.7])
    for name, value in zip(names, found, strict=True):
        assert abs(value - TRUE[name]) > 10 * errors[name]
    # Gauss and Newton's steps square the relative error, 0.4 at first.
    for _ in range(8):
        found = improved(found)
    for name, value in zip(names, found, strict=True):
        # A normal estimate is further than 4 standard errors away in one case of 16,000.
        assert abs(float(value) - TRUE[name]) < 4 * errors[name], (name, errors)


def test_mistakes_are_refused():
    with pytest.raises(UserError, match=r"true_reynolds = 0 is (not above 0|below its lower bound)"):
        viscosity_from_frames(true_reynolds=0)
    with pytest.raises(UserError, match="every = 0"):
        viscosity_from_frames(frame_every=0)
