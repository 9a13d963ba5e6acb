"""Free, spinning and bouncing bodies against exact solutions."""

import functools
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ellipj, ellipk

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid import billiards_break, bouncing_ball
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.physics.test_bouncing import KEY
from tests.physics.test_free_bodies import SPIN, exact, freely, history

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize(("integrator", "order"), [("velocity_verlet", 2), ("runge_kutta", 4)])
def test_the_angular_velocity_converges_to_the_elliptic_functions(integrator, order):
    errors = []
    for factor in (1, 2):
        seen = history(500 * factor, 50 * factor, integrator, time_step=0.02 / factor)
        truth = np.stack(exact(seen["time"])[:3])
        errors.append(np.abs(np.stack([seen["spin_x"], seen["spin_y"], seen["spin_z"]]) - truth).max())
    # As L stays what it is, errors of the fourth-order method are of higher order still at these time steps.
    assert np.log2(errors[0] / errors[1]) > order - 0.1, errors
    # The step of 10 ms: 8e-4 and 1e-6 were measured.
    assert errors[1] < {2: 1e-3, 4: 2e-6}[order]


def test_rotation_about_the_other_axes_is_stable():
    for axis in ("spin_x", "spin_z"):
        rates = {"spin_x": 0.1, "spin_y": 0.1, "spin_z": 0.1, axis: 3.0}
        seen = history(1000, 10, time_step=0.01, **rates)
        # The exact maximum excursion is of the order of the disturbance: a few tenths rad/s from 3.
        assert seen[axis].min() > 2.95


def test_derivatives_are_those_of_the_elliptic_functions():
    steps, time_step = 400, 0.01
    simulation = freely("asymmetric_top", "runge_kutta")

    def end(params):
        last = trajectory(simulation, steps, steps)({**simulation.params, **params}, jax.random.key(0))[2]
        return jnp.stack([last[name][-1] for name in ("spin_x", "spin_y", "spin_z")])

    at = {"spin_x": SPIN[0], "spin_y": SPIN[1], "spin_z": SPIN[2], "time_step": time_step}
    slopes = jax.jit(jax.jacfwd(end))({name: jnp.array(value) for name, value in at.items()})
    time, step = steps * time_step, 1e-6
    for index, name in enumerate(("spin_x", "spin_y", "spin_z")):
        change = step * np.eye(3)[index]
        above, below = (np.array(exact(time, np.array(SPIN) + sign * change)[:3]) for sign in (1, -1))
        # Runge-Kutta at 10 ms errs by 1e-6 or so of derivatives of up to 30; the difference by 1e-10 over the step.
        np.testing.assert_allclose(slopes[name], (above - below) / (2 * step), atol=1e-3)
    # A longer time step is a later end: Euler's equations.
    x, y, z, _ = exact(time)
    rates = np.array([-y * z, z * x, -x * y / 3])
    np.testing.assert_allclose(slopes["time_step"], steps * rates, rtol=1e-4)


SCENARIO = Path(__file__).parents[3] / "scenarios" / "rigid" / "heavy_top.toml"
MASS, WIDTH, THICKNESS, ARM, GRAVITY, TILT, TOP_SPIN = 0.5, 0.2, 0.04, 0.15, 9.81, 50.0, 80.0
AXIAL = MASS * WIDTH**2 / 6
ACROSS = MASS * (WIDTH**2 + THICKNESS**2) / 12 + MASS * ARM**2
PULL = MASS * GRAVITY * ARM
DURATION = 2.0


def exact_top(times, precession_rate=0.0, spin=TOP_SPIN):
    """Return tilt and angle of precession of a top released at `TILT` with no rate of nutation, at some times.

    u'^2 = (1 - u^2)(alpha - beta u) - (b - a u)^2 for u = cos(tilt), a cubic with roots u1 <= u <= u2 < u3.
    """
    start = np.cos(np.deg2rad(TILT))
    a = AXIAL * spin / ACROSS
    b = precession_rate * (1 - start**2) + a * start
    beta = 2 * PULL / ACROSS
    alpha = precession_rate**2 * (1 - start**2) + beta * start
    u1, u2, u3 = np.sort(np.roots([beta, -alpha - a**2, 2 * a * b - beta, alpha - b**2]).real)
    rate, k2 = np.sqrt(beta * (u3 - u1)) / 2, (u2 - u1) / (u3 - u1)
    # The top is let go where its nutation turns: at the upper root, or at the lower one if it precesses too fast.
    phase = ellipk(k2) if abs(start - u2) < abs(start - u1) else 0.0

    def u(t):
        return u1 + (u2 - u1) * ellipj(rate * t + phase, k2)[0] ** 2

    def precession(t):
        return quad(lambda s: (b - a * u(s)) / (1 - u(s) ** 2), 0, t, epsabs=1e-13, epsrel=1e-13, limit=500)[0]

    return np.arccos(u(np.asarray(times))), np.array([precession(t) for t in np.atleast_1d(times)])


@functools.cache
def heavy_top(order, precision="float64"):
    values = {"config.method.order": order, "config.method.iterations": 12, "precision": precision}
    return build(load("heavy_top", values))


@functools.cache
def compiled(steps, order, precision):
    return jax.jit(trajectory(heavy_top(order, precision), steps, steps // 20))


def top_history(time_step, order=4, duration=DURATION, precision="float64", **params):
    simulation = heavy_top(order, precision).with_params(time_step=time_step, **params)
    steps = round(duration / time_step)
    return jax.tree.map(np.asarray, compiled(steps, order, precision)(simulation.params, jax.random.key(0))[2])


def errors(seen, **start):
    tilt, precession = exact_top(seen["time"], **start)
    turned = np.angle(np.exp(1j * (seen["precession"] - precession)))
    return np.abs(seen["tilt"] - tilt).max(), np.abs(turned).max()


@pytest.mark.parametrize(("order", "error"), [(2, 2e-3), (4, 1e-7)])
def test_nutation_and_precession_converge_to_the_exact_solution(order, error):
    coarse, fine = (np.array(errors(top_history(time_step, order))) for time_step in (0.002, 0.001))
    assert (fine < error).all()
    np.testing.assert_allclose(np.log2(coarse / fine), order, atol=0.1)


def test_energy_and_both_momenta_are_conserved():
    seen = top_history(0.002)
    # p_phi: no torque about z, so only 1000 roundings of 1e-16. p_psi: the force in the pivot has no moment about it.
    np.testing.assert_allclose(seen["vertical_momentum"], seen["vertical_momentum"][0], rtol=1e-12)
    np.testing.assert_allclose(seen["axial_momentum"], AXIAL * TOP_SPIN, rtol=1e-12)
    # Of fourth order, and without drift: the tilt errs by 1e-6.
    spread = np.abs(seen["energy"] - seen["energy"][0])
    assert spread.max() < 1e-5 * PULL
    np.testing.assert_allclose(seen["momentum"][0], 0, atol=1e-15)


def test_the_numbers_in_the_scenario_file_are_those_of_the_exact_solution():
    scenario = tomllib.loads(SCENARIO.read_text())
    stated = {entry["quantity"]: entry["expected"] for entry in scenario["validation"] if "set" not in entry}
    tilt, precession = exact_top([DURATION])
    assert np.isclose(stated["tilt"], tilt[0], rtol=1e-9)
    assert np.isclose(np.exp(1j * stated["precession"]), np.exp(1j * precession[0]), rtol=1e-8)


@pytest.mark.parametrize("root", [-1, 1])
def test_at_either_steady_rate_the_top_precesses_without_nutation(root):
    cosine, kept = np.cos(np.deg2rad(TILT)), AXIAL * TOP_SPIN
    rate = (kept + root * np.sqrt(kept**2 - 4 * ACROSS * cosine * PULL)) / (2 * ACROSS * cosine)
    seen = top_history(0.0005, duration=0.5, precession_rate=rate)
    # Of fourth order: far below (dt rate)^2 / 12 with the nutation of 21/s or the fast precession of 31/s, 2e-5.
    assert np.abs(seen["nutation"]).max() < 1e-6
    turned = np.angle(np.exp(1j * (seen["precession"] - rate * seen["time"])))
    assert np.abs(turned).max() < 2e-4 * 0.5 * abs(rate)


def test_float32_follows_the_top_to_its_rounding():
    with jax.enable_x64(False):
        single = top_history(0.002, precision="float32")
        assert single["tilt"].dtype == "float32"
    double = top_history(0.002)
    # 1000 steps turn by 0.16 rad each, every one with a few roundings of 6e-8.
    np.testing.assert_allclose(single["tilt"], double["tilt"], atol=1000 * 6e-8 * 2)
    np.testing.assert_allclose(single["axial_momentum"], double["axial_momentum"], rtol=1000 * 6e-8 * 2)


def test_the_derivative_of_the_tilt_is_that_of_the_exact_solution():
    simulation, time_step = heavy_top(4), 0.002
    times = np.array([0.3])

    def tilt(spin):
        params = {**simulation.params, "spin": spin, "time_step": jnp.array(time_step)}
        return trajectory(simulation, 150, 150)(params, jax.random.key(0))[2]["tilt"][-1]

    slope = float(jax.jit(jax.jacfwd(tilt))(jnp.array(TOP_SPIN)))
    difference = (exact_top(times, spin=TOP_SPIN + 1e-3)[0] - exact_top(times, spin=TOP_SPIN - 1e-3)[0])[0] / 2e-3
    # The method's error of 1e-7 in the tilt at 80 rad/s; the difference errs by 1e-12 over 1e-3.
    np.testing.assert_allclose(slope, difference, rtol=1e-5)


def test_any_number_of_impacts_in_one_step_equals_small_steps():
    draws = np.random.default_rng(0)
    count = 200
    throws = {
        "launch_speed": draws.uniform(0, 10, count),
        "launch_angle": draws.uniform(-90, 90, count),
        "launch_height": draws.uniform(0, 2, count) ** 3,
        "spin": draws.uniform(-300, 300, count),
        "restitution": draws.uniform(0, 1, count),
        "friction": draws.uniform(0, 1, count) ** 2,
    }

    def end(steps):
        simulation = bouncing_ball().with_params(time_step=4.0 / steps)
        axes = {name: 0 if name in throws else None for name in simulation.params}
        params = {**simulation.params, **{name: jnp.asarray(values) for name, values in throws.items()}}
        run = jax.vmap(lambda params: trajectory(simulation, steps, steps)(params, KEY), in_axes=(axes,))
        return jax.jit(run)(params)[1]

    once, often = end(1), end(500)
    for name in ("position", "velocity", "orientation"):
        # Positions of 10 m, turns of 1000 rad: 500 roundings of 1e-13, which an impact amplifies a little.
        np.testing.assert_allclose(once[name][:, -1], often[name][:, -1], atol=1e-10)


BREAK_KEY = jax.random.key_data(jax.random.key(0))


def test_the_break_of_a_full_rack_never_gains_energy_and_keeps_all_balls_on_the_table():
    simulation = billiards_break()
    state, frames, seen = jax.jit(trajectory(simulation, 400, 1))(simulation.params, BREAK_KEY)
    assert simulation.status(state, simulation.params) == Status.OK
    assert seen["impacts"][-1] > 100
    # Roundings of the potential energy of 16 balls, 0.8 J, over a step of many impacts.
    assert np.diff(seen["energy"]).max() < 1e-14
    assert np.max(seen["penetration"]) < 1e-15
    x, y, z = np.moveaxis(np.asarray(frames["position"]), -1, 0)
    radius = 0.028575
    for place, size in ((x, 2.54), (y, 1.27)):
        assert place.min() > radius - 1e-15 and place.max() < size - radius + 1e-15
    assert z.min() > radius - 1e-15


def test_impacts_between_balls_alone_conserve_momentum():
    # Smooth cloth and balls, no cushion is reached within 0.04 s of the break at 0.17 s.
    simulation = billiards_break().with_params(ball_friction=0.0, cloth_friction=0.0)
    _, _, seen = jax.jit(trajectory(simulation, 42, 42))(simulation.params, BREAK_KEY)
    assert seen["impacts"][-1] > 15
    np.testing.assert_allclose(seen["momentum"][-1], 0.17 * 7.0, rtol=1e-13)


def test_derivatives_of_a_small_break_equal_central_differences():
    simulation = billiards_break(rows=2, impacts=12)
    names = ("speed", "angle", "gap", "restitution", "ball_friction", "cloth_friction", "spin", "radius")

    def end(chosen):
        _, _, seen = trajectory(simulation, 15, 15)({**simulation.params, "time_step": step, **chosen}, BREAK_KEY)
        return jnp.stack([seen[name][-1] for name in ("cue_x", "cue_y", "apex_x")])

    step = jnp.asarray(0.02)
    chosen = {name: simulation.params[name] for name in names}
    forward, run = jax.jit(jax.jacfwd(end))(chosen), jax.jit(end)
    for name in names:
        h = 1e-6 * (abs(float(chosen[name])) or 1.0)
        above, below = (run({**chosen, name: chosen[name] + change}) for change in (h, -h))
        # Roundings of 1e-15, a thousand times larger after a few impacts, over h; and truncation by as much as that.
        scale = 1e-12 / h + 1e-6 * (1 + np.abs(forward[name]).max())
        np.testing.assert_allclose((above - below) / (2 * h), forward[name], atol=scale, err_msg=name)
