"""Phonons of Stillinger-Weber silicon: sound, and the zone center."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.analysis.elasticity import elastic_constants
from simkit.molecular.interactions import stillinger_weber
from simkit.molecular.phonons import phonons, supercell

# eV, angstrom, and the mass of silicon in eV ps^2 / angstrom^2 (28.0855 u, 1 u = 1.0364270e-4).
PARAMS = {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0}
MASS = 28.0855 * 1.0364270e-4
REPEATS = (6, 6, 6)


@pytest.fixture(scope="module")
def silicon():
    """Return the primitive cell, with a function from wave vectors to frequencies."""
    with jax.enable_x64(True):
        # The minimum of the energy: a bond of 2^(1/6) sigma.
        constant = 2 ** (1 / 6) * PARAMS["sigma"] * 4 / np.sqrt(3)
        cell = constant / 2 * jnp.asarray([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]])
        position = constant / 4 * jnp.asarray([[0.0, 0, 0], [1, 1, 1]])
        run = jax.jit(
            lambda q, params: (
                phonons(stillinger_weber(), position, cell, params, q, repeats=REPEATS, mass=MASS).frequency
            )
        )
        yield constant, position, cell, run


def test_sound_travels_as_the_elastic_constants_say(x64, silicon):
    constant, position, cell, run = silicon
    everywhere, box = supercell(position, cell, REPEATS)
    stiffness = jax.jit(lambda: elastic_constants(stillinger_weber(), everywhere, box, PARAMS).stiffness)()
    c11, c12, c44 = (float(stiffness[entry]) for entry in ((0, 0), (0, 1), (3, 3)))
    density = 8 * MASS / constant**3
    # Squared speeds times the density along [100], [110] and [111], the textbook's (Kittel, chapter 3).
    moduli = {
        (1, 0, 0): [c44, c44, c11],
        (1, 1, 0): [(c11 - c12) / 2, c44, (c11 + c12 + 2 * c44) / 2],
        (1, 1, 1): [(c11 - c12 + c44) / 3] * 2 + [(c11 + 2 * c12 + 4 * c44) / 3],
    }
    wave = 0.01 / constant
    directions = jnp.asarray(list(moduli), float)
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    speeds = run(wave * directions, PARAMS)[:, :3] / wave
    expected = np.sqrt(np.asarray([sorted(each) for each in moduli.values()]) / density)
    np.testing.assert_allclose(speeds, expected, rtol=1e-4)


def test_translations_cost_nothing_and_the_optical_modes_are_degenerate(x64, silicon):
    *_, run = silicon
    frequency = run(jnp.zeros((1, 3)), PARAMS)[0]
    np.testing.assert_allclose(frequency[:3] ** 2, 0, atol=1e-9 * float(frequency[-1]) ** 2)
    np.testing.assert_allclose(frequency[3:], frequency[-1], rtol=1e-9)
