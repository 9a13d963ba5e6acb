"""A plan off a cushion, and parameters from recorded bounces."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import simkit
from simkit.core.estimation import standard_errors
from simkit.core.rollout import trajectory
from simkit.rigid import steered_puck, system_identification

KNOTS, STEPS, DURATION = 5, 40, 2.0
MASS, DISTANCE, GAP, WEIGHT = 0.5, 2.0, 0.8, 1000.0


@functools.cache
def program():
    """Return ``plan -> (slopes, found)`` of the compiled run: slopes of where it ends, in x, z and their rates."""
    simulation = steered_puck()
    record = trajectory(simulation, STEPS, STEPS)

    def run(plan):
        params = simulation.params | {"force_x": plan[:KNOTS], "force_z": plan[KNOTS:]}
        _, frames, found = record(params, jax.random.key(0))
        end = [frames[name][-1, 0, axis] for name in ("position", "velocity") for axis in (0, 2)]
        end = jnp.stack(end)
        return end, {name: value[-1] for name, value in found.items()} | {"end": end}

    return jax.jit(jax.jacfwd(run, has_aux=True))


def look(plan):
    slopes, found = program()(jnp.asarray(plan))
    return np.asarray(slopes), {name: np.asarray(value) for name, value in found.items()}


# Linear in time along the cushion; away from it the same towards the mirror image, and its reflection after T/2.
STRAIGHT = 6 * MASS * DISTANCE / DURATION**2 * np.linspace(1, -1, KNOTS)
OFF_CUSHION = -12 * MASS * GAP / DURATION**2 * np.abs(np.linspace(1, -1, KNOTS))
BANK = np.concatenate([STRAIGHT, OFF_CUSHION])
DIRECT = np.concatenate([STRAIGHT, np.zeros(KNOTS)])
# Integrals of products of hat functions.
HATS = DURATION / (KNOTS - 1) / 6 * (np.diag([2, 4, 4, 4, 2]) + np.eye(KNOTS, k=1) + np.eye(KNOTS, k=-1))


def least_cost(*displacements):
    """Return the least cost from rest over displacements with a penalized end, by linear-quadratic control.

    ``b (G + 1/w)^-1 b`` with the Gramian G of a mass under a force: no plan, whatever its shape, costs less.
    """
    t = DURATION
    gramian = np.array([[t**3 / 3, t**2 / 2], [t**2 / 2, t]]) / MASS**2 + np.eye(2) / WEIGHT
    return sum(d**2 * np.linalg.inv(gramian)[0, 0] for d in displacements)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_analytic_plans_end_at_rest_at_the_goal_at_the_least_effort(precision):
    with jax.enable_x64(precision == "float64"):
        run = jax.jit(trajectory(steered_puck(), STEPS, STEPS))
        for plan, effort, impacts in ((BANK, 2.46, 1), (DIRECT, 1.5, 0)):
            halves = {"force_x": jnp.asarray(plan[:KNOTS], float), "force_z": jnp.asarray(plan[KNOTS:], float)}
            found = run(steered_puck().params | halves, jax.random.key(0))[2]
            assert effort == pytest.approx(12 * MASS**2 * (DISTANCE**2 + impacts * 4 * GAP**2) / DURATION**3)
            assert found["impacts"][-1] == impacts
            # 40 steps round numbers of order 1 once or twice each, and speeds act for 2 s.
            rounding = 200 * np.finfo(precision).eps
            np.testing.assert_allclose(found["effort"][-1], effort, rtol=rounding)
            np.testing.assert_allclose([found["miss"][-1], found["speed"][-1]], 0, atol=rounding)


def test_the_plan_off_the_cushion_is_a_minimum(x64):
    """At the least effort its derivative is a combination of those of what is held fixed (Lagrange)."""
    slopes, _ = look(BANK)
    derivative = 2 * np.concatenate([HATS @ STRAIGHT, HATS @ OFF_CUSHION])
    multipliers = np.linalg.lstsq(slopes.T, derivative, rcond=None)[0]
    # Roundings; any other plan misses by as much as it differs.
    np.testing.assert_allclose(slopes.T @ multipliers, derivative, atol=1e-12)
    # What another meter, or meter per second, would cost: 24 m^2 d / T^3, and -12 m^2 d / T^2; z is seen in the mirror.
    expected = 12 * MASS**2 / DURATION**3 * np.array([2 * DISTANCE, 4 * GAP, -DURATION * DISTANCE, -2 * DURATION * GAP])
    np.testing.assert_allclose(multipliers, expected, rtol=1e-11)


def test_shipped_optimization_finds_the_way_off_the_cushion():
    found = simkit.optimize("steered_puck", ["force_x", "force_z"], iterations=100)
    assert least_cost(DISTANCE, 2 * GAP) < float(found["best_loss"][-1]) < 2.46


TRUE = {"mass": 0.6, "friction": 0.06, "restitution": 0.8}
NAMES = tuple(TRUE)
TRUTH = np.array(list(TRUE.values()))
FRAMES = 70
COUNT = 2 * FRAMES
NOISE = 0.01


@functools.cache
def identification_program():
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
    slopes, found = identification_program()(jnp.broadcast_to(jnp.asarray(values), (len(seeds), 3)), keys)
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
