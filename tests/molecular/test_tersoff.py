"""Tersoff's energy: the published sum bond by bond, its derivatives, and the crystal of silicon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import structures
from simkit.molecular.interactions import parse_tersoff, tersoff
from simkit.molecular.interactions.tersoff import SILICON_OF_TERSOFF
from tests.programs import operations_of

COUNT = 10
ACTS = tersoff(capacity=COUNT)


def cluster():
    """Return atoms near the sites of a bent piece of crystal, with some bonds that begin to end."""
    sites = structures.diamond((2, 2, 2), spacing=2.45).position[:COUNT]
    return jnp.asarray(np.asarray(sites) + np.random.default_rng(0).normal(scale=0.25, size=(COUNT, 3)))


@pytest.fixture(scope="module")
def told():
    """Return ``(position, cell, params) -> energy, slopes by position, strain and params, force, stress``."""
    with jax.enable_x64(True):
        cell = 12.0 * jnp.eye(3)

        def at(position, params):
            def energy(position, strain, params):
                where = position + position @ strain, cell + cell @ strain, params
                return ACTS.energy(*where, ACTS.prepare(*where))

            where = position, cell, params, ACTS.prepare(position, cell, params)
            slopes = jax.value_and_grad(energy, (0, 1, 2))(position, jnp.zeros((3, 3)), params)
            return slopes, *ACTS.several(("force", "stress"), *where)

        params = jax.tree.map(jnp.asarray, SILICON_OF_TERSOFF)
        lowered = jax.jit(at).lower(cluster(), params)
        return lowered.compile({"xla_backend_optimization_level": 0}), params


def test_derivatives_by_parameters_equal_central_differences(x64, told):
    computed, params = told
    (_, (_, _, slopes)), _, _ = computed(cluster(), params)
    for name, value in params.items():
        step = 1e-5 * abs(value)
        ahead, behind = (computed(cluster(), params | {name: value + s})[0][0] for s in (step, -step))
        # Round-off: 1e-14 of the energy, about 30 eV, over a step of 1e-5.
        expected = float((ahead - behind) / (2 * step) * value)
        assert float(slopes[name] * value) == pytest.approx(expected, rel=1e-6, abs=1e-7), name


def test_a_force_on_an_accelerator_has_neither_loops_nor_scattered_sums():
    position, cell = cluster().astype(jnp.float32), 12 * jnp.eye(3, dtype=jnp.float32)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), SILICON_OF_TERSOFF)
    neighbors = jax.eval_shape(ACTS.prepare, position, cell, params)
    found = operations_of(ACTS.force, position, cell, params, neighbors)
    assert found["gather"] and not found["scatter"] and not found["case"] and not found["while"]
    assert jax.eval_shape(ACTS.force, position, cell, params, neighbors).dtype == jnp.float32


# Rows for LAMMPS of silicon and carbon, doi:10.1103/PhysRevB.39.5566; some numbers of unlike atoms are made up.
ENTRIES = """
C  C  C  3 1.0 0.0 38049  4.3484 -.57058 .72751 0.00000015724 2.2119 346.7 1.95 0.15 3.4879 1393.6
Si Si Si 3 1.0 0.0 100390 16.217 -.59825 .78734 0.0000011 1.73222 471.18 2.85 0.15 2.4799 1830.8
Si Si C  3 1.0 0.0 100390 16.217 -.59825 0.0 0.0 0.0 0.0 2.36 0.15 0.0 0.0
Si C  C  3 1.0 0.0 100390 16.217 -.59825 .787340 0.0000011 1.97205 395.126 2.36 0.15 2.9839 1597.3111
C  Si Si 3 1.0 0.0 38049 4.3484 -.57058 .72751 0.00000015724 1.97205 395.126 2.36 0.15 2.9839 1597.3111
C  Si C  3 1.0 0.0 38049 4.3484 -.57058 0.0 0.0 0.0 0.0 1.95 0.15 0.0 0.0
C  C  Si 3 0.9 0.4 38049 4.3484 -.57058 0.0 0.0 0.0 0.0 2.36 0.15 0.0 0.0
Si C  Si 1 1.1 0.7 100390 16.217 -.59825 0.0 0.0 0.0 0.0 2.85 0.15 0.0 0.0
"""
# Of zinc blende, in quarters of the cell.
SITES = [[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0], [1, 1, 1], [1, 3, 3], [3, 1, 3], [3, 3, 1]]
# Atoms 0, 1, 2 and 7 are silicon; and the energy by LAMMPS of 22 July 2025.
MIXTURE = np.array(SITES) * 1.1 + 0.1 * np.sin(np.arange(24)).reshape(8, 3)
OF_LAMMPS = -36.89529483547993


def test_entries_that_are_missing_or_no_numbers_are_named():
    for content, elements, match in (
        (ENTRIES, ["Si", "Ge"], "there is no entry Si Si Ge"),
        (ENTRIES.replace("346.7", "many"), ["C"], "entry C C C: could not convert string to float: 'many'"),
        (ENTRIES.replace(" 1393.6", ""), ["C"], "words are no entries of 17"),
    ):
        with pytest.raises(UserError, match=match):
            parse_tersoff(content, elements)
