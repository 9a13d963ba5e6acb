"""The lid-driven cavity against the tables of Ghia, Ghia and Shin, J. Comput. Phys. 48, 387 (1982)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.flow import lid_driven_cavity
from simkit.flow.diagnosis.measures import interpolate
from simkit.flow.grid import bounded_axis
from simkit.flow.systems.lid_driven_cavity import lowest_point

# u on the vertical centerline at y, v on the horizontal one at x. One value of theirs is a misprint: nan.
Y = "0.9766 0.9688 0.9609 0.9531 0.8516 0.7344 0.6172 0.5 0.4531 0.2813 0.1719 0.1016 0.0703 0.0625 0.0547"
X = "0.9688 0.9609 0.9531 0.9453 0.9063 0.8594 0.8047 0.5 0.2344 0.2266 0.1563 0.0938 0.0781 0.0703 0.0625"
U = {
    100: "0.84123 0.78871 0.73722 0.68717 0.23151 0.00332 -0.13641 -0.20581 -0.21090 -0.15662 -0.10150 -0.06434"
    " -0.04775 -0.04192 -0.03717",
    400: "0.75837 0.68439 0.61756 0.55892 0.29093 0.16256 0.02135 -0.11477 -0.17119 -0.32726 -0.24299 -0.14612 -0.10338"
    " -0.09266 -0.08186",
}
V = {
    100: "-0.05906 -0.07391 -0.08864 -0.10313 -0.16914 -0.22445 -0.24533 0.05454 0.17527 0.17507 0.16077 0.12317"
    " 0.10890 0.10091 0.09233",
    400: "-0.12146 -0.15663 -0.19254 -0.22847 nan -0.44993 -0.38598 0.05186 0.30174 0.30203 0.28124 0.22965 0.20920"
    " 0.19713 0.18360",
}
# By then the flow changes by less than 1e-4 of the lid's velocity.
STEADY = {100: 20.0, 400: 40.0}


@functools.cache
def steady(cells, reynolds):
    """The steady velocity and its diagnostics, in float32."""
    time_step = 0.46 / cells
    simulation = lid_driven_cavity(cells=cells).with_params(reynolds=reynolds, time_step=time_step)
    simulation.check(simulation.params, jax.random.key(0))
    steps = round(STEADY[reynolds] / time_step)

    @jax.jit
    def run(params):
        state = segment(simulation, steps)(simulation.init(params, jax.random.key(0)), params)
        return state.velocity, simulation.diagnose(state, params)

    return run(simulation.params)


@pytest.mark.parametrize("reynolds", [100, 400])
@pytest.mark.parametrize("cells", [64, pytest.param(128, marks=pytest.mark.slow)])
def test_velocity_on_the_centerlines_is_that_of_ghia(cells, reynolds):
    (u, v), _ = steady(cells, reynolds)
    axis = bounded_axis(cells, 1.0)
    lines = ((u[cells // 2], Y, U), (v[:, cells // 2], X, V))
    for profile, points, table in lines:
        found = np.array([interpolate(profile, float(point), axis) for point in points.split()])
        expected = np.array(table[reynolds].split(), float)
        known = np.isfinite(expected)
        # Within 1 % of the velocity of the lid. Half as many cells are allowed no more.
        np.testing.assert_allclose(found[known], expected[known], rtol=0, atol=0.01)


def test_largest_vortex_is_that_of_ghia():
    _, found = steady(64, 400)
    # Their vortex, found on 257 x 257 points; its center to one of their cells.
    assert found["vortex_x"] == pytest.approx(0.5547, abs=1 / 256)
    assert found["vortex_y"] == pytest.approx(0.6055, abs=1 / 256)
    # Twice as many cells give 0.11361, 0.9 % more: of second order, 4/3 of that are missing here.
    assert found["vortex_strength"] == pytest.approx(0.113909, rel=0.013)


def test_no_slip_and_no_flow_through_the_walls_hold_exactly():
    (u, v), found = steady(64, 400)
    assert jnp.all(u[0] == 0) and jnp.all(u[-1] == 0) and jnp.all(v[:, 0] == 0) and jnp.all(v[:, -1] == 0)
    # float32: velocities up to 1 in cells of 1/64, four faces each and a few roundings.
    assert found["divergence"] < 4 * 64 * np.finfo(np.float32).eps * 2


def test_lowest_point_of_a_parabola_is_found_between_the_points(x64):
    points = bounded_axis(10, 1.0, 0.0, 1.5).faces

    def place(x, y):
        f = (points[:, None] - x) ** 2 + 2 * (points - y) ** 2 - 3
        return jnp.stack(lowest_point(jnp.asarray(f), points))

    # Exact for parabolas, and so are the derivatives.
    np.testing.assert_allclose(place(0.42, 0.67), [0.42, 0.67, -3], rtol=0, atol=1e-13)
    np.testing.assert_allclose(jax.jacobian(place)(0.42, 0.67), [1, 0, 0], rtol=0, atol=1e-12)


def test_lowest_point_of_zeros_is_finite_and_has_derivatives(x64):
    def total(scale):
        return sum(lowest_point(scale * jnp.zeros((6, 6)), np.linspace(0, 1, 6)))

    assert jnp.isfinite(total(1.0)) and jnp.isfinite(jax.grad(total)(1.0))


def test_time_step_above_the_limit_is_refused_with_the_limit():
    simulation = lid_driven_cavity(cells=64).with_params(time_step=0.01)
    # Half a cell per step: 0.5/64.
    with pytest.raises(UserError, match=r"time_step = 0.01 is above the stability limit of advection .*, 0.00781;"):
        simulation.check(simulation.params, jax.random.key(0))


@pytest.mark.parametrize("config", [{"cells": 9}, {"cells": 2}, {"cells": 8.0}, {"stretching": -1}], ids=str)
def test_bad_configuration_is_refused_in_one_line(config):
    with pytest.raises(UserError, match=f"^{next(iter(config))} = .*choose") as error:
        lid_driven_cavity(**config)
    assert "\n" not in str(error.value)
