"""Tersoff's energy: the published sum bond by bond, its derivatives, and the crystal of silicon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import structures, system
from simkit.molecular.interactions import tersoff
from simkit.molecular.interactions.tersoff import SILICON_OF_TERSOFF, diamond_bond
from tests.molecular.test_tersoff import (
    ENTRIES,
    MIXTURE,
    OF_LAMMPS,
    cluster,
    told,  # noqa: F401
)


def published_energy(x, p):
    """Return the energy of a cluster as the paper writes it, bond by bond."""

    def fade(r):
        if r < p["inner"]:
            return 1.0
        return 0.5 + 0.5 * np.cos(np.pi * (r - p["inner"]) / (p["outer"] - p["inner"])) if r < p["outer"] else 0.0

    energy, others = 0.0, range(len(x))
    for i in others:
        for j in others:
            if i == j:
                continue
            a, zeta = x[j] - x[i], 0.0
            r = np.linalg.norm(a)
            for k in others:
                if k in (i, j):
                    continue
                b = x[k] - x[i]
                s = np.linalg.norm(b)
                angle = p["d"] ** 2 + (p["h"] - a @ b / (r * s)) ** 2
                zeta += fade(s) * (1 + p["c"] ** 2 / p["d"] ** 2 - p["c"] ** 2 / angle)
            order = (1 + (p["beta"] * zeta) ** p["n"]) ** (-1 / (2 * p["n"]))
            attraction = order * p["attraction"] * np.exp(-p["attraction_decay"] * r)
            energy += fade(r) * (p["repulsion"] * np.exp(-p["repulsion_decay"] * r) - attraction) / 2
    return energy


def test_energy_is_the_published_sum_and_forces_and_stress_its_derivatives(x64, told):
    computed, params = told
    (energy, (gradient, strained, _)), force, stress = computed(cluster(), params)
    # 1 / d^2 - 1 / (d^2 + ...) of the paper loses five digits.
    assert float(energy) == pytest.approx(published_energy(np.asarray(cluster()), SILICON_OF_TERSOFF), rel=1e-11)
    size = float(jnp.abs(force).max())
    assert size > 1
    np.testing.assert_allclose(force, -gradient, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-12 * size)
    np.testing.assert_allclose(stress, strained / 12**3, rtol=0, atol=1e-13 * size)


def test_silicon_has_its_published_lattice_constant_and_cohesive_energy(x64):
    params = jax.tree.map(jnp.asarray, SILICON_OF_TERSOFF)
    length, stiffness = diamond_bond(params)
    position, cell = structures.diamond((2, 2, 2), spacing=float(length))
    acts = tersoff()

    @jax.jit
    def at(scale):
        where = position * scale, cell * scale, params
        neighbors = acts.prepare(*where)
        return acts.energy(*where, neighbors) / 64, acts.stress(*where, neighbors), acts.force(*where, neighbors)

    energy, stress, force = at(1.0)
    assert float(cell[0, 0]) / 2 == pytest.approx(5.432, abs=5e-4)
    assert float(energy) == pytest.approx(-4.63, abs=1e-3)
    assert float(jnp.abs(stress).max()) < 1e-13 and float(jnp.abs(force).max()) < 1e-12
    # Two bonds an atom: the energy at a stretch has twice the stiffness of a bond.
    ahead, behind = (at(1 + s)[0] for s in (1e-4, -1e-4))
    assert float(ahead + behind - 2 * energy) / (1e-4 * length) ** 2 == pytest.approx(2 * float(stiffness), rel=1e-5)


def test_a_dimer_has_no_weakened_bond_and_finite_derivatives(x64):
    position, params = jnp.asarray([[0.0, 0, 0], [2.3, 0.1, 0]]), jax.tree.map(jnp.asarray, SILICON_OF_TERSOFF)
    acts = tersoff(capacity=2)
    at = position, None, params, acts.prepare(position, None, params)
    energy, slopes = jax.value_and_grad(acts.energy, (0, 2))(*at)
    assert float(energy) == pytest.approx(published_energy(np.asarray(position), SILICON_OF_TERSOFF), rel=1e-13)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


def test_a_mixture_of_a_file_has_the_energy_of_lammps(x64):
    mixture = system(
        particles={"silicon": {"count": 4}, "carbon": {"count": 4}},
        interactions=[
            {
                "potential": "tersoff_file",
                "file": "SiC.tersoff",
                "text": ENTRIES,
                "elements": {"silicon": "Si", "carbon": "C"},
            }
        ],
        start={"positions": MIXTURE[[0, 1, 2, 7, 3, 4, 5, 6]].tolist()},
        cell={"lengths": [4.4, 4.4, 4.4]},
        units="metal",
        parameters={"unused": 1.0},
    )
    found = jax.jit(lambda params: mixture.diagnose(mixture.init(params, jax.random.key(0)), params))(mixture.params)
    assert float(found["energy"]) == pytest.approx(OF_LAMMPS, rel=1e-10)
