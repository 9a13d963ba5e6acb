"""Compliant contact: Hertz's contact time, Hunt and Crossley's restitution, momentum, friction and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import box, repeat, sphere
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate
from tests.physics.test_compliant_contact import KEY, exact_restitution, impact, outgoing, params_of


@pytest.mark.usefixtures("x64")
def test_derivative_through_the_impact_is_that_of_the_law():
    """The law (v + w) l = ln(1 + l v) - ln(1 - l w), l = 3/2 a, gives dw/dv = v (1 - l w) / (w (1 + l v))."""
    speed, loss = 2.0, 1.5 * 0.15
    params = params_of(speed=speed)
    _, slope = outgoing(16)(params)
    w = speed * exact_restitution(loss * speed)
    exact = speed * (1 - loss * w) / (w * (1 + loss * speed))
    # The step in which the touch falls has an error of order 3/2 in the substep, here 1/400 of the contact.
    assert float(slope["speed"]) == pytest.approx(exact, rel=2e-3)
    # The speed after an impact does not depend on mass or stiffness, only on the loss.
    assert abs(float(slope["stiffness"])) * 1e5 < 2e-3 * w


def test_restitution_in_single_precision():
    value, _ = outgoing()(params_of(jnp.float32, speed=2.0))
    # Positions of 0.1 m have a rounding unit of 7e-9 m, a part in 1e6 of the depth, in each of some 100 substeps.
    assert float(value) == pytest.approx(2.0 * exact_restitution(0.45), rel=2e-3)


@pytest.mark.usefixtures("x64")
def test_a_contact_too_short_for_its_derivative_is_reported():
    run = jax.jit(trajectory(impact(), 40, 40))
    # The time of contact falls with the power 2/5 of the stiffness, from 100 substeps to 10.
    for stiffness, expected in ((1e5, Status.OK), (3e7, Status.BRIEF_CONTACT)):
        params = params_of(stiffness=stiffness)
        state, _, _ = run(params, KEY)
        assert int(impact().status(state, params)) == expected


@functools.cache
def collision():
    """Return two spinning balls of different mass that collide off center, with friction."""
    return simulate(
        Scene(
            params=params_of(friction=0.3),
            bodies=lambda p: repeat_two(p),
            start=lambda p, bodies, key: motion_of(
                bodies,
                Vector(jnp.array([0.0, 0.22]), jnp.array([0.0, 0.05]), jnp.zeros(2)),
                velocity=Vector(p["speed"] * jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.zeros(2)),
                angular_velocity=Vector(jnp.array([3.0, -2.0]), jnp.zeros(2), jnp.array([5.0, 1.0])),
            ),
            dynamics=Compliant(substeps=16),
        )
    )


def repeat_two(params):
    from simkit.rigid.bodies.bodies import gather

    return gather(
        [sphere(params["mass"], 0.1, params["friction"]), sphere(2 * params["mass"], 0.1, params["friction"])]
    )


@pytest.mark.usefixtures("x64")
def test_a_collision_conserves_momentum_and_angular_momentum_and_dissipates_energy():
    _, _, diagnosed = jax.jit(trajectory(collision(), 60, 1))(collision().params, KEY)
    assert int(diagnosed["contacts"].max()) == 1 and int(diagnosed["contacts"][-1]) == 0
    # A few hundred additions of numbers of order 1.
    for name in ("momentum", "angular_momentum"):
        np.testing.assert_allclose(diagnosed[name], diagnosed[name][0], rtol=1e-12)
    assert float(diagnosed["energy"][-1]) < 0.95 * float(diagnosed["energy"][0])


@pytest.mark.usefixtures("x64")
def test_a_sphere_that_slides_ends_rolling_and_a_box_stays_on_its_four_corners():
    def settled(bodies, height, velocity, steps):
        scene = Scene(
            params=params_of(gravity=9.81, friction=0.5, dissipation=1.0, time_step=2e-3),
            bodies=bodies,
            start=lambda p, bodies, key: motion_of(
                bodies, Vector(jnp.zeros(1), jnp.zeros(1), height * jnp.ones(1)), velocity=Vector(velocity, 0.0, 0.0)
            ),
            dynamics=Compliant(substeps=8),
            planes=lambda p: floor(),
            loads=(gravity(),),
        )
        simulation = simulate(scene)
        return jax.jit(trajectory(simulation, steps, steps))(simulation.params, KEY)

    weight = 0.7 * 9.81
    depth = (weight / 1e5) ** (2 / 3)
    state, _, _ = settled(lambda p: repeat(sphere(p["mass"], 0.1, p["friction"]), 1), 0.1 - depth, 1.0, 300)
    # Rolling about points midway in the dent; friction is viscous below the creep speed of 1e-3 m/s.
    arm = 1 - depth / 2 / 0.1
    assert float(state.motion.velocity.x[0]) == pytest.approx(1 / (1 + 2 / 5 / arm**2), rel=1e-3)
    corner = (weight / 4 / 1e5) ** (2 / 3)
    state, _, diagnosed = settled(lambda p: repeat(box(p["mass"], (0.2, 0.2, 0.2), 0.5), 1), 0.1 - corner, 0.0, 300)
    assert float(state.motion.position.z[0]) == pytest.approx(0.1 - corner, abs=1e-9)
    assert int(diagnosed["contacts"][-1]) == 4


@pytest.mark.usefixtures("x64")
def test_a_box_on_a_box_rests_at_the_depth_of_a_quarter_of_its_weight_per_corner():
    """Each corner pushes once, however it is detected: the depth is that of a quarter of the weight."""
    weight = 0.7 * 9.81
    upper, lower = ((part * weight / 4 / 1e5) ** (2 / 3) for part in (1, 2))
    height = jnp.array([0.1 - lower, 0.3 - lower - upper])
    scene = Scene(
        params=params_of(gravity=9.81, friction=0.5, dissipation=1.0, time_step=2e-3),
        bodies=lambda p: repeat(box(p["mass"], (0.2, 0.2, 0.2), p["friction"]), 2),
        start=lambda p, bodies, key: motion_of(bodies, Vector(jnp.zeros(2), jnp.zeros(2), height)),
        dynamics=Compliant(substeps=8),
        planes=lambda p: floor(),
        loads=(gravity(),),
    )
    simulation = simulate(scene)
    state, _, diagnosed = jax.jit(trajectory(simulation, 100, 100))(simulation.params, KEY)
    # It starts in balance and has nowhere to go.
    np.testing.assert_allclose(state.motion.position.z, height, atol=1e-9)
    assert int(diagnosed["contacts"][-1]) == 8
