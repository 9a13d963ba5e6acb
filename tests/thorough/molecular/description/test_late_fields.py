"""Thermostats beside fields that set in later, and of one particle alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import molecular
from simkit.core.rollout import trajectory

pytestmark = pytest.mark.usefixtures("x64")


def bound(method, count, field):
    """Particles at the corners of a line in a trap, in a bath of temperature 1."""
    return molecular.system(
        dimension=3,
        particles={"A": {"count": count}},
        start={"positions": [[0.5 * i, 0.1 * i, 0.0] for i in range(count)]},
        fields=[{"energy": field}],
        interactions=[{"energy": "0.5*(r - 1)**2"}] if count > 1 else [],
        task="dynamics",
        dynamics={"method": method, "time_step": 0.05, "thermostat_time": 0.2, "temperature": "warm"},
        parameters={"warm": 1.0},
    )


@pytest.mark.parametrize("method", ["bussi", "nose_hoover"])
def test_a_field_that_sets_in_later_is_not_taken_for_conserved_momentum(method):
    """Had the center of mass been set apart at the start, it would stay cold: T (d N - d)/(d N), here a half."""
    simulation = bound(method, 2, "where(time > 1, 1, 0)*(x**2 + 1.3*y**2 + 1.7*z**2)")
    keys = jax.random.split(jax.random.key(0), 64)
    run = jax.jit(jax.vmap(trajectory(simulation, 1000, 20), in_axes=(None, 0)))
    temperature = run(simulation.params, keys)[2]["temperature"][:, 10:]
    # 6 degrees of freedom scatter by sqrt(2/6) each time; 64 runs of 40 samples, a fifth of them independent.
    assert float(jnp.mean(temperature)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 6 / (64 * 8)))


def test_one_particle_alone_has_all_its_degrees_of_freedom():
    simulation = bound("bussi", 1, "x**2 + y**2 + z**2")
    state = simulation.init(simulation.params, jax.random.key(1))
    assert float(state.freedom.count) == 3
    assert simulation.diagnose(state, simulation.params)["temperature"] == pytest.approx(
        float(jnp.sum(state.velocity**2)) / 3
    )
