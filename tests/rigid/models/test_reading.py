"""Models are read from files, texts and the brax package; mistakes are refused in one line."""

import jax
import pytest

from simkit.errors import UserError
from simkit.export import program
from simkit.rigid import mjcf
from simkit.rigid.models.mjcf import from_text
from simkit.scenario.catalog import read_scenario
from tests.rigid.models.models import ENGINES, FALLING, PENDULUM
from tests.tables import every


def model(inside="", joint='<joint type="hinge"/>', option="", after=""):
    geom = '<geom type="box" size="0.1 0.1 0.3" mass="1" contype="0" conaffinity="0"/>'
    return f"<mujoco>{option}<worldbody><body name='a'>{joint}{geom}{inside}</body></worldbody>{after}</mujoco>"


def test_a_body_is_fused_with_bodies_welded_to_it():
    foot = "<body name='foot' pos='0 0 -1'><geom type='sphere' size='0.1' mass='1'/></body>"
    shin = "<body name='shin' pos='0 0 1'><joint type='hinge'/><geom type='sphere' size='0.1' mass='1'/></body>"
    body = from_text(model=model(inside=foot + shin)).coordinates["body_of_shape"]
    assert body[0] == body[1] != body[2]


def test_parts_of_a_model_that_only_report_do_not_exclude_an_engine():
    """Flags that print energies, as in most models of dm_control, and sensors that MJX does not compute."""
    option = '<option><flag energy="enable" fwdinv="enable"/></option>'
    text = model(option=option, after='<sensor><contact body1="a"/><user dim="3"/></sensor>')
    for engine in ("mujoco", "mjx", "brax-generalized"):
        assert mjcf(text, engine=engine).params["mass"].shape == (1,)


def refusal(function, *arguments, **keywords):
    with pytest.raises(UserError) as caught:
        function(*arguments, **keywords)
    message = str(caught.value)
    assert message.isprintable() and len(message) < 400
    return message


MALFORMED = {
    "not XML": ("<mujoco", "the model is not XML: "),
    "another language": ("<svg/>", "Unrecognized XML model type: 'svg'"),
    "unknown element": ("<mujoco><foo/></mujoco>", "unrecognized element Element 'foo', line 1"),
    "unknown joint": (model(joint='<joint type="hinj"/>'), "invalid keyword: 'hinj'"),
    "no mass": ("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>", "mass and inertia of moving"),
    "nothing moves": (model(joint=""), "the model has no joint, so nothing moves; add a <joint>"),
    "another file": ('<mujoco><include file="/etc/passwd"/></mujoco>', "<include> names the file '/etc/passwd', which"),
    "a missing path": ("no/such/model.xml", "model = 'no/such/model.xml' does not exist; give a file of MJCF or URDF"),
    "a folder": ("/tmp", "model = '/tmp' is a directory"),
    "a null character": ("a\x00b", "model = 'a\\x00b' does not exist"),
    "unknown in brax": ("brax:antt.xml", "brax has no model 'antt.xml'; did you mean 'ant.xml'?"),
    "outside brax": ("brax:../ant.py", "brax has no model '../ant.py'"),
}


@every(("text", "phrase"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_model_is_refused_in_one_line(text, phrase):
    assert phrase in refusal(mjcf, text)


def test_a_scenario_reads_no_model_by_its_path(tmp_path):
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    assert mjcf(tmp_path / "pendulum.xml").params["mass"].shape == (1,)
    assert 'write model = { file = "NAME.xml" }' in refusal(from_text, model=str(tmp_path / "pendulum.xml"))


UNSUPPORTED = {
    "ball joint": (model(joint='<joint type="ball"/>'), ENGINES[:3], "has no ball joints (three hinges"),
    "density": (model(option='<option density="1.2"/>'), ENGINES[:3], "has no density or viscosity of the medium"),
    "equality": (
        model(after='<equality><connect body1="a" anchor="0 0 0"/></equality>'),
        ENGINES[:3],
        "has no equality constraints; choose engine = 'mjx' or 'mujoco'",
    ),
    "spring": (
        model(joint='<joint type="hinge" stiffness="5"/>'),
        ENGINES[:1] + ENGINES[2:3],
        "has no springs in joints",
    ),
    "integrator": (model(option='<option integrator="RK4"/>'), ENGINES[:3], "Only euler integration is supported"),
    "rest of a spring": (model(joint='<joint name="j" stiffness="5" springref="30"/>'), ENGINES[1:2], "(springref)"),
    "margin of a limit": (
        model(joint='<joint name="j" limited="true" range="-10 30" margin="0.3"/>'),
        ENGINES[:3],
        "has no margin of joint limits",
    ),
    "bounded joint": (
        model(joint='<joint name="j" actuatorfrcrange="-1 1"/>', after='<actuator><motor joint="j"/></actuator>'),
        ENGINES[:3],
        "has no bounds of forces on joints (actuatorfrcrange)",
    ),
    "constant force": (
        model(
            joint='<joint name="j"/>',
            after='<actuator><general joint="j" biastype="affine" biasprm="1 -5 0"/></actuator>',
        ),
        ENGINES[:3],
        "has no constant force of actuators",
    ),
    "group that is off": (
        model(
            joint='<joint name="j"/>',
            option='<option actuatorgroupdisable="1"/>',
            after='<actuator><motor joint="j" group="1"/></actuator>',
        ),
        ENGINES[:4],
        "actuatorgroupdisable",
    ),
    "noslip": (model(option='<option noslip_iterations="3"/>'), ENGINES[:4], "noslip_iterations"),
    "override": (model(option='<option><flag override="enable"/></option>'), ENGINES[:4], "cannot follow this model"),
    **{
        f"flag {flag}": (
            model(option=f'<option><flag {flag}="disable"/></option>'),
            ENGINES[:3],
            f'has no <flag {flag}="disable"/>',
        )
        for flag in ("constraint", "limit", "contact", "spring", "damper", "gravity", "clampctrl", "actuation")
    },
    "unlike pair": (
        FALLING.replace('type="plane" size="5 5 0.1"', 'type="box" size="5 5 .1"').replace(
            'type="sphere" size="0.1"', 'type="ellipsoid" size=".1 .1 .2"'
        ),
        ENGINES[:4],
        "collisions not implemented",
    ),
    "solver": (model(option='<option solver="PGS"/>'), ENGINES[:4], " cannot follow this model: "),
}


@every(("text", "engines", "phrase"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_features_are_refused_in_one_line(text, engines, phrase):
    for engine in engines:
        assert phrase in refusal(mjcf, text, engine=engine)
    mjcf(text, engine="mujoco")


def test_a_model_with_further_state_is_refused():
    delayed = '<actuator><motor joint="j" nsample="5" delay="0.01"/></actuator>'
    message = refusal(mjcf, model(joint='<joint name="j"/>', after=delayed), engine="mujoco")
    assert "does not carry the memory of delays (nsample)" in message


def test_arguments_out_of_range_are_refused_in_one_line():
    assert "unknown engine 'brax'; " in refusal(mjcf, PENDULUM, engine="brax")
    assert "substeps = 0 is not an integer of at least 1" in refusal(mjcf, PENDULUM, substeps=0)
    assert "solver_iterations = -1 is not an integer of at least 0" in refusal(mjcf, PENDULUM, solver_iterations=-1)


@every(
    ("values", "phrase"),
    [
        ({"time_step": 0.0}, "time_step = 0 is not positive"),
        ({"mass": [-1.0]}, "mass = -1 is not positive"),
        ({"friction_scale": -0.5}, "friction_scale = -0.5 is negative"),
    ],
)
def test_parameters_out_of_range_are_refused_in_one_line(values, phrase):
    found = mjcf(PENDULUM, engine="mujoco").with_params(**values)
    assert phrase in refusal(found.check_values, found.params, jax.random.key(0))


def test_a_free_body_without_an_orientation_is_refused_in_one_line():
    found = mjcf(model(joint="<freejoint/>"), engine="mujoco").with_params(initial_position=[0] * 7)
    assert "initial_position[3:7] is a quaternion of length 0" in refusal(
        found.check_values, found.params, jax.random.key(0)
    )


SCENARIO = """
name = "swing"
title = "A pendulum"
summary = "A pendulum swings."
simulation = "rigid.mjcf"
[config]
model = { file = "pendulum.xml" }
engine = "mujoco"
[params.initial_position]
default = [0.5]
bounds = [-3.0, 3.0]
unit = "rad"
doc = "angle at the start"
[run]
steps = 10
every = 5
[render]
view = "bodies"
quantity = "radius"
label = "radius"
unit = "m"
frames_per_second = 20
"""


def test_a_model_in_mujoco_is_not_exported(tmp_path):
    (tmp_path / "swing.toml").write_text(SCENARIO)
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    message = refusal(program, read_scenario(tmp_path / "swing.toml"), tmp_path / "out")
    assert "swing calls the host and so cannot be exported" in message
    assert not (tmp_path / "out").exists()
