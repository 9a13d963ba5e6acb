"""Derivatives of articulated models, and errors of one line for engines without them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.precision import precision
from simkit.errors import UserError
from tests.rigid.models.models import PENDULUM, simulation
from tests.tables import every

KEY = jax.random.key(0)


def objective(text, engine, quantity, steps, **config):
    return Objective(simulation(text, engine, **config), quantity, steps)


def trace_gradient(found, mode="reverse"):
    jax.eval_shape(gradient.with_derivative(found, ["gravity"], mode), found.simulation.params, KEY)


@every("mode", ["reverse", "forward"])
def test_mujoco_in_c_refuses_derivatives(x64, mode):
    with pytest.raises(UserError, match="is compiled C and has no derivative; choose engine = 'mjx'"):
        trace_gradient(objective(PENDULUM, "mujoco", "momentum", 2), mode)


def test_states_of_mujoco_keep_double_precision_in_any_thread():
    """Callbacks of JAX may run in a thread without float64; a run of many members would show the rounding."""
    from simkit.core.ensemble import ensemble

    with precision("float64"):
        found = simulation(PENDULUM, "mujoco", substeps=2)
        many = ensemble(found, ["initial_position"])
        params = found.params | {"initial_position": jnp.linspace(0.1, 1.0, 64)[:, None]}
        state = jax.jit(many.init)(params, jax.random.split(KEY, 64))
        after = jax.jit(lambda state: many.step(state, params))(state)
    assert after.memory.position.dtype == np.float64
    position = np.asarray(after.memory.position)
    assert (position.astype(np.float32) != position).mean() > 0.9
