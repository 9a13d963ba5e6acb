"""Mass, friction and restitution are identified from noisy positions, within the standard error."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import simkit
from simkit.core.estimation import standard_errors
from simkit.core.rollout import trajectory
from simkit.rigid import system_identification

TRUE = {"mass": 0.6, "friction": 0.06, "restitution": 0.8}
NAMES = tuple(TRUE)
TRUTH = np.array(list(TRUE.values()))
FRAMES = 70
COUNT = 2 * FRAMES
NOISE = 0.01


@functools.cache
def program():
    """Return ``(values, keys) -> (slopes, found)`` of the compiled run; ``found`` holds all that the tests compare."""
    simulation = system_identification()
    record = trajectory(simulation, FRAMES, 1)

    def run(values, key):
        _, frames, found = record(simulation.params | dict(zip(NAMES, values, strict=True)), key)
        place, recorded = frames["place"][1:], frames["recorded_place"][1:]
        seen = {name: found[name][-1] for name in ("misfit", "distance", "impacts")}
        return place, seen | {"place": place, "residual": ((place - recorded) / NOISE).ravel()}

    return jax.jit(jax.vmap(jax.jacfwd(run, has_aux=True), (0, 0)))


def slopes_and_found(values, seeds):
    """Return slopes (members, numbers, 3) in units of the noise, and ``found``, for values (members, 3)."""
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    slopes, found = program()(jnp.broadcast_to(jnp.asarray(values), (len(seeds), 3)), keys)
    return np.asarray(slopes).reshape(len(seeds), COUNT, 3) / NOISE, {n: np.asarray(v) for n, v in found.items()}


def starting_guess():
    params = system_identification().params
    return np.array([float(params[name]) for name in NAMES])


@functools.cache
def errors():
    simulation = system_identification()
    true = simulation.params | {name: jnp.asarray(value) for name, value in TRUE.items()}
    return np.array(list(standard_errors(simulation, true, FRAMES, NAMES, ["place"]).values()))


def closed_form(time, mass, friction, restitution):
    """Return x and z (m) after two slipping impacts; analytic in every argument, so that complex steps work.

    The force does not change the height; each impact at vertical speed w subtracts ``friction (1 + restitution) w``
    from the velocity along x.
    """
    speed, force, frequency, height, radius, gravity = 4.0, 1.0, 2 * np.pi, 1.0, 0.1, 9.81
    fall, w = np.sqrt(2 * height / gravity), np.sqrt(2 * gravity * height)
    second = fall + 2 * restitution * w / gravity
    x = speed * time + force / (mass * frequency) * (time - np.sin(frequency * time) / frequency)
    lost = friction * (1 + restitution) * w
    x = x - np.where(time > fall, lost * (time - fall), 0)
    x = x - np.where(time > np.real(second), restitution * lost * (time - second), 0)
    first_flight = restitution * w * (time - fall) - gravity / 2 * (time - fall) ** 2
    second_flight = restitution**2 * w * (time - second) - gravity / 2 * (time - second) ** 2
    z = np.where(time > np.real(second), second_flight, first_flight)
    return np.stack([x, radius + np.where(time > fall, z, height - gravity / 2 * time**2)], axis=-1)


def test_positions_and_their_derivatives_are_those_of_the_closed_form(x64):
    # Eight members, as everywhere, so that one program serves all tests.
    slopes, found = slopes_and_found(TRUTH, [0] * 8)
    time = 0.02 * np.arange(1, FRAMES + 1)
    assert (found["impacts"] == 2).all()
    # The polynomial through three samples of the push F sin(w t) in a time step h leaves an error of at most
    # T F/m (w h)^3 h (1/720 + T w/5760) = 1.7e-8 m, and each impact, which cuts it short, a further 0.8e-8 m/s.
    np.testing.assert_allclose(found["place"][0], closed_form(time, *TRUTH), rtol=0, atol=1e-7)
    for index in range(3):
        step = np.where(np.arange(3) == index, 1e-30j, 0)
        analytic = np.imag(closed_form(time, *(TRUTH + step))) / 1e-30
        # For the mass the same error over it, 1.7 times as large. Restitution moves the second impact by 0.9 s per
        # unit, where the polynomials before and after it err by up to F/m (w h)^3 / 125 = 3.3e-6 m/s^2 each, and then
        # 0.23 s go by.
        bound = 1.4e-6 if NAMES[index] == "restitution" else 2e-7
        found_slope = slopes[0].reshape(FRAMES, 2, 3)[..., index] * NOISE
        np.testing.assert_allclose(found_slope, analytic, rtol=0, atol=bound, err_msg=NAMES[index])


def test_misfit_at_the_truth_is_that_of_the_noise_alone(x64):
    _, found = slopes_and_found(TRUTH, range(8))
    # The mean of the squares of normal numbers scatters by sqrt(2/count); 4 standard deviations.
    np.testing.assert_allclose(found["misfit"], 1, atol=4 * np.sqrt(2 / COUNT))
    assert (found["distance"] == 0).all()
    # All eight together.
    assert found["residual"].std() == pytest.approx(1, abs=4 / np.sqrt(2 * 8 * COUNT))


def test_derivatives_of_the_misfit_equal_central_differences(x64):
    guess, step = starting_guess(), 1e-5
    slopes, found = slopes_and_found(guess, [3] * 8)
    derivative = 2 / COUNT * found["residual"][0] @ slopes[0]
    moved = np.repeat(guess[None], 8, axis=0)
    for index in range(3):
        moved[2 * index : 2 * index + 2, index] += [step, -step]
    misfit = slopes_and_found(moved, [3] * 8)[1]["misfit"]
    difference = (misfit[0:6:2] - misfit[1:6:2]) / (2 * step)
    # The difference is short by step^2 f'''/6 = step^2 misfit / value^3, which is below 1e-6 of f' for values above
    # 0.01, and rounded by eps misfit / step, 1e-8.
    np.testing.assert_allclose(derivative, difference, rtol=1e-6)


def test_least_squares_through_the_impacts_find_the_truth_within_their_standard_error(x64):
    seeds = range(8)
    found = np.repeat(starting_guess()[None], 8, axis=0)
    assert (np.abs(found[0] - TRUTH) > 10 * errors()).all()
    # Gauss and Newton's steps square the relative error, 0.3 at first.
    for _ in range(6):
        slopes, seen = slopes_and_found(found, seeds)
        found = found - [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(slopes, seen["residual"], strict=True)]
    scaled = (found - TRUTH) / errors()
    # A normal estimate is further than 4 standard errors away in one case of 16,000.
    assert (np.abs(scaled) < 4).all(), scaled
    # They scatter as the errors say, no less and no more: each in its own 99.98 % interval.
    low, high = chi2.ppf([1e-4, 1 - 1e-4], len(seeds))
    square = (scaled**2).sum(axis=0)
    assert (low < square).all() and (square < high).all(), square


def test_shipped_optimization_finds_the_truth_within_its_standard_error():
    found = simkit.optimize("system_identification", list(NAMES), iterations=30)
    with jax.enable_x64(True):
        error = errors()
    for name, truth, one in zip(NAMES, TRUTH, error, strict=True):
        assert abs(float(found[f"best_{name}"][-1]) - truth) < 4 * one, (name, one)
