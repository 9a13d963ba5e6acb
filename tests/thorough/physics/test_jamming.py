"""The onset of jamming: its published density, and isostatic contact numbers."""

import numpy as np
import pytest

from tests.physics.test_jamming import onsets


def test_larger_packings_jam_at_the_published_density(x64):
    found = onsets(512, 8, 1e-5)
    # The published tolerance; the mean of eight has a standard error of 0.0006, and 1e-5 is 3e-5 above the onset.
    assert found["packing_fraction"].mean() == pytest.approx(0.842, abs=0.003)
    np.testing.assert_allclose(found["contact_number"], 4, atol=0.05)
