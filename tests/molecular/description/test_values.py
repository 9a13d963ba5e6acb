"""Values of species and of particles in the energy of a pair: by hand, and the size of the program."""

import itertools

import jax
import numpy as np
import pytest

from simkit.core.simulation import as_arrays
from simkit.errors import UserError
from simkit.molecular.description.settings import number_of_each
from simkit.molecular.description.system import system

PLACES = np.array([[0.0, 0], [1, 0], [0, 1.2], [2, 1], [-1, 0.7], [0.5, 2]])
CHARGES = [1.0, -0.5, 2.0, 0.25, -1.5, 0.75]


def made(particles, energy="q_i*q_j*exp(-r)", **more):
    return system(
        particles=particles,
        start={"positions": PLACES.tolist()},
        interactions=[{"energy": energy, **more}],
        parameters={"one": 1.0},
        observed=["energy_of_particle"],
    )


def energies(simulation):
    """Return the energy, and that of each particle."""
    params = as_arrays(simulation.params)

    @jax.jit
    def computed(params):
        state = simulation.init(params, jax.random.key(0))
        return simulation.diagnose(state, params)["energy"], simulation.observe(state, params)["energy_of_particle"]

    simulation.check(params, jax.random.key(0))
    return computed(params)


def test_values_of_one_species_of_many_and_of_particles_reach_the_energy_of_a_pair(x64):
    many = {f"s{index}": {"count": 1, "values": {"q": charge}} for index, charge in enumerate(CHARGES)}
    cases = [
        ({"s": {"values": {"q": 0.5}}}, [0.5] * 6),
        (many, CHARGES),
        ({"a": {"count": 2, "values": {"q": "one/2"}}, "b": {"count": 4, "values": {"q": CHARGES[2:]}}}, None),
    ]
    for particles, charges in cases:
        q = np.array([0.5, 0.5, *CHARGES[2:]] if charges is None else charges)
        r = np.linalg.norm(PLACES[:, None] - PLACES, axis=-1)
        of_each = np.where(np.eye(6), 0, np.outer(q, q) * np.exp(-r)).sum(axis=1) / 2
        total, each = energies(made(particles))
        np.testing.assert_allclose(each, of_each, rtol=1e-13, atol=1e-15)
        assert float(total) == pytest.approx(of_each.sum(), rel=1e-12)


def test_numbers_of_particles_that_do_not_fit_are_refused_with_their_key():
    for values, words in (
        ([1.0, 2.0], "particles.s.values.q has 2 numbers for 6 particles"),
        ({"seed": 1}, "particles.s.values.q is not one distribution"),
    ):
        with pytest.raises(UserError, match=words):
            made({"s": {"values": {"q": values}}})
    with pytest.raises(UserError, match=r"particles.s.diameter: number 1 .* = -1 is not positive"):
        made({"s": {"diameter": [1.0, -1.0, 1, 1, 1, 1], "values": {"q": 1}}})
    with pytest.raises(UserError, match=r"is .* for s_s and .* the other way round"):
        energies(made({"s": {"values": {"q": CHARGES}}}, "q_i*exp(-r)"))


def test_a_program_does_not_grow_with_the_number_of_species():
    def size(count):
        names = [f"s{index}" for index in range(count)]
        table = {
            f"{a}_{b}": 1 + 0.1 * abs(ord(a[1]) - ord(b[1]))
            for a, b in itertools.combinations_with_replacement(names, 2)
        }
        simulation = system(
            particles={
                name: {"count": 12 // count, "values": {"d": 1 + index / 9}} for index, name in enumerate(names)
            },
            start={"radius": 3.0},
            dimension=3,
            interactions=[
                {"potential": "lennard_jones", "values": {"epsilon": 1, "sigma": table}, "cutoff": 2.5},
                {"energy": "exp(-r/(d_i + d_j))", "cutoff": 2.5},
            ],
            parameters={"one": 1.0},
        )
        params = as_arrays(simulation.params)
        state = jax.eval_shape(simulation.init, params, jax.random.key(0))
        return str(jax.make_jaxpr(simulation.step)(state, params)).count("\n")

    assert size(12) < 1.1 * size(1)


def test_numbers_of_particles_are_read_from_text_and_drawn_from_a_distribution():
    setting = number_of_each("size")
    assert setting.check("1.5 2\n3,4\n", "d").numbers(4).tolist() == [1.5, 2, 3, 4]
    assert setting.check("one/2", "d").text == "one/2"
    for kind in ("normal", "lognormal"):
        sizes = setting.check({kind: [2, 0.5], "seed": 1}, "d").numbers(100_000)
        # Six standard errors, 0.5 / sqrt(N).
        assert abs(sizes.mean() - 2) < 0.01
        assert abs(sizes.std() - 0.5) < 0.01
    np.testing.assert_array_equal(
        setting.check({"uniform": [0.8, 1.2], "seed": 1}, "d").numbers(9), np.random.default_rng(1).uniform(0.8, 1.2, 9)
    )
