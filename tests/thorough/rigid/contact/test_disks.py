"""Disks in methods that require the x-z plane: leaving it ends the run with a status."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.core.status import Status, failed, status_of
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from tests.rigid.contact.test_disks import KEY, STILL, beside

# What a sphere does to a disk at rest at the origin of the plane, or a load.
STAYS = {
    "a push in the plane": {"push_x": 1.0},
    "a hit in the plane": {"x": -0.5, "vx": 3.0},
    "a sphere that passes by": {"x": -0.5, "y": 0.3, "vx": 3.0},
}
LEAVES = {
    "a hit along y": {"x": 0.0, "y": -0.5, "vy": 2.0},
    "a hit beside the plane": {"x": -0.5, "y": 0.1, "vx": 3.0},
    "friction of a sphere that spins about z": {"x": -0.5, "vx": 3.0, "spin_z": 30.0},
    "a load along y": {"push_y": 1e-3},
    "a torque about x": {"twist_x": 1e-3},
}


# Events compile for ten seconds and more.
@pytest.mark.parametrize("dynamics", [pytest.param(Events(impacts=4)), Impulses()])
def test_a_disk_pushed_out_of_the_plane_sets_the_status(dynamics):
    cases = {**STAYS, **LEAVES}
    simulation = beside(dynamics)
    values = {name: jnp.array([(STILL | case)[name] for case in cases.values()]) for name in STILL}
    together = ensemble(simulation, list(STILL))
    params = simulation.params | values
    start = together.init(params, jax.random.split(KEY, len(cases)))
    states = jax.jit(segment(together, 60))(start, params)
    codes = dict(zip(cases, np.asarray(status_of(together)(states, params)), strict=True))
    assert {name: Status(int(codes[name])) for name in LEAVES} == dict.fromkeys(LEAVES, Status.DISK_OUT_OF_PLANE)
    assert not any(failed(codes[name]) for name in STAYS)
    # The step that would leave the plane is not taken.
    for index, name in enumerate(cases):
        moves = states.motion.velocity.y[index, 0], states.motion.angular_momentum.x[index, 0]
        np.testing.assert_allclose(moves, 0, atol=1e-5, err_msg=name)
        assert (states.time[index] < 0.29) == (name in LEAVES)
