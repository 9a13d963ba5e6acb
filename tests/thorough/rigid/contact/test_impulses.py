"""Sequential impulses: propagation of impacts, conservation of momenta, and rest."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.vector import Vector, vector
from simkit.rigid.bodies.bodies import box, gather, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.impulses import Impulses, _persistent
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from tests.rigid.contact.scenes import run, scene
from tests.rigid.contact.test_impulses import EPSILON, precision  # noqa: F401
from tests.tables import every


def test_a_row_of_touching_balls_transfers_momentum_to_the_last_one(precision):
    balls = 6
    at = [[0.0, 0, 0], *([0.3 + 0.2 * index, 0, 0] for index in range(balls - 1))]
    speeds = [[1.0, 0, 0]] + [[0.0, 0, 0]] * (balls - 1)
    simulation = scene([sphere(1.0, 0.1, 0.0, 1.0)] * balls, at, speeds, weight=0.0, method=Impulses(impacts=balls - 1))
    observed, _ = run(simulation, 100)
    along = np.asarray(observed["velocity"])[-1, :, 0]
    # Positions such as 0.3 + 0.2 k round to gaps of either sign, which changes nothing but the last bits.
    np.testing.assert_allclose(along, [0] * (balls - 1) + [1], rtol=0, atol=1000 * precision)


def test_collisions_conserve_momentum_and_lose_energy(precision):
    simulation = scene(
        [box(1.0, (0.2, 0.3, 0.25), 0.4, 0.5), sphere(0.5, 0.1, 0.4, 0.5)],
        [[-0.3, 0.02, 0.0], [0.3, 0.05, 0]],
        [[2.0, 0, 0], [-2.0, 0, 0]],
        [[1.0, 2.0, 0], [0, 0, 0]],
        weight=0.0,
    )
    _, diagnosed = run(simulation, 150, 30)
    # 150 steps of rounding, on the scale of m v = 2 kg m/s.
    for quantity in ("momentum", "angular_momentum"):
        np.testing.assert_allclose(diagnosed[quantity], diagnosed[quantity][0], rtol=0, atol=150 * 2 * precision)
    energy = np.asarray(diagnosed["energy"])
    assert energy[-1] < 0.9 * energy[0]  # they did collide
    # The splitting of a free rotation keeps energy to about (omega dt)^2 / 12 = 1e-5 of that of rotation, here below
    # a tenth of the whole; 30 roundings between two records.
    assert np.all(np.diff(energy) <= (1e-6 + 30 * precision) * energy[0])


def test_sweeps_too_few_for_a_heavy_body_on_a_light_one_are_reported(x64):
    simulation = simulate(
        Scene(
            params={"ratio": 1.0, "gravity": 9.81, "time_step": 0.002},
            bodies=lambda params: gather([box(1.0, (0.2,) * 3, 0.5), box(params["ratio"], (0.2,) * 3, 0.5)]),
            start=lambda params, bodies, key: motion_of(bodies, vector(jnp.array([[0.0, 0, 0.1], [0.02, 0, 0.3]]))),
            dynamics=Impulses(),
            planes=lambda params: floor(),
            loads=(gravity(),),
        )
    )
    compiled = jax.jit(trajectory(simulation, 600, 1))
    for ratio in (1.0, 10.0, 100.0, 1000.0):
        params = simulation.params | {"ratio": jnp.asarray(ratio)}
        state, _, seen = compiled(params, jax.random.key(0))
        stands = seen["largest_penetration"][-1] < 5e-4
        assert stands == (ratio < 50)
        assert simulation.status(state, params) == (Status.OK if stands else Status.SWEEPS_TOO_FEW)
        residual, weight = np.asarray(seen["residual"]), 9.81 * 2e-3
        assert residual[-100:].max() < 1e-6 * weight if stands else residual.max() > 10 * weight


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
