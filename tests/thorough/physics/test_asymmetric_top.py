"""A free asymmetric body against Jacobi's elliptic functions: flips, period, momenta and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import asymmetric_top
from tests.physics.test_asymmetric_top import SPIN, crossings, exact, flips, history

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


def test_float32_flips_on_time():
    with jax.enable_x64(False):
        seen = history(5000, 1)
    assert seen["spin_y"].dtype == "float32"
    # Rounding of 5000 steps by 6e-8 each, grown by e^(1.7 t) up to the first flip: 3e-4 x 150 / 3 of a second at the
    # most if all had one sign; as a random walk, sqrt(5000) of them, 2e-4.
    np.testing.assert_allclose(crossings(seen), flips(), atol=3e-3)
    np.testing.assert_array_equal(np.ptp(seen["angular_momentum"]), 0)


def test_derivatives_are_those_of_the_elliptic_functions():
    steps, time_step = 400, 0.01
    simulation = asymmetric_top(integrator="runge_kutta")

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
