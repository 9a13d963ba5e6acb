import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.errors import UserError
from simkit.flow.boundary.domain import no_motion
from simkit.flow.diagnosis.measures import kinetic_energy
from simkit.flow.eddies import random_eddies, spectrum_of_eddies
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import shear
from tests.flow.flows import CHANNELS, over, some, uniform_channel

pytestmark = pytest.mark.usefixtures("x64")


@functools.partial(jax.jit, static_argnums=0)
def eddies(grid, seed):
    return random_eddies(grid, jax.random.key(seed), jnp.float64)


@functools.cache
def of(walls):
    """Eddies in a channel, and what the claims are about, from one program."""
    grid = walls.grid

    @jax.jit
    def numbers():
        velocity = eddies(grid, 0)
        slope = shear(velocity[0], 0, 1, no_motion(walls), walls)
        return velocity, divergence(velocity, grid), kinetic_energy(velocity, grid), slope

    return numbers()


@over(some(CHANNELS, "even", "stretched"))
def test_eddies_have_no_mean_flow(walls):
    velocity, _, _, slope = of(walls)
    # Every wave has zero mean along the channel; 16 roundings of numbers below 10.
    assert np.max(np.abs(np.mean(velocity[0], axis=0))) < 1e-13
    assert np.max(np.abs(np.mean(slope, axis=0))) < 1e-11


def test_eddies_do_not_slip_on_the_walls():
    def slip(ny):
        u = np.asarray(eddies(uniform_channel((16, ny), 4.0).grid, 0)[0])
        # The straight line through the two nearest points, continued to the wall.
        return np.max(np.abs(1.5 * u[:, [0, -1]] - 0.5 * u[:, [1, -2]]))

    # The waves are odd about the wall, so what the straight line misses falls with the cube of the cell height.
    assert np.log2(slip(64) / slip(128)) == pytest.approx(3, abs=0.1)


def test_eddies_follow_the_key():
    grid = CHANNELS["even"].grid
    draws = [eddies(grid, seed)[0] for seed in (0, 0, 1)]
    assert jnp.array_equal(draws[0], draws[1])
    # Independent draws of unit root-mean-square differ by about sqrt(2).
    assert jnp.sqrt(jnp.mean((draws[0] - draws[2]) ** 2)) > 0.5


def in_box(dimension, cells, wavenumber, energy=0.3):
    """A periodic box of the length 2 pi with eddies, as data."""
    return flow.system(
        axes={name: {"cells": cells, "length": "2*pi", "periodic": True} for name in "xyz"[:dimension]},
        viscosity=0.01,
        initial={"eddies": {"energy": "energy", "wavenumber": wavenumber}},
        parameters={"energy": energy, "time_step": 0.01},
    )


@over([(2, 64, 6.0), (3, 32, 4.0)])
def test_eddies_in_a_periodic_box_have_the_energy_and_spectrum_asked_for(dimension, cells, peak):
    box = in_box(dimension, cells, peak)
    velocity, worst, energy = jax.jit(
        lambda key: (
            (state := box.init(box.params, key)).velocity,
            box.diagnose(state, box.params)["divergence"],
            box.diagnose(state, box.params)["kinetic_energy"],
        )
    )(jax.random.key(3))
    assert energy == pytest.approx(0.3, rel=1e-12)
    # Round-off of velocities of order 1 over cells of 0.1 to 0.2.
    assert worst < 1e-12
    waves = np.meshgrid(*[np.fft.fftfreq(cells, 1 / cells)] * dimension, indexing="ij")
    k = np.sqrt(sum(w**2 for w in waves))
    energies = sum(abs(np.fft.fftn(u)) ** 2 for u in velocity)
    assert energies[(0,) * dimension] < 1e-20 * energies.sum()
    # The mean of k over the spectrum k^4 exp(-2 (k/k_p)^2), cut where the grid ends: in the plane 1.064 k_p.
    shells = np.arange(1, cells // 2)
    expected = np.asarray(spectrum_of_eddies(shells, peak))
    found = np.array([energies[np.abs(k - s) < 0.5].sum() for s in shells])
    # About 2 pi k_p^2 modes in the plane, with half as many free amplitudes: the mean is known to 2 %.
    assert (shells * found).sum() / found.sum() == pytest.approx((shells * expected).sum() / expected.sum(), rel=0.04)
    assert abs(shells[found.argmax()] - peak) <= 1


def test_eddies_that_the_grid_does_not_hold_are_refused():
    for peak in (0.5, 17.0):
        box = in_box(2, 64, peak)
        with pytest.raises(UserError, match=r"choose from 1, one wave .* to 16, four cells a wave"):
            box.check(box.params, jax.random.key(0))
