"""Joints and linkages that cannot exist are refused in one line."""

import jax
import jax.numpy as jnp
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, gather
from simkit.rigid.joints.joint import ball, distance, hinge, joint, weld
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from simkit.rigid.systems.four_bar_linkage import four_bar_linkage
from tests.rigid.joints.scenes import at_rest, key, params_of
from tests.tables import every


def scene(joints, **changes):
    """Return two unit boxes, one above the other, with joints."""
    return simulate(
        Scene(
            params=params_of(gap=1.0, gravity=9.81, time_step=1e-3) | params_of(**changes),
            bodies=lambda params: gather([box(1.0, (1.0, 1.0, 1.0))] * 2),
            start=lambda params, bodies, key: at_rest(bodies, [(0, 0, 0), (0, 0, 1)]),
            dynamics=Jointed(),
            joints=lambda params: joints,
            loads=(gravity(),),
        )
    )


UP, DOWN = (0.0, 0.0, 0.5), (0.0, 0.0, -0.5)


@every(
    ("make", "message"),
    [
        (lambda: joint("hing", 0, 1), "joint of kind 'hing' is unknown; did you mean 'hinge'"),
        (lambda: ball(1, 1, anchor=UP, base=DOWN), "connects a body with itself"),
        (lambda: hinge(0, 1, anchor=UP, base=DOWN, axis=(0, 0, 0)), "has no direction"),
        (lambda: ball(0, 2, anchor=UP, base=DOWN), "there is no body 2"),
        (lambda: ball(0, 1, anchor=UP, base=UP), "is open by 1 m at the start"),
        (lambda: distance(0, 1, anchor=UP, base=DOWN, length=0.0), "length = 0 m is not positive"),
        (lambda: weld(0, 1, anchor=UP, base=DOWN, rest=turned()), "is tilted by"),
    ],
)
def test_impossible_joints_are_refused_in_one_line(x64, make, message):
    with pytest.raises(UserError) as refused:
        simulation = scene((make(),))
        simulation.check(simulation.params, jax.random.key(0))
    assert message in str(refused.value) and "\n" not in str(refused.value)


def turned():
    return exponential(Vector(jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray(0.0)))


def test_bars_that_just_close_are_not_refused(x64):
    simulation = four_bar_linkage()
    params = {name: value.astype(float) for name, value in simulation.params.items()}
    simulation.check({**params, "coupler_length": jnp.asarray(1.029)}, key())
