"""Parts of relaxations and interactions on their own."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.simulation import as_arrays
from simkit.molecular.interactions.pair_interaction import PairInteraction
from simkit.molecular.minimizers import Scale
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.relaxation.equilibrium import Solution
from simkit.molecular.relaxation.landscape import Landscape
from simkit.molecular.spaces import of_cell

PARAMS = {"epsilon": 2.0, "sigma": 1.0, "pressure": 0.3}
CELL = ((3.0, 0.4), (0.0, 3.2))
DISKS = PairInteraction(
    potential=soft_sphere(),
    cutoff=lambda p: p["sigma"],
    parameters=("epsilon", "sigma"),
    species=None,
    method="all_pairs",
    skin=0.1,
    capacity=None,
)


def dense(count=14):
    return jnp.asarray(np.random.default_rng(0).uniform(0, 3, (count, 2)))


def landscape(relax_cell=True):
    return Landscape(
        interaction=DISKS.interaction(),
        scale=lambda p: Scale(length=p["sigma"], stiffness=p["epsilon"] / p["sigma"] ** 2),
        cell=lambda p: jnp.asarray(CELL),
        relax_cell=relax_cell,
        isotropic=False,
        pressure=lambda p: p["pressure"],
    )


def test_a_landscapes_force_is_minus_the_difference_of_its_enthalpy(x64):
    hills, params = landscape(), as_arrays(PARAMS)
    rng = np.random.default_rng(1)
    coordinates = hills.coordinates(dense(), params).at[-2:].set(0.05 * rng.normal(size=(2, 2)))
    along, step = jnp.asarray(rng.normal(size=coordinates.shape)), 1e-6
    evaluate = jax.jit(lambda x: hills.evaluate(x, params, ()))
    (ahead, _), (behind, _) = evaluate(coordinates + step * along), evaluate(coordinates - step * along)
    power = -jnp.sum(evaluate(coordinates)[1] * along)
    # Enthalpies of order 10: round-off 1e-15 / 1e-6 beside a power of order 10.
    assert float(power) == pytest.approx(float((ahead - behind) / (2 * step)), rel=1e-7)
    position, cell = hills.arrangement(coordinates, params)
    held = dataclasses.replace(hills, relax_cell=False, cell=lambda p: cell)
    expected = held.evaluate(position, params, ())[0] + params["pressure"] * of_cell(cell, 2).volume
    assert float(evaluate(coordinates)[0]) == pytest.approx(float(expected), rel=1e-14)


def test_a_solution_without_rattlers_is_the_force(x64):
    hills, params = landscape(relax_cell=False), as_arrays(PARAMS)
    found = jax.jit(Solution(hills, rattlers=None, start=lambda p, key: dense()).residual)(dense(), params)
    np.testing.assert_allclose(found, -hills.evaluate(dense(), params, ())[1], rtol=0, atol=1e-13)
    held = jax.jit(
        Solution(hills, rattlers=lambda x, c, p, n: jnp.arange(len(x)) == 3, start=lambda p, key: dense()).residual
    )(dense(), params)
    assert float(jnp.abs(held[3]).max()) == 0 < float(jnp.abs(found[3]).max())


def test_one_part_of_a_pair_interaction_is_replaced(x64):
    params, cell = as_arrays(PARAMS), jnp.asarray(CELL)
    listed = dataclasses.replace(DISKS, method="neighbor_list", skin=0.3, capacity=20)
    neighbors = listed.prepare(dense(), cell, params)
    assert neighbors.capacity == 20
    assert float(neighbors.reach) == pytest.approx(1.3)
    found, expected = listed.energy(dense(), cell, params, neighbors), DISKS.energy(dense(), cell, params, ())
    assert float(found) == pytest.approx(float(expected), rel=1e-13)
    smaller = dataclasses.replace(DISKS, cutoff=0.5)
    assert float(smaller.energy(dense(), cell, params, ())) < float(expected)
