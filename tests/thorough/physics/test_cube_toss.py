"""A cube whose friction, dissipation and inertia are fitted to recorded corners."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from simkit import build, load
from simkit.core.rollout import trajectory

NAMES = ("friction", "dissipation", "inertia")
TRUTH = np.array([0.18, 0.25, 8e-4])
COORDINATES = [f"{corner}.{axis}" for corner in "abc" for axis in "xyz"]
NOISE = 1e-3

pytestmark = pytest.mark.usefixtures("x64")


@functools.cache
def program(substeps):
    """Return ``values -> (slopes, (corners, recorded))``, of coordinates (frames, 9) in units of the noise."""
    scenario = load("cube_toss", {"config.method.substeps": substeps})
    simulation = build(scenario)
    record = trajectory(simulation, scenario.run.steps, scenario.run.every)

    def run(values):
        found = record(simulation.params | dict(zip(NAMES, values, strict=True)), jax.random.key(0))[2]
        corners, recorded = (
            jnp.stack([found[before + name] for name in COORDINATES], axis=1) / NOISE for before in ("", "recorded_")
        )
        return corners, (corners, recorded)

    return jax.jit(jax.jacfwd(run, has_aux=True))


def seen(values, substeps=100):
    slopes, (corners, recorded) = program(substeps)(jnp.asarray(values))
    return np.asarray(slopes).reshape(-1, 3), np.asarray(corners), np.asarray(recorded)


def fitted(recorded, values):
    """Return the values of the least squares, by Gauss and Newton's method from values near them."""
    for _ in range(6):
        slopes, corners, _ = seen(values)
        values = values - np.linalg.lstsq(slopes, (corners - recorded).ravel(), rcond=None)[0]
    return values


def test_the_recording_is_the_true_cube_with_errors_drawn_from_seed_0():
    _, corners, recorded = seen(TRUTH)
    # The file has five decimals.
    np.testing.assert_allclose(recorded - corners, np.random.default_rng(0).normal(size=corners.shape), atol=5.1e-3)


def test_without_errors_the_cube_is_found_to_rounding():
    _, exact, _ = seen(TRUTH)
    np.testing.assert_allclose(fitted(exact, np.array([0.19, 0.24, 8.08e-4])), TRUTH, rtol=1e-9)


def test_with_errors_the_cube_is_found_within_its_standard_errors():
    slopes, exact, recorded = seen(TRUTH)
    information = slopes.T @ slopes
    errors = [recorded - exact, *(np.random.default_rng(seed).normal(size=exact.shape) for seed in range(1, 8))]
    off = np.array([fitted(exact + one, TRUTH) - TRUTH for one in errors])
    # Each in its own 99.98 % interval of three degrees of freedom, and all together in theirs.
    squares = np.einsum("ni,ij,nj->n", off, information, off)
    assert (squares < chi2.ppf(1 - 2e-4, 3)).all(), squares
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 3 * len(errors))
    assert low < squares.sum() < high, squares


def test_the_derivative_of_the_misfit_is_its_central_difference():
    values = np.array([0.25, 0.2, 8.4e-4])

    def misfit(values):
        _, corners, recorded = seen(values)
        return np.mean((corners - recorded) ** 2)

    slopes, corners, recorded = seen(values)
    slope = 2 * slopes.T @ (corners - recorded).ravel() / corners.size
    steps = 5e-6 * values
    ways = np.diag(steps)
    differences = [
        (misfit(values + way) - misfit(values - way)) / (2 * step) for way, step in zip(ways, steps, strict=True)
    ]
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


def test_the_derivatives_converge_to_those_of_the_motion():
    coarse, middle, fine = (seen(TRUTH, substeps)[0] for substeps in (100, 200, 400))
    errors = [np.linalg.norm(slopes - fine, axis=0) / np.linalg.norm(fine, axis=0) for slopes in (coarse, middle)]
    # Of first order, the second would be a third of the first.
    assert (errors[0] < 0.015).all() and (errors[1] < errors[0] / 2).all(), errors
