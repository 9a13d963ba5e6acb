"""Longer tests of eddies."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.flow.flows import CHANNELS, some
from tests.flow.test_eddies import of
from tests.tables import every

pytestmark = pytest.mark.usefixtures("x64")


@every(some(CHANNELS, "even", "stretched"))
def test_eddies_are_solenoidal_and_have_unit_root_mean_square_speed(walls):
    velocity, spread, energy, _ = of(walls)
    # Differences of a stream function cancel exactly but for rounding, here of speeds below 10 over cells above 0.1.
    assert jnp.max(jnp.abs(spread)) < 1e-13
    assert 2 * energy == pytest.approx(1, rel=1e-14)
    assert np.all(np.asarray(velocity[1])[:, [0, -1]] == 0)
