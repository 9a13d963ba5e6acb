"""Sequential impulses: propagation of impacts, conservation of momenta, and rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, sphere
from simkit.rigid.contact.impulses import Impulses, _persistent
from simkit.rigid.planes import floor
from tests.every import every
from tests.rigid.contact.scenes import run, scene

EPSILON = {"float64": 2.2e-16, "float32": 1.2e-7}


@pytest.fixture(params=["float64", "float32"])
def precision(request):
    with jax.enable_x64(request.param == "float64"):
        yield EPSILON[request.param]


def test_free_flight_is_the_exact_parabola(precision):
    # First-order methods miss it by g t dt / 2 = 10 mm here.
    simulation = scene([box(2.0, (0.1, 0.2, 0.3))], [[0, 0, 10]], [[1, -2, 3]], time_step=2e-3)
    observed, diagnosed = run(simulation, 500)
    exact = [1, -2, 10 + 3 - 9.81 / 2]
    # 500 roundings of numbers around 10.
    np.testing.assert_allclose(observed["position"][-1, 0], exact, rtol=0, atol=500 * 10 * precision)
    np.testing.assert_allclose(diagnosed["energy"][-1], diagnosed["energy"][0], rtol=500 * precision)


def test_ball_on_the_floor_bounces_to_the_height_of_its_restitution(precision):
    simulation = scene([sphere(1.0, 0.1, 0.0, 0.8)], [[0, 0, 1.1]], [[0, 0, 0]], planes=lambda params: floor())
    observed, _ = run(simulation, 400, 1)
    height = np.asarray(observed["position"])[250:, 0, 2] - 0.1
    # The impact is taken at the start of its step, up to v dt = 9 mm early, which the rebound keeps: (1 + e) v dt.
    assert abs(height.max() - 0.64) < 1.8 * 4.43 * 2e-3
    assert np.min(np.asarray(observed["position"])[:, 0, 2]) > 0.1 - 1e-5


@every(
    "wrong, message",
    [({"sweeps": 0}, "sweeps = 0"), ({"impacts": -1}, "impacts = -1"), ({"correction": 1.5}, "correction = 1.5")],
)
def test_numbers_out_of_range_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        Impulses(**wrong)


@every("dtype", [jnp.float32, jnp.float64])
def test_the_derivative_of_a_vanishing_persistent_force_is_finite(x64, dtype):
    # Impulses of a body that comes to rest shrink by one factor in each sweep, down to the least numbers there are.
    sizes = jnp.asarray([10.0**power for power in range(-300, 3) if 10.0**power > jnp.finfo(dtype).tiny], dtype)
    now, ones = Vector(sizes, 0.3 * sizes, 0 * sizes), Vector(*[jnp.ones_like(sizes)] * 3)
    for factor in (0.5, 1e9):
        found = jax.jit(
            lambda now, factor=factor: jax.jvp(lambda now: _persistent(factor * now, now), (now,), (ones,))
        )(now)
        assert all(np.isfinite(values).all() for values in jax.tree.leaves(found))
        share = min(factor, 1)
        seen = sizes > 1e-9
        np.testing.assert_allclose(found[0].x[seen], share * sizes[seen], rtol=1e-6)
