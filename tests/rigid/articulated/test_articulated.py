"""Equations of motion in joint coordinates, beside those of MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import simkit
from simkit.errors import UserError
from simkit.rigid import articulated, mjcf
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


REFUSED = {
    "a shape": (
        '<geom type="ellipsoid" size="1 1 1"/>',
        "",
        "contact of geom 0 (line 2) and geom 'ball' (line 3) (planes with",
    ),
    "uneven friction": (
        '<geom name="wall" size="1"/>',
        "",
        "friction of a pair that differs between two directions: pair 0 (line 4);",
        "",
        '</actuator><contact>\n<pair geom1="ball" geom2="wall" friction="1 0.5 0 0 0"/></contact><actuator>',
    ),
    "a group": ("", "", "disabled groups of actuators", 'actuatorgroupdisable="1"'),
    "a delay": ("", "", "plug-ins and delays", "", '<motor joint="turn" delay="0.02" nsample="6"/>'),
    "a muscle": (
        "",
        "",
        "muscles and other",
        "",
        '<general joint="turn" biastype="muscle" lengthrange="-1 1" biasprm="0.75 1.05 5 200 0.5 1.6 1.5 1.3 1.2"/>',
    ),
}


def test_what_the_engine_lacks_is_named():
    missed = []
    for name, (world, joint, wanted, *more) in REFUSED.items():
        body = f'<body><joint name="turn" type="hinge" {joint}/><geom name="ball" size="0.1"/></body>'
        with pytest.raises(UserError) as caught:
            option, actuator = (*more, "", "")[:2]
            parts = f"<option {option}/><worldbody>\n{world}\n{body}</worldbody><actuator>{actuator}</actuator>"
            mjcf(f"<mujoco>{parts}</mujoco>")
        missed += [name] if wanted not in str(caught.value) or "engine = 'mjx'" not in str(caught.value) else []
    assert not missed


def test_a_method_that_constraints_replace_is_told():
    body = '<body><joint limited="true" range="-1 1"/><geom size="0.1"/></body>'
    with pytest.warns(UserWarning, match="the integrator RK4 has no effect beside contacts, limits"):
        mjcf(f'<mujoco><option integrator="RK4"/><worldbody>{body}</worldbody></mujoco>')


def test_a_parameter_that_another_engine_lacks_is_told(tmp_path):
    (tmp_path / "rod.toml").write_text(
        """
        name = "rod"
        simulation = "rigid.mjcf"
        config.engine = "simkit"
        config.model = "<mujoco><worldbody><body><joint name='turn'/><geom size='0.1'/></body></worldbody></mujoco>"
        params.damping.turn = { default = 0.5, bounds = [0.0, 1.0] }
        run = { steps = 10, every = 1, precision = "float32" }
        render = { view = "bodies", quantity = "radius" }
        """
    )
    with pytest.warns(UserWarning, match=r"damping.turn of rod.toml has no effect with this configuration"):
        simkit.run(tmp_path / "rod.toml", engine="mujoco")
