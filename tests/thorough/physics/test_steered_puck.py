"""The plan of least effort through the bounce, against that of the mirror image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.rollout import trajectory
from simkit.rigid import steered_puck
from tests.physics.test_steered_puck import DISTANCE, DURATION, GAP, KNOTS, MASS, STEPS, WEIGHT, look, starting_plan

# Linear in time along the cushion; away from it the same towards the mirror image, and its reflection after T/2.
STRAIGHT = 6 * MASS * DISTANCE / DURATION**2 * np.linspace(1, -1, KNOTS)
OFF_CUSHION = -12 * MASS * GAP / DURATION**2 * np.abs(np.linspace(1, -1, KNOTS))
BANK = np.concatenate([STRAIGHT, OFF_CUSHION])
DIRECT = np.concatenate([STRAIGHT, np.zeros(KNOTS)])


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
    # Integrals of products of hat functions.
    hats = DURATION / (KNOTS - 1) / 6 * (np.diag([2, 4, 4, 4, 2]) + np.eye(KNOTS, k=1) + np.eye(KNOTS, k=-1))
    derivative = 2 * np.concatenate([hats @ STRAIGHT, hats @ OFF_CUSHION])
    multipliers = np.linalg.lstsq(slopes.T, derivative, rcond=None)[0]
    # Roundings; any other plan misses by as much as it differs.
    np.testing.assert_allclose(slopes.T @ multipliers, derivative, atol=1e-12)
    # What another meter, or meter per second, would cost: 24 m^2 d / T^3, and -12 m^2 d / T^2; z is seen in the mirror.
    expected = 12 * MASS**2 / DURATION**3 * np.array([2 * DISTANCE, 4 * GAP, -DURATION * DISTANCE, -2 * DURATION * GAP])
    np.testing.assert_allclose(multipliers, expected, rtol=1e-11)


@pytest.mark.parametrize(("way", "displacements"), [("bank", (DISTANCE, 2 * GAP)), ("direct", (DISTANCE,))])
def test_gauss_newton_finds_the_plan_of_least_cost(way, displacements, x64):
    plan = starting_plan() * (1 if way == "bank" else np.repeat([1, 0], KNOTS))
    goal = np.array([DISTANCE, GAP + 0.1, 0, 0])
    hats = DURATION / (KNOTS - 1) / 6 * (np.diag([2, 4, 4, 4, 2]) + np.eye(KNOTS, k=1) + np.eye(KNOTS, k=-1))
    effort = np.kron(np.eye(2), hats)
    for _ in range(12):
        slopes, found = look(plan)
        bent = effort + WEIGHT * slopes.T @ slopes
        plan = plan - np.linalg.solve(bent, effort @ plan + WEIGHT * slopes.T @ (found["end"] - goal))
    cost, bound = look(plan)[1]["cost"], least_cost(*displacements)
    if way == "direct":
        # The best force of all is linear in time, which is among the plans.
        assert cost == pytest.approx(bound, rel=1e-10)
        np.testing.assert_allclose(plan[KNOTS:], 0, atol=1e-12)
    else:
        # It turns sharply when the puck meets the cushion, a little after the knot; the plan that meets it at the knot
        # and ends at the goal is among the plans.
        assert bound < cost < 12 * MASS**2 * (DISTANCE**2 + 4 * GAP**2) / DURATION**3
        # The short end changes the plan by 6 / (w T^3 / (12 m^2)) = 0.1 %.
        np.testing.assert_allclose(plan, BANK, atol=2e-3)


def test_shipped_optimization_finds_the_way_off_the_cushion():
    found = simkit.optimize("steered_puck", ["force_x", "force_z"], iterations=100)
    assert least_cost(DISTANCE, 2 * GAP) < float(found["best_loss"][-1]) < 2.46
