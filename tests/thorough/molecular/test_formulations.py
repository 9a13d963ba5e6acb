"""Neighbor lists and pair sums on one core, on several, and on accelerators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.formulation import formulated_for
from simkit.molecular.analysis.order import radial_distribution
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors import neighbor_list, pair_sums
from simkit.molecular.potentials import lennard_jones

PARTICLES, SIDE = 120, 5.2
PARAMS = {"epsilon": 1.0, "sigma": 1.0}


def computed(members=0):
    """Return list, energy, force, stress and g(r) of a liquid or of some members, and the slope of the energy."""
    surface = pair_interaction(lennard_jones(), cutoff=2.3, skin=0.1, capacity=90, method="neighbor_list")
    position = jnp.asarray(np.random.default_rng(0).uniform(0, SIDE, (PARTICLES, 3)), float)
    params = {name: jnp.asarray(value, float) for name, value in PARAMS.items()}

    def everything(position):
        cell = jnp.full(3, SIDE, position.dtype)
        neighbors = surface.prepare(position, cell, params)
        arguments = position, cell, params, neighbors
        slope = jax.grad(surface.energy)(*arguments)
        shells = radial_distribution(position, cell, reach=SIDE / 2, bins=30)
        sums = surface.energy(*arguments), surface.force(*arguments), surface.stress(*arguments)
        return neighbors, *sums, shells, slope

    if members:
        return jax.jit(jax.vmap(everything))(position + 0.01 * jnp.arange(members)[:, None, None])
    return jax.jit(everything)(position)


@pytest.fixture(scope="module")
def whole():
    assert pair_sums._columns_at_once(PARTICLES * 4) == (4, False)
    return computed()


# As many columns as before, and 16, which the 90 of the list are no multiple of.
@pytest.mark.parametrize("columns", [4, 16])
def test_split_lists_and_sums_are_those_of_one_core(monkeypatch, whole, columns):
    monkeypatch.setattr(pair_sums, "WORTH_SPLITTING", columns * PARTICLES * 4)
    monkeypatch.setattr(neighbor_list, "WORTH_SPLITTING", 1)
    assert pair_sums._columns_at_once(PARTICLES * 4) == (columns, True)
    neighbors, *sums = computed()
    assert not bool(neighbors.overflowed)
    for one, other in zip(jax.tree.leaves(whole[0]), jax.tree.leaves(neighbors), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(whole[1:], sums, strict=True):
        # The same terms, up to 90 per particle, each rounded by 6e-8 of the largest at most.
        np.testing.assert_allclose(one, other, rtol=0, atol=90 * 6e-8 * float(jnp.abs(one).max()))


# The first has less room than is needed: what is left out is the same too.
@pytest.mark.parametrize(
    ("count", "dimension", "reach", "is_periodic", "capacity"),
    [
        (40, 2, 0.3, True, 4),
        (12, 3, 0.45, False, 13),
        (200, 2, 0.12, True, 20),
        (200, 2, 0.12, False, 5),
        (200, 2, 0.3, True, 70),
    ],
)
def test_operations_on_whole_arrays_give_the_list_of_the_loops(x64, count, dimension, reach, is_periodic, capacity):
    position = jnp.asarray(np.random.default_rng(count).uniform(0, 1, (count, dimension)))
    cell = jnp.ones(dimension) if is_periodic else None

    def build(position):
        return neighbor_list.build(position, cell, reach, capacity)

    by_loops = jax.jit(build)(position)
    with formulated_for("accelerator"):
        at_once = jax.jit(build)(position)
    jax.tree.map(np.testing.assert_array_equal, by_loops, at_once)


@pytest.mark.parametrize("double", [False, True])
def test_both_formulations_agree_for_members_and_derivatives_too(double):
    with jax.enable_x64(double):
        results = {}
        for device in ("cpu", "accelerator"):
            with formulated_for(device):
                results[device] = [computed(), computed(members=2)]
        for one, other in zip(*results.values(), strict=True):
            jax.tree.map(np.testing.assert_array_equal, one[0], other[0])
            for a, b in zip(one[1:], other[1:], strict=True):
                # The same terms in another order, up to 90 per particle.
                bound = 90 * float(jnp.finfo(a.dtype).eps) * float(jnp.abs(a).max())
                np.testing.assert_allclose(a, b, rtol=0, atol=bound)
