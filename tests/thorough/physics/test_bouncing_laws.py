"""Laws of a thrown ball: free fall, restitution, rest, rolling, energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import bouncing_ball
from tests.physics.test_bouncing_laws import KEY

pytestmark = pytest.mark.usefixtures("x64")


def test_any_number_of_impacts_in_one_step_equals_small_steps():
    draws = np.random.default_rng(0)
    count = 200
    throws = {
        "launch_speed": draws.uniform(0, 10, count),
        "launch_angle": draws.uniform(-90, 90, count),
        "launch_height": draws.uniform(0, 2, count) ** 3,
        "spin": draws.uniform(-300, 300, count),
        "restitution": draws.uniform(0, 1, count),
        "friction": draws.uniform(0, 1, count) ** 2,
    }

    def end(steps):
        simulation = bouncing_ball().with_params(time_step=4.0 / steps)
        axes = {name: 0 if name in throws else None for name in simulation.params}
        params = {**simulation.params, **{name: jnp.asarray(values) for name, values in throws.items()}}
        run = jax.vmap(lambda params: trajectory(simulation, steps, steps)(params, KEY), in_axes=(axes,))
        return jax.jit(run)(params)[1]

    once, often = end(1), end(500)
    for name in ("position", "velocity", "orientation"):
        # Positions of 10 m, turns of 1000 rad: 500 roundings of 1e-13, which an impact amplifies a little.
        np.testing.assert_allclose(once[name][:, -1], often[name][:, -1], atol=1e-10)
