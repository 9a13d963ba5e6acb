"""Sensors of models as quantities, beside MuJoCo."""

import re

import jax
import mujoco
import numpy as np
import pytest

import simkit
from simkit.errors import UserError
from simkit.rigid import mjcf
from tests.rigid.articulated.models import EVERY_JOINT, random_state

OF_FRAME = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
SENSORS = [
    *(f'<{kind} site="tip"/>' for kind in ("gyro", "velocimeter", "accelerometer", "force", "torque", "magnetometer")),
    *(
        f'<{kind} objtype="{of}" objname="{name}" {base}/>'
        for kind in OF_FRAME
        for of, name in (("body", "hand"), ("xbody", "arm"), ("geom", "shin"), ("site", "tip"))
        for base in ("", 'reftype="body" refname="leg"')
    ),
    *(f'<{kind} objtype="site" objname="tip"/>' for kind in ("framelinacc", "frameangacc")),
    *(
        f'<{kind} body="{body}"/>'
        for kind in ("subtreecom", "subtreelinvel", "subtreeangmom")
        for body in ("arm", "leg")
    ),
    *(
        f'<{kind} joint="{joint}"/>'
        for kind in ("jointpos", "jointvel", "jointactuatorfrc")
        for joint in ("wrist", "hip")
    ),
    *(f'<{kind} joint="shoulder"/>' for kind in ("ballquat", "ballangvel")),
    *(f'<{kind} tendon="both"/>' for kind in ("tendonpos", "tendonvel")),
    *(
        f'<{kind} actuator="{of}"/>'
        for kind in ("actuatorpos", "actuatorvel", "actuatorfrc")
        for of in ("hold", "pull")
    ),
    '<jointvel joint="wrist" cutoff="0.1"/>',
    '<touch site="tip"/>',
    "<clock/>",
]
SITES = {"hand": '<site name="tip" pos="0.02 0.03 0.01" euler="0.4 0.1 -0.7" size="0.1"/>', "shin": ""}


def with_sensors(sensors):
    """Return the model with every joint, with a site and sensors."""
    text = EVERY_JOINT.format(integrator="Euler").replace(
        'fromto="0 0 0 0 0 -0.4"', 'name="shin" fromto="0 0 0 0 0 -0.4"'
    )
    text = text.replace(
        '<geom type="box" size="0.05 0.02 0.08"/>', f'<geom type="box" size="0.05 0.02 0.08"/>{SITES["hand"]}'
    )
    named = [re.sub(r"^<(\w+)", rf'<\1 name="s{n}"', sensor) for n, sensor in enumerate(sensors)]
    return text.replace("</mujoco>", f"<sensor>{''.join(named)}</sensor></mujoco>")


def test_sensors_are_those_of_mujoco_at_random_states():
    """1e-10 of the largest number of each kind; places, velocities, forces and what follows from them."""
    text = with_sensors(SENSORS)
    system = mujoco.MjModel.from_xml_string(text)
    with jax.enable_x64(True):
        simulation = mjcf(text)

        @jax.jit
        def read(position, velocity, control):
            params = {**simulation.params, "initial_position": position, "initial_velocity": velocity}
            state = simulation.init(params, jax.random.key(0))
            params["control"] = control
            return simulation.observe(state, params) | simulation.diagnose(state, params)

        data, control = mujoco.MjData(system), np.array([0.2, 0.4, -0.1])
        for seed in range(3):
            position, velocity = random_state(system, seed)
            data.qpos[:], data.qvel[:], data.ctrl[:] = position, velocity, control
            mujoco.mj_forward(system, data)
            found = read(position, velocity, control)
            wrong = {}
            for n, sensor in enumerate(SENSORS):
                first = system.sensor_adr[n]
                wanted = data.sensordata[first : first + system.sensor_dim[n]]
                error = np.abs(np.ravel(found[f"sensors.s{n}"]) - wanted).max()
                if error > 1e-10 * max(1.0, np.abs(wanted).max()):
                    wrong[sensor] = error, np.ravel(found[f"sensors.s{n}"]), wanted
            assert not wrong


STANDING = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
<body name="box" pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom type="box" size="0.1 0.1 0.1" mass="2"/>
{sites}
<body pos="0 0 0.2"><joint type="hinge" axis="0 1 0" range="0 1"/><geom type="box" size="0.1 0.1 0.1" mass="3"/>
<site name="above"/></body></body></worldbody><sensor>{sensors}</sensor></mujoco>"""
# Whether the normals of the contacts at the corners, downward, meet the volume of a site.
ZONES = {
    "sphere": ('type="sphere" size="0.2"', True),
    "box": ('type="box" size="0.11 0.11 0.02" pos="0 0 -0.15"', True),
    "box_above": ('type="box" size="0.11 0.11 0.02" pos="0 0 0.05"', False),
    "capsule": ('type="capsule" size="0.02 0.2" pos="0 0 -0.15"', False),
    "cylinder": ('type="cylinder" size="0.15 0.02" pos="0 0 -0.12"', True),
    "ellipsoid": ('type="ellipsoid" size="0.2 0.2 0.05" pos="0 0 -0.1"', True),
}


def test_a_sensor_that_the_engine_lacks_is_named_with_its_place(tmp_path):
    path = tmp_path / "seeing.xml"
    path.write_text(STANDING.format(sites='<site name="eye"/>', sensors='\n<rangefinder name="far" site="eye"/>'))
    with pytest.raises(UserError, match=r"no sensors of the kind rangefinder: sensor 'far' \(seeing.xml:6\)"):
        mjcf(path)


KEYS = """<mujoco><worldbody><body><joint/><geom size="0.1"/></body></worldbody><keyframe>
<key name="low" qpos="0.3"/><key name="high" qpos="2" qvel="-1"/></keyframe></mujoco>"""


def test_a_run_starts_from_a_keyframe_by_name_or_index():
    for keyframe, position, velocity in ((None, 0.3, 0), ("high", 2, -1), (1, 2, -1), (0, 0.3, 0)):
        params = mjcf(KEYS, keyframe=keyframe).params
        assert [float(params[f"initial_{what}"][0]) for what in ("position", "velocity")] == pytest.approx(
            [position, velocity]
        )
    for keyframe, reason in (("hig", "did you mean 'high'"), (2, "not below"), (-1, "at least 0"), ([], "integer")):
        with pytest.raises(UserError, match=reason):
            mjcf(KEYS, keyframe=keyframe)


def test_sensors_are_quantities_of_runs():
    run = simkit.run(mjcf(with_sensors(['<jointpos joint="hip"/>', '<gyro site="tip"/>'])), steps=2, every=1)
    assert run["sensors.s0"].dims == ("time",) and run["sensors.s1"].attrs["units"] == "rad/s"
    np.testing.assert_array_equal(run["sensors.s0"], run["joint_position"][:, 13])
