"""Packings against exact results: triangular crystals of disks, and spheres."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from tests.molecular.packings import packing
from tests.physics.test_jamming import onsets


def test_larger_packings_jam_at_the_published_density(x64):
    found = onsets(512, 8, 1e-5)
    # The published tolerance; the mean of eight has a standard error of 0.0006, and 1e-5 is 3e-5 above the onset.
    assert found["packing_fraction"].mean() == pytest.approx(0.842, abs=0.003)
    np.testing.assert_allclose(found["contact_number"], 4, atol=0.05)


COLUMNS, ROWS = 26, 30
DENSEST = np.pi / (2 * np.sqrt(3))


@functools.cache
def crystal():
    """Return equal disks, their state on a triangular lattice, and ``packing_fraction -> diagnostics``."""
    simulation = packing(particles=COLUMNS * ROWS)
    params = simulation.with_params(diameter_ratio=1.0).params
    i, j = np.meshgrid(np.arange(COLUMNS), np.arange(ROWS), indexing="ij")
    # 26 by 30 rows make a cell nearly square, 26 to 25.98: stretched by less than a thousandth it is square.
    sites = np.stack([(i + 0.5 * (j % 2) + 0.25) / COLUMNS, (j + 0.5) / ROWS], axis=-1).reshape(-1, 2)
    random = simulation.init(params, jax.random.key(0))

    @jax.jit
    def measured(packing_fraction):
        found = params | {"packing_fraction": packing_fraction}
        box = jnp.sqrt(COLUMNS * ROWS * jnp.pi / 4 / packing_fraction)
        state = dataclasses.replace(random, descent=dataclasses.replace(random.descent, position=box * sites))
        return simulation.diagnose(state, found), simulation.observe(state, found)

    return measured


def test_equal_disks_touch_all_six_neighbors_from_the_densest_packing_on(x64):
    measured = crystal()
    # The square box stretches the rows by 26 / 25.98 - 1 = 7.4e-4 against each other: bonds of different directions
    # touch at packing fractions apart by that much.
    loose, pressed = measured(DENSEST * (1 - 1e-3))[0], measured(DENSEST * (1 + 1e-3))[0]
    assert float(loose["energy"]) == 0.0
    assert float(loose["contact_number"]) == 0.0
    assert float(loose["rattler_fraction"]) == 1.0
    assert float(pressed["contact_number"]) == 6.0
    # One less a mean, to a rounding.
    assert float(pressed["rattler_fraction"]) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("packing_fraction", [0.95, 1.1])
def test_pressure_of_the_triangular_crystal_is_analytic(x64, packing_fraction):
    found, observed = crystal()(packing_fraction)
    spacing = np.sqrt(DENSEST / packing_fraction)
    # Three bonds of energy (1 - a)^2 / 2 per disk in an area of a^2 sqrt(3) / 2: p = sqrt(3) (1 - a) / a.
    assert float(found["pressure"]) == pytest.approx(np.sqrt(3) * (1 - spacing) / spacing, rel=1e-4)
    # The stretch of 7e-4 enters squared, as 4e-7 beside an overlap squared of 5e-4.
    assert float(found["energy_per_particle"]) == pytest.approx(1.5 * (1 - spacing) ** 2, rel=2e-3)
    # Every force vanishes by symmetry; coordinates of order 26 round at 4e-15.
    assert float(found["max_force"]) < 1e-13
    # Directions turn by 4e-4, six times that enters psi_6, squared: 6e-6.
    assert float(found["hexatic_order"]) == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(observed["contacts"], 6)
    # All carry the same.
    np.testing.assert_allclose(observed["load"], 1, atol=1e-12)


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
