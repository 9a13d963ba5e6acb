"""Derivatives through bounces against a closed form, evaluated event by event and differentiated without JAX."""

import jax
import numpy as np
import pytest

from tests.physics.test_bouncing_derivatives import THROW, closed_form_derivatives, simulated

pytestmark = pytest.mark.usefixtures("x64")


def test_gradient_descent_finds_the_launch_speed_from_anywhere_in_its_bounds():
    # x(v) rises monotonically over the bounds, so the squared distance has one minimum and no flat part.
    speeds = np.linspace(1.0, 10.0, 181)
    slopes = [closed_form_derivatives(3.6, {**THROW, "launch_speed": speed})["launch_speed"][0] for speed in speeds]
    assert min(slopes) > 1.5 and max(slopes) < 2.5
    run = simulated(3.6, 36)

    @jax.jit
    def descend(speed):
        loss = jax.grad(lambda speed: (run({**THROW, "launch_speed": speed})[0] - 6.5) ** 2)
        # With slopes s of 1.5 to 2.5 s, steps of 0.1 shrink the error by |1 - 0.2 s^2| <= 0.55 each.
        return jax.lax.fori_loop(0, 40, lambda _, speed: speed - 0.1 * loss(speed), speed)

    for start in (1.0, 4.0, 10.0):
        # 0.55^40 of at most 6 m/s.
        assert abs(descend(start) - 5.1348603576854) < 1e-9
