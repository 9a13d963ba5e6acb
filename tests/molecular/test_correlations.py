"""Correlations in space and time against closed forms, and their running means in a file."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.errors import UserError
from simkit.molecular import electrostatics, spaces, system
from simkit.molecular.analysis import structure_factor, wave_vectors
from simkit.molecular.structures import lattices

CELL = np.array([[5.0, 0.0, 0.0], [1.0, 6.0, 0.0], [0.5, -1.0, 7.0]])


def test_structure_factor_of_any_cell_is_the_sum_over_pairs(x64):
    position = jax.random.uniform(jax.random.key(0), (20, 3)) @ jnp.asarray(CELL) + 30.0
    vectors = wave_vectors(CELL, 3.0, 10)
    found = structure_factor(position, jnp.asarray(CELL), vectors)
    k = vectors.numbers @ (2 * np.pi * np.linalg.inv(CELL).T)
    assert np.linalg.norm(k, axis=1).max() <= 3.0
    assert 2 * len(k) + 1 == pytest.approx(np.linalg.det(CELL) * 4 / 3 * np.pi * 27 / (2 * np.pi) ** 3, rel=0.1)
    apart = np.asarray(position[:, None] - position[None])
    each = np.cos(apart @ k.T).sum(axis=(0, 1)) / 20
    expected = [each[vectors.shell == shell].mean() for shell in range(len(vectors.length))]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_a_crystal_scatters_at_its_reciprocal_lattice_alone(x64):
    crystal = lattices.square((6, 6), spacing=1.5)
    vectors = wave_vectors(np.asarray(crystal.cell), 2 * np.pi / 1.5 * 1.01, 400)
    found = structure_factor(crystal.position, crystal.cell, vectors)
    is_bragg = np.isclose(vectors.length, 2 * np.pi / 1.5)
    np.testing.assert_allclose(found[is_bragg], 36, rtol=1e-12)
    assert np.abs(found[~is_bragg]).max() < 1e-12


def test_derivative_of_the_structure_factor_equals_differences(x64):
    position, vectors = jax.random.uniform(jax.random.key(1), (8, 3)) * 5, wave_vectors(CELL, 2.0, 4)

    def last(x):
        return structure_factor(position.at[3, 1].add(x), jnp.asarray(CELL), vectors)[-1]

    difference = (last(1e-5) - last(-1e-5)) / 2e-5
    assert float(jax.grad(last)(0.0)) == pytest.approx(float(difference), rel=1e-7)


STEP, FRICTION, TEMPERATURE, MASS, EVERY, LAGS = 0.05, 1.5, 0.8, 2.0, 2, 20


def free_particles(count=1000, **averages):
    """Return particles that nothing acts on, in a bath."""
    return system(
        dimension=3,
        particles={"free": {"count": count, "mass": MASS, "diameter": 0.1}},
        fields=[{"energy": "0*x"}],
        cell={"lengths": [9.0, 9.0, 9.0]},
        task="dynamics",
        dynamics={"method": "langevin", "time_step": STEP, "friction": FRICTION, "temperature": "warm"},
        averages={"every": EVERY, "of": ["temperature"], **averages},
        parameters={"warm": TEMPERATURE},
    )


@pytest.fixture(scope="module")
def run():
    with jax.enable_x64(True):
        correlated = free_particles(correlation={"lags": LAGS}, structure_factor={"largest": 3.0, "bins": 3})
        return simkit.run(correlated, steps=200, every=10)


def test_free_particles_in_a_bath_are_displaced_as_by_ornstein_and_uhlenbeck(run):
    time = STEP * run["lag"].values
    coefficient = TEMPERATURE / (MASS * FRICTION)
    expected = 6 * coefficient * (time - (1 - np.exp(-FRICTION * time)) / FRICTION)
    found = run["squared_displacement"][-1].values
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0.03)
    assert found[0] == 0
    slope = np.polyfit(time[len(time) // 2 :], expected[len(time) // 2 :], 1)[0]
    assert float(run["diffusion_coefficient"][-1]) == pytest.approx(slope / 6, rel=0.06)
    whole = coefficient * (1 - np.exp(-FRICTION * time[-1]))
    assert float(run["velocity_integral"][-1]) == pytest.approx(whole, rel=0.04)


def test_an_ideal_gas_has_a_structure_factor_of_one(run):
    # Samples are correlated over tens of samples; each shell has tens of wave vectors.
    np.testing.assert_allclose(run["structure_factor"][-1], 1, rtol=0, atol=0.25)


def test_means_are_undefined_until_all_lags_are_there(run):
    defined = np.isfinite(run["squared_displacement"].values).all(axis=1)
    assert defined.tolist() == [False] * 3 + [True] * 18


def test_correlations_that_a_cell_cannot_have_are_refused_in_one_line():
    with pytest.raises(UserError, match=r"averages.structure_factor.largest = 0.1 is below the shortest of the cell"):
        free_particles(8, structure_factor={"largest": 0.1})
    with pytest.raises(UserError, match=r"averages.correlation.lags"):
        free_particles(8, correlation={"lags": 2})


def test_more_wave_vectors_than_can_be_listed_are_refused_with_a_number_that_fits():
    with pytest.raises(UserError, match=r"structure_factor.largest = 1e\+06 makes .* at most (\S+)$") as refused:
        free_particles(8, structure_factor={"largest": 1e6})
    fits = float(str(refused.value).split()[-1])
    # Of the block of integers that holds them; a tenth in length and the rounding to two digits are spared.
    assert 0.5 < (2 * (fits * 9.0 // (2 * np.pi)) + 1) ** 3 / spaces.MAX_WAVE_VECTORS < 1


def test_more_wave_vectors_of_charges_than_can_be_listed_are_refused_in_one_line():
    longer = "wave vectors, more than .*; lengthen the cutoff or raise the tolerance"
    with pytest.raises(UserError, match=longer):
        electrostatics.wave_vectors(np.full(3, 9.0), 1e6)
    with pytest.raises(UserError, match=longer):
        electrostatics.mesh_for(np.full(3, 9.0), 1e-3, 1e-12)
