"""Joints: loads, redundant constraints, and joints that cannot be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.joints.constraints import generalized_inverse
from simkit.rigid.joints.joint import attachment, hinge, hinge_angle
from simkit.rigid.joints.loads import spring
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.shapes.box import box
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
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
    with pytest.raises(UserError, match=f"body of a load = {body} is not an integer from 0 to 0"):
        jax.eval_shape(simulation.step, jax.eval_shape(simulation.init, simulation.params, key()), simulation.params)


@every("load", [gravity("weight"), spring(lambda params: attachment(0), "weight")])
def test_a_load_that_reads_a_parameter_that_is_missing_is_one_line(load):
    simulation = carriage((load,), stiffness=50.0)
    with pytest.raises(UserError, match="the parameter that a load reads = 'weight' is unknown"):
        jax.eval_shape(simulation.step, jax.eval_shape(simulation.init, simulation.params, key()), simulation.params)


@every("rank", [3, 6, 8])
def test_inverse_of_singular_matrices_side_by_side(rank):
    rng = np.random.default_rng(rank)
    factors = rng.normal(size=(5, 8, rank))
    matrices = factors @ factors.transpose(0, 2, 1)
    inverses = np.asarray(jax.jit(generalized_inverse)(np.moveaxis(matrices, 0, -1)))
    for index, matrix in enumerate(matrices):
        inverse = inverses[..., index]
        # Pivots of random matrices of this size stay above 1e-3 of the diagonal, so round-off grows a thousandfold.
        np.testing.assert_allclose(matrix @ inverse @ matrix, matrix, atol=1e-12 * np.abs(matrix).max())
        np.testing.assert_array_equal(np.count_nonzero(np.any(inverse != 0, axis=1)), rank)


def test_bad_configuration_of_the_method_is_refused():
    with pytest.raises(UserError, match="iterations = 0"):
        Jointed(iterations=0)
    with pytest.raises(UserError, match="order = 3"):
        Jointed(order=3)


def test_bars_that_do_not_close_are_refused(x64):
    with pytest.raises(UserError, match=r"bodies\[1\]\.orientation\[1\]: 'pi/2 - coupler' is nan at the start"):
        build(load("four_bar_linkage", {"coupler_length": 2.0}))
