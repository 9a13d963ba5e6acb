"""Contacts, limits, friction and equalities in joint coordinates, by hard impulses."""

import numpy as np

from simkit.rigid.articulated.tree import model_of
from simkit.rigid.models.constraints_of_model import candidates, pairs_that_may_touch

HEAD = '<mujoco><option timestep="0.002"/>'
FLOOR = '<geom type="plane" size="1 1 1" friction="0.4"/>'
BOX = '<geom type="box" size="0.1 0.1 0.1" mass="1" friction="0.3"/>'
CUBE = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1))
# The last point is inside.
MESH = f'<asset><mesh name="cube" vertex="{CUBE} 0.01 0.02 0.03"/></asset>'
BLOCK = f'{HEAD}<worldbody>{FLOOR}<body pos="0 0 0.1"><freejoint/>{BOX}</body></worldbody></mujoco>'


def test_a_mesh_touches_a_plane_by_the_corners_of_its_hull():
    """The program of the cube is that of the box, whose corners and mass it has."""
    shape = BOX.replace('type="box" size="0.1 0.1 0.1"', 'type="mesh" mesh="cube"')
    meshed = BLOCK.replace(BOX, shape).replace("<worldbody>", f"{MESH}<worldbody>")
    found = [candidates(model, pairs_that_may_touch(model)) for model in map(model_of, (BLOCK, meshed))]
    corners = [np.sort(each.point_at.round(9), axis=0) for each in found]
    np.testing.assert_allclose(*corners, atol=1e-7)
    assert found[0].point_radius.tolist() == found[1].point_radius.tolist() == [0] * 8


STACK = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
<body name="ball_1" pos="0 0 0.1"><freejoint/><geom size="0.1" mass="1"/></body>
<body name="ball_2" pos="0 0 0.3"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="{mass}"/></body>
</worldbody></mujoco>"""
