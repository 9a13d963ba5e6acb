"""Derivatives through impacts of balls with planes and each other, against analysis and central differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.rigid import bouncing_ball
from tests.physics.test_bouncing_derivatives import closed_form, closed_form_derivatives
from tests.physics.test_event_derivatives import EVERYTHING, GRAVITY, driven_collision
from tests.rigid.contact.two_balls import DEFAULTS, derivatives, end, two_balls, values


@pytest.mark.usefixtures("x64")
def test_throws_with_spin_are_those_of_the_closed_form():
    throw = {
        "launch_speed": 4.0,
        "launch_angle": 60.0,
        "launch_height": 1.0,
        "spin": -30.0,
        "restitution": 0.75,
        "friction": 0.06,
        "radius": 0.1,
        "gravity": 9.81,
    }
    names = {"launch_height": "z0", "spin": "spin0", "restitution": "restitution", "friction": "friction"}
    names |= {"gravity": "gravity", "radius": "radius0"}
    velocity = {"vx0": 4 * np.cos(np.pi / 3), "vz0": 4 * np.sin(np.pi / 3)}
    changes = {ours: throw[name] for name, ours in names.items()} | velocity | {"x1": 50.0}
    # Five impacts within the time, before the bounces are short enough to end in rest.
    time = 3.0
    expected, slopes = np.real(closed_form(time, **throw)), closed_form_derivatives(time, throw)
    for steps in (300, 1500):
        seen, found = end(time, steps, **changes), derivatives(time, steps, **changes)
        assert seen["contacts"] == 0 and seen["impacts"] >= 4
        # Rounding of 1500 steps on numbers of order 1 to 10, as for the closed form's own steps.
        np.testing.assert_allclose([seen["position"][0, 0], seen["position"][0, 2] - 0.1], expected, atol=1e-11)
        for name, ours in names.items():
            slope = np.array([found[ours][0], found[ours][2] - (1 if name == "radius" else 0)])
            np.testing.assert_allclose(slope, slopes[name], rtol=1e-10, atol=1e-10, err_msg=name)
    simulation = bouncing_ball()
    assert set(throw) <= set(simulation.params)


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
