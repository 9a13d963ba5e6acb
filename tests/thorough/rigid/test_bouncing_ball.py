"""The bouncing ball, checks of starts, and the time of long runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.errors import UserError
from simkit.rigid import bouncing_ball
from simkit.rigid.algebra.vector import norm
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.rigid.test_mistakes import SEEDS, refused, turned
from tests.rigid.test_own_scenes import KEY, STEP, last_diagnostics, run, swung
from tests.tables import every

CORNERS = {
    "a usual throw": {},
    "a throw from the floor": {"launch_height": 0.0},
    "a ball laid on the floor": {"launch_height": 0.0, "launch_speed": 0.0, "spin": 0.0},
    "a ball laid on a smooth floor": {"launch_height": 0.0, "launch_speed": 0.0, "friction": 0.0},
    "a drop": {"launch_speed": 0.0, "spin": 0.0},
    "a roll": {"launch_height": 0.0, "launch_angle": 0.0, "spin": 40.0},
    "a throw downwards": {"launch_angle": -90.0},
    "no restitution": {"restitution": 0.0},
    "no restitution, laid down": {"restitution": 0.0, "launch_height": 0.0, "launch_angle": 0.0},
    "full restitution": {"restitution": 1.0},
    "full restitution, laid down": {"restitution": 1.0, "launch_height": 0.0, "launch_angle": 0.0},
    "no friction": {"friction": 0.0},
    "no friction, no spin": {"friction": 0.0, "spin": 0.0},
    "long at rest": {"restitution": 0.1, "friction": 5.0},
    "tiny bounces": {"restitution": 0.99, "launch_height": 1e-6, "launch_speed": 0.0},
    "tiny elastic bounces": {"restitution": 1.0, "launch_height": 1e-6, "launch_speed": 0.0},
    "one huge step": {"time_step": 10.0},
    "on its target": {"target": 0.0, "launch_speed": 0.0, "spin": 0.0},
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_no_derivative_is_nan_in_any_final_state(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = bouncing_ball()
        run = last_diagnostics(simulation, 300)

        def total(params):  # one NaN anywhere makes this NaN
            return sum(value for name, value in run(params, KEY).items() if name != "bounces")

        def outcome(params):
            ones = jax.tree.map(jnp.ones_like, params)
            return *jax.value_and_grad(total)(params), jax.jvp(total, (params,), (ones,))[1]

        compiled = jax.jit(outcome)
        for corner, changes in CORNERS.items():
            value, reverse, forward = jax.tree.map(float, compiled(simulation.with_params(**changes).params))
            assert np.isfinite(value) and np.isfinite(forward), corner
            for parameter, derivative in reverse.items():
                assert np.isfinite(derivative), (corner, parameter)


def test_scatter_draws_throws_with_the_given_standard_deviation(x64):
    simulation = bouncing_ball().with_params(launch_scatter=0.1)
    keys = jax.random.split(jax.random.key(2), 4000)
    states = jax.vmap(simulation.init, in_axes=(None, 0))(simulation.params, keys)
    speed = norm(states.ball.velocity)
    angle = jnp.rad2deg(jnp.arctan2(states.ball.velocity.z, states.ball.velocity.x))
    for sample, mean in ((speed, 4.0), (angle, 60.0)):
        # Four standard errors: 0.1 / sqrt(4000) of the mean, and 0.1 / sqrt(8000) of the standard deviation.
        assert abs(jnp.mean(sample) / mean - 1) < 4 * 0.1 / 4000**0.5
        assert abs(jnp.std(sample) / mean - 0.1) < 4 * 0.1 / 8000**0.5


# A box at a random angle between a ball and a capsule, near enough that some of their starts overlap.
NEAR = {f"config.bodies.{kind}.grid.counts": [1, 1, 1] for kind in range(3)} | {"spacing": 0.23, "tilt": 3.0}


def test_a_scenario_is_refused_for_its_own_seed():
    overlaps = [refused(build, load("falling_pile", NEAR | {"seed": seed})) for seed in SEEDS]
    assert 0 < sum(overlaps) < len(SEEDS)
    # The scenario's own seed is one that is fine, and so are those before the first that overlaps.
    fine = overlaps.index(False)
    wrong = overlaps.index(True, fine)
    with pytest.raises(UserError, match=rf"member {wrong - fine} \(seed = {wrong}\): bodies 0"):
        simkit.sweep("falling_pile", {}, seeds=len(SEEDS) - fine, **NEAR | {"seed": fine}, steps=10, every=10)


def test_an_orientation_may_be_rounded():
    assert simkit.run(turned((0.7071, 0.7071, 0, 0)), steps=2).attrs["status"] == "ok"


@every("make", [swung, bouncing_ball])
def test_the_time_is_the_sum_of_400000_steps(make):
    found = run(make(), 400_000)["time"]
    assert found.dtype == jnp.float32
    # Two roundings of float32.
    np.testing.assert_allclose(found, 400_000 * float(STEP), rtol=1.2e-7)
