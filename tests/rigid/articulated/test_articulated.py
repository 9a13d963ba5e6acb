"""Equations of motion in joint coordinates, beside those of MuJoCo."""

import pytest

import simkit
from simkit.errors import UserError
from simkit.rigid import mjcf

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
