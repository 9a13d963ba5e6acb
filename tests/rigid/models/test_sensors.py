"""Sensors of models as quantities, beside MuJoCo."""

import pytest

from simkit.errors import UserError
from simkit.rigid import mjcf

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
