"""Integrators: their order under forces of every kind, conserved quantities, and reversibility."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid.algebra import quaternion, vector
from simkit.rigid.algebra.quaternion import rotate
from simkit.rigid.bodies.bodies import gather, sphere, with_inertia
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from tests.rigid.test_integrators import DRAG, OMEGA, as_numbers, asymmetric_body, check_derivative, end, exact
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_body_at_rest_has_finite_derivatives(name):
    bodies, spin = asymmetric_body(), jnp.zeros(3)
    still = Wrench(force=vector.zeros(bodies.mass), torque=vector.zeros(bodies.mass))

    def outcome(spin):
        motion = motion_of(bodies, vector.vector(jnp.zeros((1, 3))), angular_velocity=vector.vector(spin[None]))
        motion = integrator_named(name)(motion, bodies, lambda *_: still, jnp.array(0.0), jnp.array(0.1))
        return quaternion.stacked(motion.orientation)[0]

    # A turn by omega / 10: q = exp(omega / 20), of slope 1/20.
    for slope in (jax.jacrev(outcome)(spin), jax.jacfwd(outcome)(spin)):
        np.testing.assert_allclose(slope, np.vstack([np.zeros(3), np.eye(3) / 20]), atol=1e-15)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_the_derivative_of_a_motion_is_its_central_difference(name):
    check_derivative(name)


@every(
    ("name", "drag", "order", "steps"),
    [
        ("semi_implicit_euler", 0.0, 1, 400),
        ("semi_implicit_euler", DRAG, 1, 400),
        ("velocity_verlet", 0.0, 2, 100),
        ("runge_kutta", 0.0, 4, 50),
        ("runge_kutta", DRAG, 4, 50),
    ],
)
def test_an_integrator_has_its_order_under_forces_of_position_velocity_and_time(name, drag, order, steps):
    errors = [np.abs(end(name, steps * factor, drag) - exact(drag)).max() for factor in (1, 2, 4)]
    # The next term of the error is smaller by a few time steps of 1/50 to 1/400 s: a tenth of the order at most.
    for coarse, fine in itertools.pairwise(errors):
        assert abs(np.log2(coarse / fine) - order) < 0.1, errors
    # And it is the right motion that they converge to: Richardson's rest of the finest.
    assert errors[-1] < {1: 1e-2, 2: 1e-3, 4: 1e-6}[order]


@every(("moments", "axis"), [((0.4, 0.4, 0.4), None), ((0.5, 0.5, 0.8), 2), ((0.8, 0.5, 0.5), 0)], ids=str)
def test_a_symmetric_body_rotates_exactly_at_any_time_step(moments, axis):
    bodies = gather([with_inertia(sphere(1.0, 0.5), moments)])
    motion = motion_of(
        bodies, vector.vector(jnp.zeros((1, 3))), velocity=None, angular_velocity=vector.vector(jnp.array([OMEGA]))
    )
    free = Wrench(force=vector.zeros(bodies.mass), torque=vector.zeros(bodies.mass))
    ends = []
    for steps in (1, 64):
        run = jax.jit(
            lambda motion, steps=steps: jax.lax.fori_loop(
                0,
                steps,
                lambda _, motion: INTEGRATORS["velocity_verlet"](
                    motion, bodies, lambda motion, time: free, jnp.array(0.0), jnp.array(2.0 / steps)
                ),
                motion,
            )
        )
        ends.append(as_numbers(run(motion)))
    # 64 steps with a few roundings each.
    np.testing.assert_allclose(ends[0], ends[1], atol=64 * 5e-16)
    if axis is not None:
        # The axis goes around L by L t / I of the others: Poinsot's cone.
        momentum = np.array(moments) * OMEGA
        length = np.linalg.norm(momentum)
        n, unit = momentum / length, np.eye(3)[axis]
        angle = 2.0 * length / sorted(moments, key=list(moments).count)[-1]
        parallel = n * (n @ unit)
        expected = parallel + np.cos(angle) * (unit - parallel) + np.sin(angle) * np.cross(n, unit)
        q = quaternion.quaternion(jnp.array([ends[0][3:7]]))
        seen = vector.stacked(rotate(q, vector.vector(jnp.array([unit]))))[0]
        np.testing.assert_allclose(seen, expected, atol=1e-14)


def test_the_derivative_of_a_motion_is_its_central_difference_in_the_first_cases():
    check_derivative("velocity_verlet")
