"""Free bodies: the asymmetric top and the projectile."""

import functools
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipj, ellipk, ellipkinc

from simkit.core.rollout import trajectory
from simkit.scenario.build import build
from simkit.scenario.catalog import find_scenario
from simkit.scenario.made_in_python import load

pytestmark = pytest.mark.usefixtures("x64")


SCENARIO = Path(__file__).parents[2] / "scenarios" / "rigid" / "asymmetric_top.toml"
MOMENTS, SPIN = (1.0, 2.0, 3.0), (0.1, 3.0, 0.1)


def elliptic(spin=SPIN, moments=MOMENTS):
    """Return amplitudes, rate, modulus k^2 and phase at the start, for I_x < I_y < I_z and L^2 > 2 E I_y (exact)."""
    a, b, c = moments
    energy2, square = np.dot(moments, np.square(spin)), np.dot(np.square(moments), np.square(spin))
    assert a < b < c and square > energy2 * b
    over_c, over_a = energy2 * c - square, square - energy2 * a
    x, y, z = np.sqrt([over_c / (a * (c - a)), over_c / (b * (c - b)), over_a / (c * (c - a))])
    rate, k2 = np.sqrt((c - b) * over_a / (a * b * c)), (b - a) * over_c / ((c - b) * over_a)
    return (x, y, z), rate, k2, ellipkinc(np.arctan2(spin[1] / y, spin[0] / x), k2)


def exact(time, spin=SPIN):
    """Return (omega_x, omega_y, omega_z, period) by Jacobi's elliptic functions (Landau and Lifshitz, 37)."""
    (x, y, z), rate, k2, start = elliptic(spin)
    sn, cn, dn, _ = ellipj(rate * time + start, k2)
    return x * cn, y * sn, z * dn, 4 * ellipk(k2) / rate


def flips():
    """Return when omega_y vanishes: half a period apart."""
    _, rate, k2, start = elliptic()
    quarter = ellipk(k2)
    return (2 * quarter - start) / rate, (4 * quarter - start) / rate


@functools.cache
def freely(name, integrator):
    """Return a shipped scenario with another integrator."""
    return build(load(name, {"config.method": {"name": "free", "integrator": integrator}}))


@functools.cache
def compiled(steps, every, integrator="velocity_verlet"):
    return jax.jit(trajectory(freely("asymmetric_top", integrator), steps, every))


def history(steps, every, integrator="velocity_verlet", **params):
    simulation = freely("asymmetric_top", integrator).with_params(**params)
    return jax.tree.map(np.asarray, compiled(steps, every, integrator)(simulation.params, jax.random.key(0))[2])


def crossings(seen):
    """Return the times at which omega_y changes sign, between two steps by a straight line."""
    t, w = seen["time"], seen["spin_y"]
    (at,) = np.nonzero(w[:-1] * w[1:] < 0)
    return t[at] - w[at] * (t[at + 1] - t[at]) / (w[at + 1] - w[at])


def test_the_exact_solution_has_the_published_period_and_flips():
    np.testing.assert_allclose(exact(0.0)[3], 10.247047, atol=5e-7)
    np.testing.assert_allclose(exact(0.0)[:3], SPIN, rtol=1e-12)
    # 2.9415 and 8.0651 s are known to half a millisecond.
    np.testing.assert_allclose(flips(), [2.9415, 8.0651], atol=5e-4)


def test_the_intermediate_axis_flips_at_the_exact_times():
    seen = history(5000, 1)
    found = crossings(seen)
    assert len(found) == 2
    # Of second order in time steps of 2 ms: 3 and 6 microseconds were measured.
    np.testing.assert_allclose(found, flips(), atol=1e-5)
    np.testing.assert_array_equal(np.ptp(seen["angular_momentum"]), 0)
    energy = np.abs(seen["energy"] / seen["energy"][0] - 1)
    assert energy.max() < 1e-6


def test_the_numbers_in_the_scenario_file_are_those_of_the_exact_solution():
    scenario = tomllib.loads(SCENARIO.read_text())
    time_step, steps = find_scenario("asymmetric_top").parameters["time_step"].default, scenario["run"]["steps"]
    entries = scenario["validation"]
    (end,) = [entry for entry in entries if entry.get("quantity") == "spin_y" and "set" not in entry]
    np.testing.assert_allclose(end["expected"], exact(steps * time_step)[1], rtol=1e-9)
    steps_to_flip = [entry["set"]["time_step"] for entry in entries if "set" in entry]
    np.testing.assert_allclose(np.array(steps_to_flip) * steps, flips(), rtol=1e-9)


PROJECTILE = Path(__file__).parents[2] / "scenarios" / "rigid" / "projectile.toml"
THROW = {
    "launch_speed": 8.0,
    "launch_angle": 60.0,
    "launch_height": 1.5,
    "attitude": 30.0,
    "spin": 6.0,
    "drag": 0.02,
    "spin_drag": 0.0005,
    "mass": 0.4,
    "radius": 0.05,
    "length": 0.6,
    "gravity": 9.81,
    "target_x": 5.0,
    "target_height": 2.0,
}


def exact_flight(time, launch_speed, launch_angle, launch_height, attitude, spin, drag, spin_drag, mass, radius, length,
                 gravity, target_x, target_height):  # fmt: skip
    """Return x, height, attitude and miss; analytic in every argument, so that complex steps give its derivatives."""
    angle, half = np.pi / 180 * launch_angle, length / 2
    ball = 4 / 3 * radius / (length + 4 / 3 * radius)
    cylinder_part = (1 - ball) * (radius**2 / 4 + length**2 / 12)
    moment = mass * (cylinder_part + ball * (83 / 320 * radius**2 + (half + 3 / 8 * radius) ** 2))
    decay, spin_decay = mass / drag, moment / spin_drag
    way = decay * (1 - np.exp(-time / decay))
    x = launch_speed * np.cos(angle) * way
    height = launch_height + (launch_speed * np.sin(angle) + gravity * decay) * way - gravity * decay * time
    turned = np.pi / 180 * attitude + spin * spin_decay * (1 - np.exp(-time / spin_decay))
    aside = x + half * np.sin(turned) - target_x
    above = height + half * np.cos(turned) - target_height
    return x, height, turned, np.sqrt(aside**2 + above**2)


@functools.cache
def compiled_flight(steps, integrator="runge_kutta"):
    return jax.jit(trajectory(freely("projectile", integrator), steps, 1))


def flight(steps, integrator="runge_kutta", **params):
    simulation = freely("projectile", integrator).with_params(**params)
    return jax.tree.map(np.asarray, compiled_flight(steps, integrator)(simulation.params, jax.random.key(0))[2])


@pytest.mark.parametrize("integrator", ["runge_kutta", "velocity_verlet"])
def test_without_drag_the_center_follows_the_parabola_at_any_time_step(integrator):
    for time_step in (1e-2, 1e-1):
        seen = flight(100, integrator, drag=0.0, spin_drag=0.0, time_step=time_step)
        t = seen["time"]
        # A hundred roundings of numbers of up to 500; at 1 s 1e-10 is asked for.
        rounding = 100 * 1.1e-16 * max(1.0, 5 * t[-1] ** 2)
        np.testing.assert_allclose(seen["height"], 1.5 + 8 * np.sin(np.pi / 3) * t - 4.905 * t**2, atol=rounding)
        np.testing.assert_allclose(seen["position_x"], 4 * t, atol=rounding)
        np.testing.assert_allclose(np.unwrap(seen["attitude"]), np.pi / 6 + 6 * t, atol=100 * 1e-15)
        np.testing.assert_allclose(seen["energy"], seen["energy"][0], atol=0.4 * 9.81 * rounding * 100)


def test_with_drag_speed_and_spin_decay_exponentially():
    seen = flight(100, drag=0.1, spin_drag=0.01)
    x, height, turned, miss = exact_flight(seen["time"], **{**THROW, "drag": 0.1, "spin_drag": 0.01})
    # (dt c / m)^4 / 120 with dt c_r / I = 0.007: 1e-11 of 6 radians.
    np.testing.assert_allclose(seen["position_x"], x, atol=1e-10)
    np.testing.assert_allclose(seen["height"], height, atol=1e-10)
    np.testing.assert_allclose(np.unwrap(seen["attitude"]), turned, atol=1e-10)
    np.testing.assert_allclose(seen["miss"], miss, atol=1e-10)


@functools.cache
def end_and_slopes():
    """Return a compiled ``throw -> (x, height, attitude, miss), derivatives`` after 1 s."""
    simulation = freely("projectile", "runge_kutta")

    def end(params):
        last = trajectory(simulation, 100, 100)({**simulation.params, **params}, jax.random.key(0))[2]
        numbers = jnp.stack([last[name][-1] for name in ("position_x", "height", "attitude", "miss")])
        return numbers, numbers

    slopes_and_end = jax.jit(jax.jacfwd(end, has_aux=True))

    def run(throw):
        slopes, numbers = slopes_and_end({name: jnp.array(value, dtype=float) for name, value in throw.items()})
        return np.asarray(numbers), jax.tree.map(np.asarray, slopes)

    return run


def test_every_derivative_is_that_of_the_closed_form():
    _, slopes = end_and_slopes()(THROW)
    for name in THROW:
        expected = np.imag(exact_flight(1.0, **{**THROW, name: THROW[name] + 1e-30j})) / 1e-30
        # The error of the method, 1e-12, times a spin or a moment over the drag at most.
        np.testing.assert_allclose(slopes[name], expected, rtol=1e-8, atol=1e-9, err_msg=name)


def test_the_numbers_in_the_scenario_file_are_those_of_the_closed_form():
    entries = tomllib.loads(PROJECTILE.read_text())["validation"]
    stated = {entry.get("derivative", entry.get("quantity")): entry["expected"] for entry in entries}
    end = dict(zip(("x", "height", "attitude", "miss"), exact_flight(1.0, **THROW), strict=True))
    assert np.isclose(stated["miss"], end["miss"], rtol=1e-14)
    for name, index in (("launch_speed", 3), ("spin", 3), ("drag", 1)):
        slope = np.imag(exact_flight(1.0, **{**THROW, name: THROW[name] + 1e-30j})[index]) / 1e-30
        assert np.isclose(stated[name], slope * (2 * end["miss"] if index == 3 else 1), rtol=1e-13)  # of the square
