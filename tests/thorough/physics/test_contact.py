"""Contact: laws and derivatives that take long."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import build, load
from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import gather, repeat
from simkit.rigid.bodies.motion import motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import simulate
from tests.physics.test_bouncing import THROW, closed_form, closed_form_derivatives
from tests.physics.test_contact import (
    EVERYTHING,
    GRAVITY,
    KEY,
    driven_collision,
    exact_restitution,
    impact,
    outgoing,
    params_of,
)
from tests.rigid.contact.two_balls import DEFAULTS, derivatives, end, two_balls, values


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
            bodies=lambda p: gather([sphere(factor * p["mass"], 0.1, p["friction"]) for factor in (1, 2)]),
            start=lambda p, bodies, key: motion_of(
                bodies,
                Vector(jnp.array([0.0, 0.22]), jnp.array([0.0, 0.05]), jnp.zeros(2)),
                velocity=Vector(p["speed"] * jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.zeros(2)),
                angular_velocity=Vector(jnp.array([3.0, -2.0]), jnp.zeros(2), jnp.array([5.0, 1.0])),
            ),
            dynamics=Compliant(substeps=16),
        )
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


@pytest.mark.usefixtures("x64")
def test_throws_with_spin_are_those_of_the_closed_form():
    names = {"launch_height": "z0", "spin": "spin0", "restitution": "restitution", "friction": "friction"}
    names |= {"gravity": "gravity", "radius": "radius0"}
    velocity = {"vx0": 4 * np.cos(np.pi / 3), "vz0": 4 * np.sin(np.pi / 3)}
    changes = {ours: THROW[name] for name, ours in names.items()} | velocity | {"x1": 50.0}
    # Five impacts within the time, before the bounces are short enough to end in rest.
    time = 3.0
    expected, slopes = np.real(closed_form(time, **THROW)), closed_form_derivatives(time, THROW)
    for steps in (300, 1500):
        seen, found = end(time, steps, **changes), derivatives(time, steps, **changes)
        assert seen["contacts"] == 0 and seen["impacts"] >= 4
        # Rounding of 1500 steps on numbers of order 1 to 10, as for the closed form's own steps.
        np.testing.assert_allclose([seen["position"][0, 0], seen["position"][0, 2] - 0.1], expected, atol=1e-11)
        for name, ours in names.items():
            slope = np.array([found[ours][0], found[ours][2] - (1 if name == "radius" else 0)])
            np.testing.assert_allclose(slope, slopes[name], rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_through_every_kind_of_event_equal_central_differences(inner):
    simulation, names = two_balls(), ["vx0", "restitution", "friction", "radius0", "frequency"]
    fixed = values(1.0, 100, **EVERYTHING)

    def ends(chosen):
        params = {**fixed, **dict(zip(names, chosen, strict=True))}
        start = simulation.init(params, jax.random.key_data(jax.random.key(0)))
        state, _ = jax.lax.scan(lambda state, _: (simulation.step(state, params), None), start, None, length=100)
        seen = simulation.observe(state, params)
        # Of a number each, so that reverse mode is one pass.
        return sum(
            jnp.vdot(jnp.cos(jnp.arange(6.0)), seen[name].ravel())
            for name in ("position", "velocity", "angular_velocity")
        )

    at = jnp.stack([fixed[name] for name in names])
    derive = jax.jit(inner(ends))
    found = jax.jit(jax.jacfwd(inner(ends)))(at)
    steps = 1e-5 * at
    differences = [(derive(at + step) - derive(at - step)) / (2 * step.sum()) for step in jnp.eye(len(names)) * steps]
    # As for first derivatives: truncation, through seven impacts.
    scale = 1 + np.abs(found).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, np.stack(differences) / scale, atol=1e-6)
    np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-10)


def test_the_laws_hold_in_float32_to_its_rounding():
    assert not jax.config.jax_enable_x64
    eps = np.finfo(np.float32).eps
    # A hundred steps, each of a rounding or two of numbers of order 1, at heights below 1 m.
    head_on = end(1.0, 100, x1=0.7, vx0=1.0, z0=0.0, z1=0.0, restitution=1.0)
    np.testing.assert_allclose(head_on["velocity"][:, 0], [0, 1], atol=10 * eps)
    np.testing.assert_allclose(head_on["position"][:, 0], [0.5, 1.2], atol=100 * eps)
    bounced = end(0.8, 100, z0=1.0, z1=0.0, gravity=GRAVITY)
    np.testing.assert_allclose(bounced["energy"] / (0.5 * GRAVITY) - 0.2, 0.64, rtol=200 * eps)
    rolls = end(1.0, 100, z0=0.0, z1=0.0, vx0=2.0, friction=0.3, gravity=GRAVITY)
    np.testing.assert_allclose(rolls["velocity"][0, 0], 10 / 7, rtol=20 * eps)
    assert rolls["position"][0, 2] == np.float32(0.1)
    assert rolls["status"] == 0


def test_derivatives_through_impacts_hold_in_float32_to_its_rounding():
    assert not jax.config.jax_enable_x64
    eps = np.finfo(np.float32).eps
    z0, e, time = 1.0, 0.8, 0.8
    t1 = np.sqrt(2 * z0 / GRAVITY)
    analytic = (e * GRAVITY * (time - 2 * t1) + GRAVITY * (time - t1)) / (GRAVITY * t1)
    found = derivatives(time, 80, z0=z0, z1=0.0, gravity=GRAVITY)["z0"][2]
    # A rounding for each of 80 steps, amplified tenfold, as in float64.
    np.testing.assert_allclose(found, analytic, rtol=800 * eps)
    changes = {"vx0": 0.5, "x1": 0.7, "vx1": -0.4, "mass1": 0.8, "amplitude": 1.5, "frequency": 6.0}
    p = {**DEFAULTS, **changes}
    found = derivatives(1.0, 100, **changes)
    # What the quadratic misses of the sine at w dt = 0.06, as in float64, and ten roundings for each of 100 steps.
    tolerance = 0.05 * 0.06**3 + 1000 * eps
    for name in ("x0", "vx0", "vx1", "mass0", "radius1", "restitution", "amplitude"):
        expected = np.imag(driven_collision({**p, name: p[name] + 1e-30j}, 1.0)) / 1e-30
        np.testing.assert_allclose(found[name][[0, 3]], expected, atol=tolerance, rtol=tolerance, err_msg=name)


def test_derivatives_of_sliding_are_those_of_coulombs_law(x64):
    time_step = 2e-3
    simulation = build("sliding_block").with_params(time_step=time_step)
    run = trajectory(simulation, 400, 400)

    def distance(params):
        return run(params, jax.random.key(0))[2]["distance"][-1]

    found = jax.jit(jax.grad(distance))(simulation.params)
    p = {name: float(value) for name, value in simulation.params.items()}
    angle = np.deg2rad(p["slope"])
    drag = p["friction"] * np.cos(angle) - np.sin(angle)
    whole = p["speed"] ** 2 / (2 * GRAVITY * drag)
    exact = {
        "speed": 2 * whole / p["speed"],
        "gravity": -whole / GRAVITY,
        "friction": -whole / drag * np.cos(angle),
        "slope": whole / drag * (p["friction"] * np.sin(angle) + np.cos(angle)) * np.pi / 180,
    }
    # The distance is exact at whole steps and linear in between, so its slope is that of a neighboring time: wrong by
    # the part dt / t of the time of sliding for the first power of it, twice that for the second.
    sliding = p["speed"] / (GRAVITY * drag)
    for name, value in exact.items():
        assert float(found[name]) == pytest.approx(value, rel=2 * time_step / sliding)


def test_derivatives_at_rest_without_friction_and_without_speed_are_finite(x64):
    simulation = build("sliding_block")
    run = trajectory(simulation, 5, 5)

    def distance(params):
        return run(params, jax.random.key(0))[2]["distance"][-1]

    slope = jax.jit(jax.grad(distance))
    for still in ({"speed": 0.0, "slope": 0.0}, {"friction": 0.0}, {"speed": 0.0, "slope": 0.0, "friction": 0.0}):
        params = simulation.with_params(**still).params
        assert all(bool(jnp.isfinite(derivative)) for derivative in slope(params).values())


CRADLE_KEY = jax.random.key_data(jax.random.key(0))


@functools.cache
def compiled(steps, incoming, wide):
    """Return the simulation and its compiled run, in double precision or not."""
    precision = "float64" if wide else "float32"
    simulation = build(load("newtons_cradle", {"incoming": incoming, "precision": precision}))
    return simulation, jax.jit(trajectory(simulation, steps, steps))


def final(steps=8, incoming=1, **params):
    simulation, run = compiled(steps, incoming, jax.config.jax_enable_x64)
    params = simulation.with_params(time_step=0.8 / steps, **params).params
    state, frames, diagnostics = run(params, CRADLE_KEY)
    assert simulation.status(state, params) == Status.OK
    return np.asarray(frames["velocity"][-1, :, 0]), jax.tree.map(lambda values: values[-1], diagnostics)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("incoming", [1, 2, 3])
@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_as_many_balls_leave_as_arrive(incoming, gap):
    velocity, diagnostics = final(incoming=incoming, gap=gap, restitution=1.0)
    # Every ball that comes in passes its velocity through all that stand: a rounding at each of up to six impacts.
    np.testing.assert_allclose(velocity, np.arange(5) >= 5 - incoming, atol=1e-14)
    assert diagnostics["impacts"] == incoming * (5 - incoming)
    np.testing.assert_allclose(diagnostics["energy"], 0.2 * incoming / 2, rtol=1e-13)
    # Touching balls, two centers of order 1 apart, may overlap by the rounding of either.
    assert diagnostics["penetration"] < 1e-15


@pytest.mark.usefixtures("x64")
def test_an_inelastic_row_transmits_part_of_the_speed():
    e = 0.9
    velocity, diagnostics = final(restitution=e)
    np.testing.assert_allclose(velocity[-1], ((1 + e) / 2) ** 4, rtol=1e-14)
    np.testing.assert_allclose(diagnostics["momentum"], 0.2, rtol=1e-14)
