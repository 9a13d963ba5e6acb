"""Compliant contact: Hertz's contact time, Hunt and Crossley's restitution, momentum, friction and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from simkit.core.rollout import trajectory
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import repeat, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

KEY = jax.random.key(0)
DEFAULTS = {
    "speed": 2.0,
    "mass": 0.7,
    "stiffness": 1e5,
    "dissipation": 0.15,
    "friction": 0.0,
    "gravity": 0.0,
    "time_step": 1e-3,
}


def params_of(dtype=float, **changed):
    return {name: jnp.asarray(value, dtype=dtype) for name, value in (DEFAULTS | changed).items()}


@functools.cache
def impact(substeps=4):
    """Return a ball that hits the floor at a given speed, between two steps."""
    return simulate(
        Scene(
            params=params_of(),
            bodies=lambda p: repeat(sphere(p["mass"], 0.1, p["friction"]), 1),
            start=lambda p, bodies, key: motion_of(
                bodies, Vector(jnp.zeros(1), jnp.zeros(1), 0.1013 * jnp.ones(1)), velocity=Vector(0.0, 0.0, -p["speed"])
            ),
            dynamics=Compliant(substeps=substeps),
            planes=lambda p: floor(),
            loads=(gravity(),),
        )
    )


@functools.cache
def outgoing(substeps=4, steps=40):
    """Return ``params -> speed after the impact``, compiled, and its derivatives."""
    run = trajectory(impact(substeps), steps, steps)

    def speed(params):
        return run(params, KEY)[0].motion.velocity.z[0]

    return jax.jit(jax.value_and_grad(speed))


def exact_restitution(x):
    """Solve (1 + e) x = ln((1 + x) / (1 - e x)) for e."""
    return brentq(lambda e: (1 + e) * x - np.log((1 + x) / (1 - e * x)), 1e-9, min(1, 1 / x) * (1 - 1e-12))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("speed", [0.5, 2.0, 5.0])
def test_restitution_decreases_with_speed_as_in_the_integrated_law(speed):
    # A substep of 1 ms / 4 is 1/100 of the contact; the error of second order is then some 1e-4.
    value, _ = outgoing()(params_of(speed=speed))
    assert float(value) == pytest.approx(speed * exact_restitution(1.5 * 0.15 * speed), rel=5e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["speed", "stiffness", "dissipation", "mass"])
def test_derivatives_equal_central_differences(name):
    params = params_of()
    value, slope = outgoing()(params)
    step = 1e-5 * float(params[name])
    ends = [float(outgoing()({**params, name: params[name] + sign * step})[0]) for sign in (1, -1)]
    # Rounding of the value over twice the step, and the third derivative through steps that touch.
    assert float(slope[name]) == pytest.approx(
        (ends[0] - ends[1]) / (2 * step), rel=1e-6, abs=1e-9 * float(value) / step
    )


@pytest.mark.usefixtures("x64")
def test_an_elastic_contact_lasts_as_long_as_that_of_hertz():
    """A mass m on k d^(3/2) dents it by (5 m v^2 / 4 k)^(2/5), in 2.9432751 times that over v in all."""
    params = params_of(dissipation=0.0)
    state, _, _ = jax.jit(trajectory(impact(), 40, 40))(params, KEY)
    depth = (5 * 0.7 * 2.0**2 / (4 * 1e5)) ** 0.4
    # Counted in whole substeps, of which the first and the last are cut short.
    assert int(state.memory.shortest) * 1e-3 / 4 == pytest.approx(2.9432751 * depth / 2.0, abs=2e-3 / 4)
    assert float(state.motion.velocity.z[0]) == pytest.approx(2.0, rel=1e-4)
