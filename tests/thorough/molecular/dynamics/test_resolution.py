"""Detection of time steps that do not resolve the forces."""

import numpy as np
import pytest

from simkit.core.status import Status, failed
from tests.every import every
from tests.molecular.dynamics.test_resolution import after, lennard_jones, pair

pytestmark = pytest.mark.usefixtures("x64")


@every("distance", [0.1, 0.6])
def test_particles_that_separate_in_one_step_are_unresolved(distance):
    status, state = after(pair(lennard_jones, [[0.0, 0.0], [distance, 0.0]], 0.01), 50)
    # A caution: positions of springs are right on average up to the limit of stability, at twice the time step.
    assert status == Status.UNRESOLVED and not failed(np.asarray(status))
    assert int(state.iteration) == 50
