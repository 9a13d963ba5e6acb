"""Contact by events and by impulses."""

import numpy as np
import pytest

from tests.rigid.contact.two_balls import end

pytestmark = pytest.mark.usefixtures("x64")


def test_head_on_equal_balls_exchange_their_velocities():
    seen = end(1.0, 100, x1=0.7, vx0=1.0, restitution=1.0)
    np.testing.assert_allclose(seen["velocity"][:, 0], [0, 1], atol=1e-14)
    np.testing.assert_allclose(seen["position"][:, 0], [0.5, 1.2], atol=1e-13)  # 100 roundings of numbers of order 1
