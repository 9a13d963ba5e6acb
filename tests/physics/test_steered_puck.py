"""The plan of least effort through the bounce, against that of the mirror image."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.rigid import steered_puck

KNOTS, STEPS, DURATION = 5, 40, 2.0
MASS, DISTANCE, GAP, WEIGHT = 0.5, 2.0, 0.8, 1000.0
TIMES = np.linspace(0, DURATION, KNOTS)


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


def starting_plan():
    params = steered_puck().params
    return np.concatenate([params["force_x"], params["force_z"]])


def pieces(bounce):
    """Return Gauss's times and weights between knots and the bounce, and the hat functions (knots, times) there."""
    edges = np.unique([*TIMES, bounce])
    nodes, weights = np.polynomial.legendre.leggauss(3)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    time, weight = (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
    return time, weight, np.maximum(1 - np.abs(time / TIMES[1] - np.arange(KNOTS)[:, None]), 0)


def analytic_slopes(force_z, bounce):
    """Return d (z, v_z) at the end / d force_z through one bounce without loss at its time, by the mirror image.

    Unfolded, y = z before and -z after it, y'' = +-F/m, and a bounce later by dt adds 2 F(bounce) dt / m to y'.
    """
    time, weight, hats = pieces(bounce)
    before = time < bounce
    sign = np.where(before, 1, -1)
    approach = np.sum((weight * hats)[:, before], axis=1) @ force_z / MASS
    later = -(hats * weight * (bounce - time))[:, before].sum(axis=1) / MASS / approach
    jump = 2 * np.interp(bounce, TIMES, force_z) / MASS * later
    rate = (hats * weight * sign).sum(axis=1) / MASS + jump
    place = (hats * weight * sign * (DURATION - time)).sum(axis=1) / MASS + (DURATION - bounce) * jump
    return -np.stack([place, rate])


def time_of_bounce(force_z):
    """Return when a mass that starts from rest at the gap gets to zero, by bisection."""
    low, high = 0.0, DURATION
    for _ in range(60):
        bounce = (low + high) / 2
        time, weight, hats = pieces(bounce)
        now = GAP + np.sum((hats * weight * (bounce - time))[:, time < bounce], axis=1) @ force_z / MASS
        low, high = (bounce, high) if now > 0 else (low, bounce)
    return bounce


def test_derivatives_through_the_bounce_are_those_of_the_mirror_image(x64):
    plan = starting_plan()
    slopes, found = look(plan)
    assert found["impacts"] == 1
    bounce = time_of_bounce(plan[KNOTS:])
    # Roundings of 40 steps, divided by a speed of approach of 1.8 m/s.
    np.testing.assert_allclose(slopes[[1, 3], KNOTS:], analytic_slopes(plan[KNOTS:], bounce), atol=1e-12)
    np.testing.assert_allclose([slopes[[1, 3], :KNOTS], slopes[[0, 2], KNOTS:]], 0, atol=1e-14)
    step = 1e-5
    for knot in range(2 * KNOTS):
        change = step * (np.arange(2 * KNOTS) == knot)
        difference = (look(plan + change)[1]["end"] - look(plan - change)[1]["end"]) / (2 * step)
        # Truncation of step^2 and rounding of 1e-15 / step.
        np.testing.assert_allclose(slopes[:, knot], difference, atol=1e-9)


def test_mistakes_are_refused():
    with pytest.raises(UserError, match=r"knots = 1 is not an integer in \[2, 1000\]"):
        steered_puck(knots=1)
    with pytest.raises(UserError, match=r"steps_between = 0.5 is not an integer in \[1, 1000\]"):
        steered_puck(steps_between=0.5)
