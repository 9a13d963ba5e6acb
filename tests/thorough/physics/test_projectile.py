"""A thrown club against the closed form of its flight, with and without drag."""

import jax
import numpy as np
import pytest

from tests.physics.test_projectile import THROW, end_and_slopes, history

pytestmark = pytest.mark.usefixtures("x64")


def test_float32_agrees_to_its_rounding():
    double = history(100)
    with jax.enable_x64(False):
        single = history(100)
    for name in ("position_x", "height", "miss"):
        # A hundred roundings of 6e-8 of numbers of up to 5.
        np.testing.assert_allclose(single[name], double[name], atol=100 * 6e-8 * 5)


def test_derivatives_lead_to_the_throw_whose_head_meets_the_target():
    throw = {**THROW, "target_x": 4.0, "target_height": 3.6}
    for _ in range(8):  # Newton's method for speed and spin: quadratic, down to rounding
        (x, height, lean, _), slopes = end_and_slopes()(throw)
        aside = np.array([x + 0.3 * np.sin(lean) - 4.0, height + 0.3 * np.cos(lean) - 3.6])
        turning = 0.3 * np.array([np.cos(lean), -np.sin(lean)])
        columns = [slopes[name][:2] + turning * slopes[name][2] for name in ("launch_speed", "spin")]
        change = np.linalg.solve(np.stack(columns, axis=1), -aside)
        throw |= {"launch_speed": throw["launch_speed"] + change[0], "spin": throw["spin"] + change[1]}
    assert end_and_slopes()(throw)[0][3] < 1e-12
