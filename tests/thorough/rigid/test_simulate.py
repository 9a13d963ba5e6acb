"""Scenes as simulations: user-defined loads, ensembles with members last, blocks of members, and bad bodies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.formulation import in_blocks
from simkit.core.rollout import trajectory
from simkit.rigid.algebra.vector import vector
from simkit.rigid.bodies.bodies import box, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from tests.rigid.test_simulate import KEY, two_bodies
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")
STEPS = 20


def test_a_user_defined_load_can_be_differentiated():
    simulation = two_bodies()

    def distance(params):
        return trajectory(simulation, STEPS, STEPS)(params, KEY)[2]["distance"][-1]

    def tangent(name):
        zeros = {other: jnp.zeros_like(value) for other, value in simulation.params.items()}
        return {**zeros, name: jnp.ones_like(simulation.params[name])}

    value, push = jax.linearize(jax.jit(distance), simulation.params)
    step = 1e-5
    for name in ("stiffness", "spin", "wind"):
        above, below = (
            distance({**simulation.params, name: simulation.params[name] + sign * step}) for sign in (1, -1)
        )
        # step^2 of third derivatives of order 1, and roundings of 1e-15 over the step.
        np.testing.assert_allclose(push(tangent(name)), (above - below) / (2 * step), atol=1e-9)
    assert value > 0


def test_falling_bodies_conserve_energy_and_gain_momentum_by_their_weight():
    scene = two_bodies()
    params = {**scene.params, "stiffness": jnp.array(0.0), "wind": jnp.zeros(2)}
    simulation = simulate(
        Scene(
            params=params,
            bodies=lambda params: gather([sphere(params["mass"], 0.1), box(2.0, (0.1, 0.2, 0.3))]),
            start=lambda params, bodies, key: motion_of(bodies, vector(jnp.array([[0.0, 0.0, 1.0], [0.5, 0.0, 2.0]]))),
            dynamics=Free("velocity_verlet"),
            loads=(gravity(),),
        )
    )
    _, _, seen = jax.jit(trajectory(simulation, 100, 10))(params, KEY)
    # A hundred roundings of an energy of 50 J; m g t with 3 kg.
    np.testing.assert_allclose(seen["energy"], seen["energy"][0], rtol=100 * 1.1e-16 * 2)
    np.testing.assert_allclose(seen["momentum"], 3 * 9.81 * seen["time"], rtol=1e-13)
    # Bodies pass through each other unseen, which is not the same as no contact.
    assert "contacts" not in seen and "penetration" not in seen


@every("count", [1, 7, 8, 9, 16, 17, 24])
def test_blocks_of_members_equal_one_batch(count):
    seen = []

    def double(tree, other):
        seen.append(other.shape[0])
        return {"sum": tree["a"] + other, "a": 2 * tree["a"]}

    a, b = jnp.arange(3.0 * count).reshape(count, 3), jnp.ones((count, 3))
    result = in_blocks(double, {"a": a}, b, block=8)
    np.testing.assert_array_equal(result["sum"], a + 1)
    np.testing.assert_array_equal(result["a"], 2 * a)
    # The program holds one block, and the rest that does not fill one.
    assert set(seen) == ({count} if count <= 8 else {8} | ({count % 8} - {0}))
