"""A cylinder rolls down a slope as the closed form says."""

import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import rigid

pytestmark = pytest.mark.usefixtures("x64")


def test_a_cylinder_rolls_down_a_slope_at_two_thirds_of_free_sliding() -> None:
    slope, time = 0.3, 1.0

    def start(params, bodies, key):
        return rigid.motion_of(bodies, (0.0, 0.0, 0.1), orientation=(np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0))

    def pull(motion, bodies, time, params):
        zero = jnp.zeros_like(bodies.mass)
        return bodies.mass * rigid.Vector(params["along"] + zero, zero, -params["down"] + zero)

    scene = rigid.Scene(
        params={"along": 9.81 * np.sin(slope), "down": 9.81 * np.cos(slope), "time_step": 0.001},
        bodies=rigid.cylinder(2.0, 0.1, 0.3, friction=0.4),
        start=start,
        dynamics=rigid.Impulses(sweeps=8),
        planes=rigid.floor(),
        loads=(
            rigid.Load(
                lambda motion, bodies, time, params: rigid.Wrench(
                    force=pull(motion, bodies, time, params), torque=rigid.zeros(bodies.mass)
                )
            ),
        ),
    )
    run = simkit.run(rigid.simulate(scene), steps=int(time / 0.001), every=1000)
    speed = float(run["velocity"][-1, 0, 0])
    assert speed == pytest.approx(2 / 3 * 9.81 * np.sin(slope) * time, rel=1e-7)
