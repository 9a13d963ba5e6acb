"""Equations of motion in joint coordinates, beside those of MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from simkit.rigid import articulated
from tests.rigid.articulated.models import model, random_state, relative, trajectory_error


def test_kinematics_masses_and_forces_are_those_of_mujoco():
    """1e-12 is 5,000 units in the last place; sums of some 20 terms stay below a tenth of that."""
    with jax.enable_x64(True):
        system = model()
        tree, inertia = articulated.kinematic_tree(system), articulated.inertia_of(system)
        position, velocity = random_state(system)
        data = mujoco.MjData(system)
        data.qpos[:], data.qvel[:] = position, velocity
        mujoco.mj_forward(system, data)
        matrix, moved, turned, point = (
            np.zeros((system.nv,) * 2),
            *np.zeros((2, 3, system.nv)),
            np.array([0.3, -0.2, 1.1]),
        )
        mujoco.mj_fullM(system, data, matrix)
        hand = system.body("hand").id
        mujoco.mj_jac(system, data, moved, turned, point, hand)
        tau, gravity = np.linspace(-1, 1, system.nv), jnp.asarray(system.opt.gravity)

        def everything(position, velocity):
            kinematics = articulated.forward_kinematics(tree, position)
            return {
                "places": jnp.stack([kinematics.position.x, kinematics.position.y, kinematics.position.z], axis=-1),
                "mass": articulated.mass_matrix(tree, inertia, position),
                "bias": articulated.bias_forces(tree, inertia, position, velocity, gravity),
                "acceleration": articulated.acceleration(tree, inertia, position, velocity, tau, gravity),
                "jacobian": jnp.stack(articulated.jacobian(tree, position, hand - 1, jnp.asarray(point))),
            }

        found = jax.jit(everything)(position, velocity)
        wanted = {
            "places": data.xpos[1:],
            "mass": matrix,
            "bias": data.qfrc_bias,
            "acceleration": np.linalg.solve(matrix, tau - data.qfrc_bias),
            "jacobian": np.stack([moved, turned]),
        }
        assert {name: relative(found[name], wanted[name]) < 1e-12 for name in wanted} == dict.fromkeys(wanted, True)


def test_a_trajectory_is_that_of_mujoco():
    assert trajectory_error("implicitfast") < 1e-9
