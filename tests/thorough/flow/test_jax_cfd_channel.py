"""The channel of jax-cfd: initial state, discrete steady flow, and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.flow.test_jax_cfd_channel import CELLS, KEY

pytest.importorskip("jax_cfd.base")


def with_profile(channel, state, profile):
    """Return a state whose velocity along the channel has this value in each row of cells."""
    u, v = state.flow
    flat = jnp.broadcast_to(jnp.asarray(profile), CELLS)
    array = jax.tree.map(lambda old: flat, u)
    return type(state)(flow=(array, v), iteration=state.iteration)


def test_discrete_poiseuille_flow_is_steady(channel, x64):
    params = channel.with_params(perturbation=0.0, forcing=0.7, reynolds=10.0, time_step=0.02).params
    y = channel.coordinates["y"]
    steady = 1.5 * 0.7 * (1 + 1 / CELLS[1] ** 2 - y**2)
    state = with_profile(channel, channel.init(params, KEY), steady)
    after = channel.step(state, params)
    # One addition to numbers of about 1.
    np.testing.assert_allclose(after.flow[0].data, np.broadcast_to(steady, CELLS), rtol=0, atol=1e-15)
    found = channel.diagnose(after, params)
    assert float(found["bulk_velocity"]) == pytest.approx(0.7 * (1 + 2 / CELLS[1] ** 2), rel=1e-14)
    assert float(found["centerline_velocity"]) == pytest.approx(1.5 * 0.7 * (1 + 1 / CELLS[1] ** 2), rel=1e-14)


def test_flow_starts_as_a_parabola_and_eddies_without_divergence(channel, x64):
    still = channel.init(channel.with_params(perturbation=0.0).params, KEY)
    eddies = channel.init(channel.with_params(initial_velocity=0.0).params, KEY)
    both = channel.init(channel.params, KEY)
    y = channel.coordinates["y"]
    np.testing.assert_allclose(still.flow[0].data[0], 1.5 * (1 - y**2), rtol=1e-15)
    np.testing.assert_allclose(both.flow[0].data, still.flow[0].data + eddies.flow[0].data, rtol=0, atol=1e-15)
    assert float(jnp.abs(eddies.flow[0].data).max()) > 0.1
    assert float(channel.diagnose(both, channel.params)["divergence"]) < 1e-14
