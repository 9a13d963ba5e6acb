"""Rows of balls on a line: as many leave as arrive, whatever the time step."""

import numpy as np
import pytest

from tests.physics.test_newtons_cradle import final


@pytest.mark.usefixtures("x64")
def test_an_inelastic_row_transmits_part_of_the_speed():
    e = 0.9
    velocity, diagnostics = final(restitution=e)
    np.testing.assert_allclose(velocity[-1], ((1 + e) / 2) ** 4, rtol=1e-14)
    np.testing.assert_allclose(diagnostics["momentum"], 0.2, rtol=1e-14)


def test_as_many_balls_leave_as_arrive_float32():
    velocity, _ = final(incoming=2, restitution=1.0)
    # The same six impacts with roundings of 6e-8.
    np.testing.assert_allclose(velocity, [0, 0, 0, 1, 1], atol=6 * np.finfo(np.float32).eps)
