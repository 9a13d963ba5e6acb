"""Billiards break: conserved and dissipated quantities, and the derivative of a small rack."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.rigid import billiards_break

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key_data(jax.random.key(0))


def test_the_break_of_a_full_rack_never_gains_energy_and_keeps_all_balls_on_the_table():
    simulation = billiards_break()
    state, frames, seen = jax.jit(trajectory(simulation, 400, 1))(simulation.params, KEY)
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
    _, _, seen = jax.jit(trajectory(simulation, 42, 42))(simulation.params, KEY)
    assert seen["impacts"][-1] > 15
    np.testing.assert_allclose(seen["momentum"][-1], 0.17 * 7.0, rtol=1e-13)


def test_derivatives_of_a_small_break_equal_central_differences():
    simulation = billiards_break(rows=2, impacts=12)
    names = ("speed", "angle", "gap", "restitution", "ball_friction", "cloth_friction", "spin", "radius")

    def end(chosen):
        _, _, seen = trajectory(simulation, 15, 15)({**simulation.params, "time_step": step, **chosen}, KEY)
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
