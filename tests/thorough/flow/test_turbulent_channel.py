"""Turbulence between two walls at Re_tau = 180, in the smallest box that sustains it."""

import jax
import numpy as np
import pytest

from simkit.core.rollout import segment
from simkit.flow.systems.turbulent_channel import turbulent_channel


def test_minimal_channel_has_the_published_mean_profile_and_stresses():
    """A mean over t = 8 to 24; half a minute on two quiet cores.

    Published: Kim, Moin and Moser (1987) and Moser, Kim and Mansour (1999), in a box of 4 pi x 2 x 4/3 pi or wider. The
    smallest box (Jimenez and Moin 1991) has the same statistics below y+ = 40 or so, within 5 %, and fluctuates more.
    """
    simulation = turbulent_channel(settle=400)
    state = jax.jit(segment(simulation, 1200))(simulation.init(simulation.params, jax.random.key(0)), simulation.params)
    found = {**simulation.observe(state, simulation.params), **simulation.diagnose(state, simulation.params)}
    faces, centers = (simulation.coordinates[name] for name in ("y_face", "y"))

    def folded(profile):
        return (np.asarray(profile) + np.asarray(profile)[::-1])[: len(profile) // 2] / 2

    y_plus = 180 * (1 + centers[: len(centers) // 2])
    profile = folded(found["mean_velocity"])
    assert found["mean_bulk_velocity"] == pytest.approx(15.63, rel=0.05)
    assert np.interp(5, y_plus, profile) == pytest.approx(4.9, rel=0.05)
    assert np.interp(30, y_plus, profile) == pytest.approx(13.5, rel=0.08)
    assert np.sqrt(folded(found["reynolds_stress_uu"]).max()) == pytest.approx(2.66, rel=0.07)
    assert 10 < y_plus[folded(found["reynolds_stress_uu"]).argmax()] < 20
    assert np.sqrt(folded(found["reynolds_stress_vv"]).max()) == pytest.approx(0.84, rel=0.1)
    assert np.sqrt(folded(found["reynolds_stress_ww"]).max()) == pytest.approx(1.08, rel=0.1)
    # The total shear stress is -y but for what the mean flow gains and loses within 16 h/u_tau: 0.3 u_tau of 16.
    np.testing.assert_allclose(found["shear_stress"], -faces, rtol=0, atol=0.05)
    # What the pressure gradient spends is dissipated, but for the change of the kinetic energy: 5 of 16 per unit time.
    assert found["mean_dissipation"] == pytest.approx(float(found["mean_bulk_velocity"]), rel=0.03)
