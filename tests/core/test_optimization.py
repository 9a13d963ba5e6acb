"""Optimization as a simulation, with and without bounds."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.bounded import to_bounded, to_unbounded
from simkit.core.optimization import optimization
from simkit.errors import UserError
from tests.tables import every

BOUNDS = {"x": (-2.0, 6.0), "y": (-10.0, 10.0)}


def rosenbrock(params, key):
    return (1 - params["x"]) ** 2 + 100 * (params["y"] - params["x"] ** 2) ** 2


def test_bounded_coordinates_invert(x64):
    values = {"x": jnp.asarray([-1.9, 0.0, 5.9]), "free": jnp.asarray(12.0)}
    back = to_bounded(to_unbounded(values, BOUNDS), BOUNDS)
    for name in values:
        np.testing.assert_allclose(back[name], values[name], rtol=1e-12, atol=1e-12)


@every("bounds", [(-1.0, 3.0), (-1.0, np.inf), (-np.inf, 3.0), (-np.inf, np.inf)])
def test_coordinates_of_any_bounds_invert_and_stay_inside(bounds, x64):
    values = {"x": jnp.asarray([-0.9999, 0.0, 2.5])}
    back = to_bounded(to_unbounded(values, {"x": bounds}), {"x": bounds})
    np.testing.assert_allclose(back["x"], values["x"], rtol=1e-12, atol=1e-12)
    far = to_bounded({"x": jnp.asarray([-50.0, 50.0])}, {"x": bounds})["x"]
    assert (far >= bounds[0]).all() and (far <= bounds[1]).all()


@every(
    ("value", "bounds", "start"),
    [
        (0.0015, (0.001, 1000.0), 0.0015),
        (4.0, (0.0, 1e7), 4.0),
        (0.0, (0.0, 10.0), 0.1),
        (10.0, (0.0, 10.0), 9.9),
        (1e-9, (0.0, math.inf), 1e-9),
        (3.0, (3.0, math.inf), 3.01),
        (999.9985, (0.001, 1000.0), 999.9985),
    ],
)
@every("wide", [False, True])
def test_a_start_near_a_bound_is_kept_and_a_start_at_a_bound_is_moved(value, bounds, start, wide):
    with jax.enable_x64(wide):
        limits = {"x": bounds}
        found = to_bounded(to_unbounded({"x": jnp.asarray(value, dtype=float)}, limits), limits)["x"]
        assert float(found) == pytest.approx(start, rel=1e-5)


def test_a_learning_rate_without_effect_is_refused():
    with pytest.raises(UserError, match="learning_rate has no effect on method = 'lbfgs'; leave it out"):
        optimization(rosenbrock, {"x": jnp.float32(0), "y": jnp.float32(0)}, ["x"], BOUNDS, learning_rate=0.1)
    with pytest.raises(UserError, match=r"learning_rate = 0.1 is given beside method = 'adam:learning_rate=0.2'"):
        optimization(
            rosenbrock, {"x": 0.0, "y": 0.0}, ["x"], BOUNDS, method="adam:learning_rate=0.2", learning_rate=0.1
        )
