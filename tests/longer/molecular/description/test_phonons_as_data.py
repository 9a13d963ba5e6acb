"""Phonons of systems described as data: a lattice of springs in closed form, speeds of sound, and what is refused."""

import itertools

import jax
import numpy as np
import pytest

from simkit.molecular import system
from tests.molecular.description.test_phonons_as_data import CORNERS, SPRINGS


@pytest.fixture(scope="module")
def springs():
    """Return the arrays and numbers of the first state, and the derivatives of the frequencies by the stiffness."""
    with jax.enable_x64(True):
        simulation = system(**SPRINGS)

        def at(params):
            state = simulation.init(params, jax.random.key(0))
            return simulation.observe(state, params), simulation.diagnose(state, params)

        params = {"k": jax.numpy.asarray(4.0)}
        found = jax.jit(lambda params: jax.jvp(at, (params,), ({"k": jax.numpy.asarray(1.0)},)))(params)
        yield simulation, *jax.tree.map(np.asarray, found)


def test_a_lattice_of_springs_has_the_frequencies_of_its_closed_form(springs):
    simulation, (observed, numbers), (slopes, _) = springs
    fractions = np.array([CORNERS[name] for name in SPRINGS["phonons"]["path"]], float)
    lines = [first + np.arange(4)[:, None] / 4 * (last - first) for first, last in itertools.pairwise(fractions)]
    vectors = np.array([[1, 0], [1.5, 0.75**0.5]])
    waves = 2 * np.pi * np.concatenate([*lines, fractions[-1:]]) @ np.linalg.inv(vectors).T
    neighbors = np.array([[np.cos(angle), np.sin(angle)] for angle in np.pi / 3 * np.arange(6)])
    shares = 4 / 1.5 * (1 - np.cos(waves @ neighbors.T))
    matrices = np.einsum("qn,na,nb->qab", shares, neighbors, neighbors)
    expected = np.sqrt(np.abs(np.linalg.eigvalsh(matrices)))
    frequency = observed["phonon_frequency"]
    np.testing.assert_allclose(frequency**2, expected**2, atol=1e-13)
    np.testing.assert_allclose(frequency[1:-1], expected[1:-1], rtol=1e-10)
    np.testing.assert_allclose(slopes["phonon_frequency"][1:-1], expected[1:-1] / 8, rtol=1e-9)
    # Longitudinal and transverse sound: 9/8 and 3/8 of k / m for unit spacing.
    np.testing.assert_allclose([numbers["sound_1"], numbers["sound_2"]], np.sqrt([1.0, 3.0]), rtol=1e-7)
    assert simulation.coordinates["wave_path"].tolist() == np.linspace(0, 3, 13).tolist()
    assert observed["density_of_states"].sum() * 0.05 == pytest.approx(2, rel=2e-2)
