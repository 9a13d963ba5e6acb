"""A planar loop of four hinges in space, three times too many rows, against its position analysis."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

from simkit.core.rollout import trajectory
from simkit.rigid.systems.four_bar_linkage import four_bar_linkage
from tests.rigid.joints.scenes import key


@functools.cache
def revolution(precision):
    with jax.enable_x64(precision == "float64"):
        simulation = four_bar_linkage()
        _, observed, found = jax.jit(trajectory(simulation, 2200, 4))(simulation.params, key())
        return jax.tree.map(np.asarray, (observed, found))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_coupler_curve_is_that_of_the_position_analysis(precision):
    observed, found = revolution(precision)
    eps = float(jnp.finfo(precision).eps)
    assert np.ptp(np.unwrap(found["crank_angle"])) > 2 * np.pi
    # Lengths of 1 m, to which the sharp triangles of the loop add about a digit.
    assert found["curve_error"].max() < 30 * eps
    assert np.abs(found["freudenstein"]).max() < 30 * eps
    assert found["joint_error"].max() < 10 * eps and found["joint_tilt"].max() < 30 * eps
    assert np.abs(observed["position"][..., 1]).max() < 30 * eps


def test_energy_grows_by_the_work_of_the_motor():
    _, found = revolution("float64")
    power = 10.0 * (3.0 - found["crank_rate"]) * found["crank_rate"]
    work = cumulative_simpson(power, x=found["time"], initial=0)
    # The method's error is (omega dt)^2 / 12 of 8 J, at the 20 rad/s of the sharpest turns: 2.7e-4 J. Simpson's rule on
    # 4 ms adds less.
    np.testing.assert_allclose(found["energy"] - found["energy"][0], work, atol=3e-4)
