"""Impulses at all contacts at once: their sums on each body are those of one contact after another."""

import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra.vector import Vector, cross, each, stacked, zeros
from simkit.rigid.bodies.bodies import box, repeat
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.collision.rounds import rounds
from simkit.rigid.contact.sweeping.arrangement import touches_of
from simkit.rigid.contact.sweeping.mobility import Velocities, mobility_of
from simkit.rigid.contact.sweeping.sweeps import Touches, applied
from simkit.rigid.planes import floor
from simkit.rigid.scene import Setting
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every("count", [4, 5])
def test_impulses_at_all_contacts_add_up_on_each_body(count):
    rng = np.random.default_rng(count)
    bodies = repeat(box(2.0, (0.3, 0.2, 0.1), 0.5), count)
    motion = motion_of(bodies, Vector(*jnp.asarray(rng.uniform(-0.2, 0.2, (3, count)))))
    mobility = mobility_of(bodies, motion)
    setting = Setting(
        params={},
        bodies=bodies,
        planes=floor(),
        load=lambda motion, time: Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass)),
    )
    touches = touches_of(motion, setting, mobility)
    planes, pairs = (
        each(lambda values: jnp.asarray(rng.normal(size=values.shape)), touch.normal)
        for touch in (touches.planes, touches.pairs)
    )
    first, second = rounds(count)
    # The pairs of an odd number of bodies without a partner have no impulse.
    real = jnp.asarray((first < count) & (second < count))[:, None]
    impulses = Touches(planes=planes, pairs=each(lambda values: values * real, pairs))
    start = Velocities(linear=zeros(bodies.mass), angular=zeros(bodies.mass))
    after = applied(start, mobility, touches, impulses)

    force, moment = np.zeros((count, 3)), np.zeros((count, 3))
    np.add.at(force, np.arange(count), np.sum(stacked(impulses.planes), axis=(0, 1)))
    np.add.at(moment, np.arange(count), np.sum(stacked(cross(touches.planes.first_arm, impulses.planes)), axis=(0, 1)))
    for side, arm, sign in ((first, touches.pairs.first_arm, 1), (second, touches.pairs.second_arm, -1)):
        each_pair = np.sum(stacked(impulses.pairs), axis=1), np.sum(stacked(cross(arm, impulses.pairs)), axis=1)
        here = side < count
        np.add.at(force, side[here], sign * each_pair[0][here])
        np.add.at(moment, side[here], sign * each_pair[1][here])
    expected = mobility.angular @ Vector(*jnp.asarray(moment.T))
    # Sums of some forty numbers of order one.
    np.testing.assert_allclose(stacked(after.linear), force / np.asarray(bodies.mass)[:, None], rtol=0, atol=1e-13)
    np.testing.assert_allclose(stacked(after.angular), stacked(expected), rtol=1e-12, atol=1e-10)
