"""The time of a run in float32: the sum of its steps, however many they are."""

import jax.numpy as jnp
import numpy as np

from simkit.rigid import bouncing_ball
from tests.rigid.test_time import STEP, run, swung
from tests.tables import every


@every("make", [swung, bouncing_ball])
def test_the_time_is_the_sum_of_400000_steps(make):
    found = run(make(), 400_000)["time"]
    assert found.dtype == jnp.float32
    # Two roundings of float32.
    np.testing.assert_allclose(found, 400_000 * float(STEP), rtol=1.2e-7)
