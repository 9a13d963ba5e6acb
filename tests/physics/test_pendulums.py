"""Pendulums against their exact motion."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ellipk

from simkit import build, load
from simkit.core.rollout import segment, trajectory
from simkit.rigid.loads import gravity
from tests.rigid.joints.scenes import key, moment, pendulum


def check_period(precision):
    with jax.enable_x64(precision == "float64"):
        quarter = np.sqrt(moment() / (9.81 * 0.5)) * ellipk(0.5)
        steps = round(quarter / 1e-3)
        simulation = pendulum((gravity(),), angle=np.pi / 2, gravity=9.81, time_step=quarter / steps)
        start = simulation.init(simulation.params, key())
        end = jax.jit(segment(simulation, steps))(start, simulation.params)
        found = simulation.diagnose(end, simulation.params)
        # It hangs straight down after a quarter; what angle is left tells how late it is. In float32 the sum of 400
        # steps of time alone rounds by 400 eps / 2.
        late = -float(found["angle"]) / float(found["rate"])
        assert abs(late) / quarter < {"float64": 1e-5, "float32": 1e-4}[precision]
        # A few units of round-off at coordinates of 1 m.
        limit = 10 * float(jnp.finfo(precision).eps)
        assert max(float(found["joint_error"]), float(found["joint_tilt"])) < limit


def test_period_of_a_pendulum_released_at_90_degrees():
    check_period("float64")


def energies(order, time_step, steps):
    settings = {"config.method.order": order, "time_step": time_step, "precision": jnp.zeros(()).dtype.name}
    simulation = build(load("double_pendulum", settings))
    _, _, found = jax.jit(trajectory(simulation, steps, 1))(simulation.params, key())
    return {name: np.asarray(values) for name, values in found.items()}


def check_energy(precision, limit):
    # Float32 adds a random walk: some six roundings of a velocity in each of 50,000 stages, v^2 eps / 2 with v^2 about
    # 20 m^2/s^2, in units of g l; that is 7e-5 of standard deviation at the end. Measured: 1.3e-4 and 1.5e-4.
    with jax.enable_x64(precision == "float64"):
        found = energies(4, 1e-3, 10_000)
        assert np.max(np.abs(found["energy"])) / 9.81 < limit
        round_off = 10 * float(jnp.finfo(precision).eps)
        # Coordinates reach 2 m and velocities 8 m/s.
        assert found["joint_error"].max() < 2 * round_off and found["joint_tilt"].max() < round_off
        assert found["joint_error_rate"].max() < 8 * round_off


def test_double_pendulum_keeps_its_energy_for_10_s_at_1_ms():
    check_energy("float64", 1e-4)
