"""A planar loop of four hinges in space, three times too many rows, against its position analysis."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

from simkit.core.rollout import trajectory
from simkit.errors import UserError
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


@pytest.mark.parametrize(
    ("lengths", "diagonal", "least", "most"),
    [
        # The diagonal by the law of cosines: sqrt(0.4^2 + 0.2^2 + 2 0.4 0.2 cos 60).
        ({"coupler_length": 2.0}, "0.5292", "0.02915", "1.029"),
        ({"coupler_length": 0.02}, "0.5292", "0.02915", "1.029"),
        ({"rocker_length": 0.05}, "0.5292", "0.4792", "0.5792"),
        # Bars on one line: closed, but with a rocker that would turn at an infinite rate.
        ({"crank_angle": 180.0, "coupler_length": 0.1}, "0.6", "0.1", "1.1"),
    ],
)
def test_bars_that_do_not_close_are_refused_with_the_range_of_lengths_that_close(x64, lengths, diagonal, least, most):
    simulation = four_bar_linkage()
    values = {name: jnp.asarray(value) for name, value in lengths.items()}
    params = {name: value.astype(float) for name, value in {**simulation.params, **values}.items()}
    told = rf"end of the crank is {diagonal} m .* choose coupler_length between {least} and {most} "
    with pytest.raises(UserError, match=told):
        simulation.check(params, key())


def test_a_crank_ending_at_the_other_pivot_is_refused(x64):
    params = {**four_bar_linkage().params, "crank_angle": jnp.asarray(0.0), "ground_length": jnp.asarray(0.2)}
    with pytest.raises(UserError, match="is 0 m from the pivot of the rocker; choose another crank_angle"):
        four_bar_linkage().check(params, key())


def test_bars_that_just_close_are_not_refused(x64):
    simulation = four_bar_linkage()
    params = {name: value.astype(float) for name, value in simulation.params.items()}
    simulation.check({**params, "coupler_length": jnp.asarray(1.029)}, key())
