"""Sensors of bodies in contact."""

import jax
import numpy as np

from simkit.rigid import mjcf
from tests.rigid.models.test_sensors import STANDING, ZONES


def test_a_body_at_rest_feels_its_weight():
    """Sensors of touch, of the force between bodies, and of acceleration, after 0.1 s on a floor."""
    sites = "".join(f'<site name="{name}" {shape}/>' for name, (shape, _) in ZONES.items())
    touch = "".join(f'<touch name="{name}" site="{name}"/>' for name in ZONES)
    more = '<force name="between" site="above"/><accelerometer name="up" site="above"/>'
    with jax.enable_x64(True):
        simulation = mjcf(STANDING.format(sites=sites, sensors=touch + more), substeps=50)
        state = jax.jit(simulation.step)(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
        found = {**simulation.observe(state, simulation.params), **simulation.diagnose(state, simulation.params)}
    for name, (_, meets) in ZONES.items():
        np.testing.assert_allclose(found[f"sensors.{name}"], 5 * 9.81 * meets, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(found["sensors.between"], [0, 0, 3 * 9.81], atol=1e-5)
    np.testing.assert_allclose(found["sensors.up"], [0, 0, 9.81], atol=1e-5)
