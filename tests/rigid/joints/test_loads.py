"""Springs, dampers, motors and servos against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.joint import attachment, hinge
from simkit.rigid.joints.loads import spring
from simkit.rigid.joints.measures import hinge_angle
from simkit.rigid.loads import gravity
from tests.rigid.joints.scenes import AXIS, carriage, key
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


def test_hinge_angle_is_continuous_and_has_a_derivative_at_every_angle():
    joint = hinge(0, anchor=(0.0, 0.0, 0.0), base=(0.0, 0.0, 0.0), axis=AXIS)
    bodies = gather([box(1.0, (1.0, 1.0, 1.0))])

    def measured(angle):
        none = jnp.zeros(1)
        motion = motion_of(bodies, Vector(none, none, none), exponential(Vector(none, none - angle, none)))
        return hinge_angle(motion, joint, near=angle + 1.0)

    angles = jnp.asarray([-7.0, -2 * np.pi, -np.pi, -1e-9, 0.0, 1e-9, 1.0, np.pi, 4.0, 2 * np.pi, 9.0])
    found, slope = jax.jit(jax.vmap(jax.value_and_grad(measured)))(angles)
    np.testing.assert_allclose(found, angles, atol=1e-14)
    np.testing.assert_allclose(slope, 1.0, atol=1e-14)


@every("body", [2, -1])
def test_a_load_on_a_body_that_does_not_exist_is_one_line(body):
    simulation = carriage((spring(lambda params: attachment(body), "stiffness"),), stiffness=50.0)
    with pytest.raises(
        UserError, match=rf"a load acts on body {body}, which does not exist; choose an index in \[0, 0\]"
    ):
        jax.eval_shape(simulation.step, jax.eval_shape(simulation.init, simulation.params, key()), simulation.params)


@every("load", [gravity("weight"), spring(lambda params: attachment(0), "weight")])
def test_a_load_that_reads_a_parameter_that_is_missing_is_one_line(load):
    simulation = carriage((load,), stiffness=50.0)
    with pytest.raises(UserError, match="a load reads the parameter 'weight', which the scene does not have"):
        jax.eval_shape(simulation.step, jax.eval_shape(simulation.init, simulation.params, key()), simulation.params)
