"""Motion of bodies: integrators, rotations, loads of users, held controls, impacts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.estimation import controlled
from simkit.core.rollout import trajectory
from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.quaternion import identity, rotate, turn
from simkit.rigid.algebra.vector import perpendicular, stacked, vector, zeros
from simkit.rigid.bodies.bodies import gather, with_inertia
from simkit.rigid.bodies.motion import Wrench, motion_of
from simkit.rigid.bounces import geometric_sum, slide, time_of_impact
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.free import Free
from simkit.rigid.integrators import INTEGRATORS, integrator_named
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.shapes.sphere import sphere
from tests.rigid.test_algebra import (
    ROUNDING,
    directions,
    numbers,
    turned_by,
)
from tests.rigid.test_motion import (
    CONTROLS,
    DECISIONS,
    DRAG,
    DT,
    HELD,
    KEY,
    OMEGA,
    PUSHED_MASS,
    as_numbers,
    asymmetric_body,
    end,
    exact,
    pushed,
    two_bodies,
)
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_body_at_rest_has_finite_derivatives(name):
    bodies, spin = asymmetric_body(), jnp.zeros(3)
    still = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))

    def outcome(spin):
        motion = motion_of(bodies, vector(jnp.zeros((1, 3))), angular_velocity=vector(spin[None]))
        motion = integrator_named(name)(motion, bodies, lambda *_: still, jnp.array(0.0), jnp.array(0.1))
        return quaternion.stacked(motion.orientation)[0]

    # A turn by omega / 10: q = exp(omega / 20), of slope 1/20.
    for slope in (jax.jacrev(outcome)(spin), jax.jacfwd(outcome)(spin)):
        np.testing.assert_allclose(slope, np.vstack([np.zeros(3), np.eye(3) / 20]), atol=1e-15)


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
    motion = motion_of(bodies, vector(jnp.zeros((1, 3))), velocity=None, angular_velocity=vector(jnp.array([OMEGA])))
    free = Wrench(force=zeros(bodies.mass), torque=zeros(bodies.mass))
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
        seen = stacked(rotate(q, vector(jnp.array([unit]))))[0]
        np.testing.assert_allclose(seen, expected, atol=1e-14)


def test_a_body_at_rest_does_not_spoil_derivatives_of_rotating_ones():
    rates = jnp.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]])

    def outcome(rates):
        start = identity(jnp.zeros(2))
        q = jax.lax.fori_loop(0, 10, lambda _, q: turn(q, 0.1 * vector(rates)), start)
        return numbers(q)

    slope = jax.jacfwd(outcome)(rates)
    # Ten turns by a tenth: q = exp(rates / 2).
    np.testing.assert_allclose(slope[0, :, 0], np.vstack([np.zeros(3), np.eye(3) / 2]), atol=ROUNDING)
    np.testing.assert_allclose(slope[1, :, 1], jax.jacfwd(turned_by)(rates[1]), atol=ROUNDING)
    np.testing.assert_array_equal(slope[1, :, 0], 0)


def test_perpendiculars_have_finite_derivatives_in_every_direction():
    slopes = jax.vmap(jax.jacrev(lambda n: jnp.concatenate([stacked(p) for p in perpendicular(vector(n))])))(
        jnp.asarray(directions())
    )
    assert np.isfinite(slopes).all()
    # d a / d z = a^2 <= 1 is the largest factor in any entry, since |a| <= 1.
    assert np.abs(slopes).max() < 2 + ROUNDING


# How far into its step a held force acts at once: half a step is exact, since x = x0 + v0 dt + F dt^2 / 2m.
METHODS = {
    "Free": (Free(), 0.5),
    "Free by Runge-Kutta": (Free("runge_kutta"), 0.5),
    "Free by Euler": (Free("semi_implicit_euler"), 0.0),
    "Events": (Events(impacts=1), 0.5),
    "Compliant": (Compliant(substeps=4), 0.5),
    "Jointed": (Jointed(), 0.5),
    "Jointed of order 4": (Jointed(order=4), 0.5),
    "Impulses": (Impulses(sweeps=1, impacts=1), 0.0),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_force_held_over_steps_and_its_derivatives_are_exact(name):
    method, into = METHODS[name]
    simulation = pushed(method)
    run, state = controlled(simulation, HELD), simulation.init(simulation.params, KEY)

    def way(controls):
        seen = run(state, simulation.params, {"push": controls})[1]
        return seen["x"][-1], seen

    (x, seen), slope = jax.jit(jax.value_and_grad(way, has_aux=True))(jnp.asarray(CONTROLS))
    # Each step with force F adds F dt / m to the speed, for the rest of the time.
    left = np.arange(DECISIONS * HELD, 0, -1) - into
    each = (DT**2 / PUSHED_MASS * left).reshape(DECISIONS, HELD).sum(axis=1)
    np.testing.assert_allclose(slope, each, rtol=1e-10)
    np.testing.assert_allclose(x, each @ CONTROLS, rtol=1e-10)
    np.testing.assert_allclose(seen["time"], HELD * DT * np.arange(1, DECISIONS + 1), rtol=1e-12)


def test_friction_has_finite_derivatives_at_no_slip_no_friction_and_no_time():
    def outcome(slip, duration, friction):
        impulse, shift = slide(vector(slip), duration, friction, jnp.array(9.81))
        return jnp.concatenate([stacked(impulse), stacked(shift)])

    for slip in (jnp.zeros(3), jnp.array([1.0, 0.0, 0.0]), jnp.array([1e-200, 0.0, 0.0])):
        for duration in (0.0, 0.1, 10.0):
            for friction in (0.0, 0.3):
                arguments = slip, jnp.array(duration), jnp.array(friction)
                for jacobian in jax.jacrev(outcome, argnums=(0, 1, 2))(*arguments):
                    assert np.isfinite(jacobian).all(), arguments


def test_the_time_of_impact_has_the_derivative_of_the_quadratic_formula():
    def formula(start):
        gap, rate, acceleration = start
        return (rate + jnp.sqrt(rate**2 - 2 * acceleration * gap)) / -acceleration

    start = jnp.array([1.0, 3.0, -9.81])
    time, derivative = jax.value_and_grad(lambda s: time_of_impact(*s))(start)
    np.testing.assert_allclose(time, formula(start), rtol=ROUNDING)
    np.testing.assert_allclose(derivative, jax.grad(formula)(start), rtol=ROUNDING)
    for second in (jax.hessian, lambda f: jax.jacrev(jax.jacrev(f))):
        found, expected = jax.jit(lambda s, d=second: (d(lambda s: time_of_impact(*s))(s), d(formula)(s)))(start)
        np.testing.assert_allclose(found, expected, atol=ROUNDING)


STEPS = 20


def test_a_user_defined_load_can_be_differentiated():
    simulation = two_bodies()

    def distance(params):
        return trajectory(simulation, STEPS, STEPS)(params, KEY)[2]["distance"][-1]

    def tangent(name):
        zeros = {other: jnp.zeros_like(value) for other, value in simulation.params.items()}
        return {**zeros, name: jnp.ones_like(simulation.params[name])}

    value, push = jax.linearize(jax.jit(distance), simulation.params)
    step = 1e-5
    for name in ("stiffness", "spin", "wind"):
        above, below = (
            distance({**simulation.params, name: simulation.params[name] + sign * step}) for sign in (1, -1)
        )
        # step^2 of third derivatives of order 1, and roundings of 1e-15 over the step.
        np.testing.assert_allclose(push(tangent(name)), (above - below) / (2 * step), atol=1e-9)
    assert value > 0


RATIOS = [0.0, 1e-8, 0.3, 0.99, 1 - 1e-4, 1 - 1e-9, 1.0]


@every("count", [0.0, 1.0, 2.0, 5.0])
def test_derivatives_of_a_geometric_sum_of_every_order_exist_where_the_ratio_is_zero(count):
    def total(ratio):
        return geometric_sum(ratio, jnp.array(count))

    # S = 1 + q + q^2 + ... has as many of the derivatives 1, 1, 2, 6 at q = 0 as it has terms.
    found, derivatives = total, []
    for _ in range(4):
        derivatives.append(float(jax.jit(found)(jnp.array(0.0))))
        found = jax.grad(found)
    np.testing.assert_allclose(derivatives, [1.0 if count else 0.0, *np.where(count > np.arange(1, 4), [1, 2, 6], 0)])


@every("ratio", RATIOS)
@every("count", [0, 1, 2, 7, 99, 101, 3000])
def test_a_geometric_sum_equals_the_plain_sum_and_has_its_derivative(ratio, count):
    value, derivative = jax.value_and_grad(geometric_sum)(jnp.array(ratio), jnp.array(float(count)))
    k = np.arange(count)
    expected = float(np.sum(ratio**k))
    expected_derivative = float(np.sum(k[1:] * ratio ** (k[1:] - 1)))
    # At the change of formula, n (1 - q) = 0.01, cancellation costs the value 2 digits and its derivative 4; the
    # latter's absolute error is a rounding unit of S / (1 - q), at most 100 here where S' = 0.
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(derivative, expected_derivative, rtol=1e-11, atol=1e-13)
