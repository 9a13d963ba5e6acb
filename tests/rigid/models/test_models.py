"""Models of MuJoCo and brax: reading, refusals, untrusted text, derivatives."""

import re
import tracemalloc

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
import trimesh

from simkit.core import gradient
from simkit.core.objective import Objective
from simkit.core.precision import precision
from simkit.errors import UserError
from simkit.export import program
from simkit.rigid import mjcf
from simkit.rigid.models.description import names
from simkit.rigid.models.mjcf import from_text, most_pairs
from simkit.rigid.models.model_text import checked
from simkit.rigid.models.source import compiled, read_spec
from simkit.scenario.catalog import read_scenario
from tests.rigid.models.models import ENGINES, FALLING, PENDULUM, simulation
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
    "unknown in brax": ("brax:antt.xml", "model of brax = 'antt.xml' is unknown; did you mean 'ant.xml'?"),
    "outside brax": ("brax:../ant.py", "model of brax = '../ant.py' is unknown"),
}


@every(("text", "phrase"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_model_is_refused_in_one_line(text, phrase):
    assert phrase in refusal(mjcf, text)


def test_a_scenario_reads_no_model_by_its_path(tmp_path):
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    assert mjcf(tmp_path / "pendulum.xml").params["mass"].keys() == {"rod"}
    assert 'write model = { file = "NAME.xml" }' in refusal(from_text, model=str(tmp_path / "pendulum.xml"))


UNSUPPORTED = {
    "ball joint": (model(joint='<joint type="ball"/>'), ENGINES[:3], "has no ball joints (three hinges"),
    "density": (model(option='<option density="1.2"/>'), ENGINES[:3], "has no density or viscosity of the medium"),
    "equality": (
        model(after='<equality><connect body1="a" anchor="0 0 0"/></equality>'),
        ENGINES[:3],
        "has no equality constraints; choose engine = 'simkit', 'mjx' or 'mujoco'",
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
    assert "engine = 'brax' is unknown; " in refusal(mjcf, PENDULUM, engine="brax")
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


BALL = "<body><freejoint/><geom size='.1'/></body>"


def inside(text, before="", after=""):
    return f"<mujoco>{before}<worldbody>{BALL}{text}</worldbody>{after}</mujoco>"


def refusal_of_text(text):
    with pytest.raises(UserError) as caught:
        from_text(model=text, engine="mujoco")
    message = str(caught.value)
    assert message.isprintable() and len(message) < 400
    return message


def test_a_comment_inside_a_doctype_cannot_hide_a_file(tmp_path):
    """MuJoCo's parser ends a DOCTYPE at its first ``>``, and reads text that other parsers take for a comment."""
    (tmp_path / "secret.xml").write_text(f"<mujoco>{BALL}</mujoco>")
    hidden = f'<mujoco><worldbody><include file="{tmp_path / "secret.xml"}"/></worldbody></mujoco>'
    text = f"<!DOCTYPE mujoco [<!-- >{hidden} --> ]>{inside('')}"
    assert "the model has a DOCTYPE, whose entities could hide what it names; remove it" in refusal_of_text(text)


def test_a_number_that_is_not_one_is_refused_without_a_log_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert "XML contains a 'NaN'" in refusal_of_text(inside('<geom size=".1" pos="nan 0 0"/>'))
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")


def test_mujoco_reads_only_what_was_checked():
    text = f"<?xml version='1.0'?><!-- <include file='a'/> -->{inside('<!-- > -->')}"
    assert checked(text) == inside("").replace("'.1'/>", '".1" />').replace("<freejoint/>", "<freejoint />")


def test_errors_name_the_line_of_the_given_text():
    """Behind comments and tags of several lines, which are not written as they were."""
    before = "<?xml version='1.0'?>\n<!-- a\n-->"
    text = before + inside("<!-- b\n -->\n<geom\n type='plane'\nsize='1 1 1'/><geom\ntype='ellipsoid' size='1 1'/>")
    assert "geom 1 (line 7)" in refusal(from_text, model=text.replace("size='1 1'", "size='1 1 1'"))
    assert "line 7" in refusal_of_text(text)


def schema():
    """Return the attributes of each element of MuJoCo's schema, (element, attribute)."""
    element, found = "", []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        first = re.match(r" *([\w()]+) \([!?*R]\)", line)
        element = first[1] if first else element
        found += [(element, word) for word in line[27:].split()]
    return found


def test_every_attribute_of_mujoco_that_names_a_file_is_refused():
    files = {(element, name) for element, name in schema() if "file" in name}
    assert {("mesh", "file"), ("texture", "fileright"), ("flexcomp", "file"), ("model", "file")} <= files
    for element, name in files:
        text = f'<mujoco><asset><{element} {name}="/etc/passwd"/></asset></mujoco>'
        assert f"the model's <{element}> names the file '/etc/passwd'" in refusal_of_text(text)
    urdf = '<robot name="a"><link name="b"><visual><mesh filename="c.stl"/></visual></link></robot>'
    assert "the model's <mesh> names the file 'c.stl'" in refusal_of_text(urdf)


@every(
    ("text", "phrase"),
    [
        ("<mujoco><?xml-stylesheet href='a'?></mujoco>", "the processing instruction 'xml-stylesheet'"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]><mujoco>&b;</mujoco>', "has a DOCTYPE"),
        ("<mujoco>&lol;</mujoco>", "the model is not XML: undefined entity"),
        ("<mujoco>\ud800</mujoco>", "it has an invalid character"),
        ('<mujoco xmlns:x="a"><x:include x:file="b"/></mujoco>', "<include> names the file 'b'"),
        (inside("", "<extension><plugin plugin='mujoco.pid'/></extension>"), "<extension> loads a plug-in"),
        (inside('<attach model="a" body="b" prefix="c"/>'), "<attach> includes another model"),
    ],
)
def test_declarations_files_and_plugins_are_refused(text, phrase):
    assert phrase in refusal_of_text(text)


HUNDREDS = '<replicate count="100">'
TOO_MUCH = {
    "replicate": (inside('<replicate count="100000"><site/></replicate>'), "<replicate> has count = '100000'"),
    "nested replicates": (inside(HUNDREDS * 3 + BALL + "</replicate>" * 3), "requests 4.0"),
    "bodies": (inside(f'<replicate count="2500">{BALL}</replicate>'), "bodies; a text is allowed at most 2000"),
    "flexible": (inside('<flexcomp name="f" count="100 100 10" spacing="1 1 1"/>'), "requests 100007 elements"),
    "composite": (inside('<composite type="cable" count="100 100 10"/>'), "requests 100007 elements"),
    "texture": (inside("", "<asset><texture builtin='flat' width='9999' height='1'/></asset>"), "width = '9999'"),
    "textures": (
        inside("", "<asset>" + "<texture builtin='flat' width='4096' height='4096'/>" * 9 + "</asset>"),
        "pixels of textures",
    ),
    "height field": (
        inside("", "<asset>" + "<hfield nrow='4096' ncol='4096' size='1 1 1 1'/>" * 2 + "</asset>"),
        "requests 3.35544e+07 cells of height fields",
    ),
    "memory": (inside("", "<size memory='100G'/>"), "<size> has memory = '100G'"),
    "not a number": (inside("", "<size nuserdata='1e400'/>"), "<size> has nuserdata = '1e400'"),
    "user data": (inside("", "<size nuser_geom='1000000'/>"), "<size> has nuser_geom = '1000000'"),
    "iterations": (inside("", "<option iterations='2000000000'/>"), "<option> has iterations = '2000000000'"),
    "sensor": (inside("", "", "<sensor><user dim='1000000'/></sensor>"), "<user> has dim = '1000000'"),
    "muscles": (inside("", "<compiler><lengthrange inttotal='1e9'/></compiler>"), "inttotal = '1e9', which is not a"),
    "short steps": (inside("", "<compiler><lengthrange timestep='0'/></compiler>"), "which is below 0.001"),
    "depth": ("<mujoco>" + "<a>" * 100_000, "nested over 200 deep"),
    "elements": ("<mujoco>" + "<a/>" * 1_000_000 + "</mujoco>", "has over 20000 elements"),
    "size": ("<mujoco>" + " " * 2**23 + "</mujoco>", "the model's text is over 8 MiB"),
}


@every(("text", "phrase"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_text_that_requests_too_much_is_refused_before_expansion(text, phrase):
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=re.escape(phrase)):
            checked(text)  # before MuJoCo reads it
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


def test_engines_on_jax_refuse_more_contacts_than_memory_holds():
    text = inside(f'<replicate count="400" offset="1 0 0">{BALL}</replicate><geom type="plane" size="1 1 1"/>')
    # 401 balls with each other and with the floor.
    assert most_pairs(compiled(read_spec(text))) == 401 * 400 // 2 + 401
    for engine in ("mjx", "brax-spring"):
        with pytest.raises(UserError, match=f"{engine} would allocate contacts for 80601 pairs of shapes"):
            from_text(model=text, engine=engine)


KEY = jax.random.key(0)


def objective(text, engine, quantity, steps, **config):
    return Objective(simulation(text, engine, **config), quantity, steps)


def trace_gradient(found, mode="reverse"):
    jax.eval_shape(gradient.with_derivative(found, ["gravity"], mode), found.simulation.params, KEY)


@every("mode", ["reverse", "forward"])
def test_mujoco_in_c_refuses_derivatives(x64, mode):
    with pytest.raises(UserError, match="is compiled C and has no derivative; choose engine = 'simkit'"):
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


def test_names_in_other_letters_are_written_in_latin_ones():
    text = FALLING.replace('"ball"', '"\N{GREEK SMALL LETTER LAMDA}1\u00e9"')
    assert names(compiled(read_spec(text)), "body")[1] == "lambda1e"


ROD = """<link name="{0}_rod"><inertial><origin xyz="0 0 -0.3"/><mass value="2"/>
<inertia ixx="0.06" iyy="0.06" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{0}" type="continuous"><parent link="base"/><child link="{0}_rod"/><axis xyz="0 1 0"/></joint>"""
# Motor, its control, and its torque at an angle of 0.5 rad.
MOTORS = {
    "torque": ({"gain": 3.0}, 0.4, 3.0 * 0.4),
    "position": ({"drive": "position", "gain": 20.0, "damping": 5.0}, 0.7, 20.0 * 0.2),
    "velocity": ({"drive": "velocity", "gain": 4.0}, 0.5, 4.0 * 0.5),
    "limited": ({"drive": "position", "gain": 20.0, "limit": 2.5}, 0.7, 2.5),
}
ROBOT = f'<robot name="rods"><link name="base"/>{"".join(map(ROD.format, MOTORS))}</robot>'


def test_motors_drive_a_robot_in_urdf_by_the_names_of_its_joints():
    """Angular acceleration from rest at q = 0.5 rad: (torque - m g l sin q) / (I + m l^2)."""
    with precision("float64"):
        robot = mjcf(ROBOT, engine="simkit", motors={name: motor for name, (motor, _, _) in MOTORS.items()})
        start, controls = [0.5] * len(MOTORS), [control for _, control, _ in MOTORS.values()]
        params = robot.with_params(initial_position=start, control=controls, time_step=1e-7).params
        state = jax.jit(robot.step)(robot.init(params, jax.random.key(0)), params)
        torque = np.array([torque for _, _, torque in MOTORS.values()])
        wanted = (torque - 2 * 9.81 * 0.3 * np.sin(0.5)) / (0.06 + 2 * 0.3**2)
        np.testing.assert_allclose(state.memory.velocity / 1e-7, wanted, rtol=1e-5)
    assert "motors = 'limted' is no joint; did you mean 'limited'?" in refusal(mjcf, ROBOT, motors={"limted": {}})
    wrong = refusal(mjcf, ROBOT, motors={"limited": {"damping": 1.0}})
    assert "motors.limited" in wrong and "drive" in wrong


SEEN = """<robot name="seen"><link name="base"><visual><geometry><mesh filename="meshes/base.stl"/></geometry></visual>
</link><link name="rod"><visual><geometry><sphere radius="0.3"/></geometry></visual>
<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="tip"><visual><geometry><mesh filename="tip.dae"/></geometry></visual>
<collision><geometry><sphere radius="0.2"/></geometry></collision>
<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="a" type="continuous"><parent link="base"/><child link="rod"/></joint>
<joint name="b" type="continuous"><parent link="rod"/><child link="tip"/></joint></robot>"""


def test_links_of_urdf_without_shapes_for_contact_are_drawn_as_they_look(tmp_path):
    """A mesh beside the file, a ball, and of the last link the shape that touches; the file of its mesh is missing."""
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((2.0, 1.0, 1.0)).export(tmp_path / "meshes" / "base.stl")
    (tmp_path / "seen.urdf").write_text(SEEN)
    robot = mjcf(tmp_path / "seen.urdf")
    seen = robot.observe(robot.init(robot.params, KEY), robot.params)
    np.testing.assert_allclose(seen["radius"] + np.max(seen["half_lengths"], axis=1), [1.0, 0.3, 0.2], rtol=1e-6)
    np.testing.assert_allclose(list(robot.params["mass"].values()), 2)
