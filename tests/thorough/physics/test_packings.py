"""Packings against exact results: triangular crystals of disks, and spheres."""

import jax
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from tests.molecular.packings import packing


def test_spheres_in_three_dimensions_jam_with_more_than_six_contacts(x64):
    simulation = packing(particles=64, dimension=3, force_tolerance=1e-13, minimizer="lbfgs")
    params = simulation.with_params(packing_fraction=0.75).params

    @jax.jit
    def relaxed(state, params):
        result = converge(simulation, 5000)(state, params)
        return result, simulation.diagnose(result.state, params), simulation.observe(result.state, params)

    result, end, observed = relaxed(simulation.init(params, jax.random.key(0)), params)
    assert int(result.status) == Status.CONVERGED
    # A sum of 64 volumes and a cube root: a few roundings.
    filled = np.pi / 6 * (observed["diameter"] ** 3).sum() / observed["box"].prod()
    assert float(filled) == pytest.approx(0.75, rel=1e-13)
    # Jammed above 0.648 (O'Hern et al. 2003): at least the 2 d = 6 contacts that can hold it, well above the onset.
    assert float(end["pressure"]) > 0
    assert 6 < float(end["contact_number"]) < 9

    def pressure(value):
        return relaxed(result.state, params | {"packing_fraction": value})[1]["pressure"]

    step = 1e-6
    difference = (pressure(0.75 + step) - pressure(0.75 - step)) / (2 * step)
    # Forces left at 1e-13 change the difference by 1e-8 of its value; 1e-5 leaves room for a contact that opens.
    assert float(jax.grad(pressure)(0.75)) == pytest.approx(float(difference), rel=1e-5)
