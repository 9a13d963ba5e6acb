"""Forces held constant over steps, with every method: displacement and derivatives."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.estimation import controlled
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import repeat, sphere
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import applied
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")

KEY = jax.random.key(0)
DT, MASS, DECISIONS, HELD = 0.02, 2.0, 5, 3
CONTROLS = np.random.default_rng(0).normal(size=DECISIONS)


def pushed(method):
    """Return a ball that a parameter pushes along x."""

    def push(motion, bodies, time, params):
        nothing = zeros(bodies.mass)
        return Wrench(force=dataclasses.replace(nothing, x=nothing.x + params["push"]), torque=nothing)

    names = {"push": 0.0, "stiffness": 1.0, "dissipation": 0.0, "time_step": DT}
    return simulate(
        Scene(
            params={name: jnp.asarray(value, dtype=float) for name, value in names.items()},
            bodies=lambda params: repeat(sphere(MASS, 0.1), 1),
            start=lambda params, bodies, key: motion_of(bodies, Vector(*jnp.zeros((3, 1)))),
            dynamics=method,
            loads=(applied(push),),
            measures=lambda motion, bodies, time, params: {"x": motion.position.x[0], "speed": motion.velocity.x[0]},
        )
    )


def test_controls_are_the_parameters_of_their_steps():
    simulation = pushed(Free())
    state = simulation.init(simulation.params, KEY)
    end, _ = controlled(simulation)(state, simulation.params, {"push": CONTROLS})
    for control in CONTROLS:
        state = jax.jit(simulation.step)(state, simulation.params | {"push": jnp.asarray(control)})
    np.testing.assert_allclose(end.motion.position.x, state.motion.position.x, rtol=1e-14)


@every(
    "controls, message",
    [
        ({"pusch": [1.0]}, "'pusch' is not a parameter"),
        ({"push": 1.0}, "has shape"),
        ({"push": [[1.0]]}, "has shape"),
        ({"push": [1.0], "stiffness": [1.0, 2.0]}, "give as many for each"),
        ({}, "no values"),
    ],
)
def test_controls_that_do_not_fit_are_refused(controls, message):
    simulation = pushed(Free())
    state = simulation.init(simulation.params, KEY)
    with pytest.raises(UserError, match=message):
        controlled(simulation)(state, simulation.params, {name: jnp.asarray(v) for name, v in controls.items()})
    with pytest.raises(UserError, match="steps = 0"):
        controlled(simulation, 0)
