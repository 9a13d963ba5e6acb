"""Sensors of models as quantities, beside MuJoCo."""

import re

import jax
import mujoco
import numpy as np

import simkit
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


def test_sensors_are_quantities_of_runs():
    run = simkit.run(mjcf(with_sensors(['<jointpos joint="hip"/>', '<gyro site="tip"/>'])), steps=2, every=1)
    assert run["sensors.s0"].dims == ("time",) and run["sensors.s1"].attrs["units"] == "rad/s"
    np.testing.assert_array_equal(run["sensors.s0"], run["joint_position"][:, 13])
