"""Dynamics: velocity Verlet, velocities of the start, a fluid, and combinations and settings that are refused."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.rollout import trajectory
from simkit.molecular.dynamics import (
    langevin,
)
from simkit.molecular.interactions.interaction import user_energy
from tests.molecular.dynamics.moving import floats
from tests.molecular.dynamics.test_dynamics import ISOTROPIC


def test_temperature_and_volume_of_pairs_on_springs_are_exact_at_a_long_time_step(x64):
    # Pairs (0, N), (1, N + 1), ... on springs of omega h = 1, without an effect of the cell: an ideal gas of N centers
    # of mass. Positions in the middle of a step and velocities at its end would be off by (omega h)^2 / 4 = 1/4.
    count, temperature, pressure = 60, 2.0, 0.5
    springs = user_energy(lambda x, cell, params: params["stiffness"] / 2 * jnp.sum((x[:count] - x[count:]) ** 2))
    given = floats(time_step=0.1, mass=2.0, stiffness=100.0, friction=2.0, temperature=temperature)
    gas = langevin(
        springs,
        lambda params, key: 0.1 * jax.random.normal(key, (2 * count, 3)),
        params=given | floats(pressure=pressure, compressibility=2.0, barostat_time=2.0),
        barostat=ISOTROPIC,
        cell=lambda params: jnp.full(3, (count * temperature / pressure) ** (1 / 3)),
    )
    _, _, found = jax.jit(trajectory(gas, 4000, 10))(gas.params, jax.random.key(2))
    means = {name: float(np.mean(found[name][40:])) for name in ("temperature", "volume", "pressure")}
    # 360 degrees of freedom: a spread of 7 %, over the root of 400 samples.
    np.testing.assert_allclose(means["temperature"], temperature, rtol=0.01)
    # P(V) ~ V^N exp(-p V / T), of spread 13 %, over the root of a hundred relaxation times.
    np.testing.assert_allclose(means["volume"], (count + 1) * temperature / pressure, rtol=0.04)
    np.testing.assert_allclose(means["pressure"], pressure, rtol=0.04)
