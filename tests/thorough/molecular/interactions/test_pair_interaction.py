"""Pair interactions over a list and over all pairs, and against published numbers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.buffers import enlarged, overflow_of, sized_like
from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.interactions.interaction import combined
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.neighbors.pair_sums import PerParticle
from simkit.molecular.potentials import lennard_jones
from tests.molecular.interactions.test_pair_interaction import (
    CUTOFF,
    METHODS,
    PARTICLES,
    SPECIES,
    check_derivatives,
    configuration,
    energy_of,
    params,
    spheres,
)

KINDS = ["free", "orthorhombic", "triclinic"]


def force_of(interaction, position, cell, params):
    return interaction.force(position, cell, params, interaction.prepare(position, cell, params))


@pytest.mark.parametrize("kind", KINDS)
def test_a_translation_changes_nothing(x64, kind):
    position, cell = configuration(kind, 3)
    interaction, shift = spheres("neighbor_list"), jnp.array([3.1, -7.3, 11.9])
    energy, force = (f(interaction, position, cell, params()) for f in (energy_of, force_of))
    # Coordinates of order 15 round by 2e-15.
    moved = position + shift
    assert float(energy_of(interaction, moved, cell, params())) == pytest.approx(float(energy), rel=1e-13)
    np.testing.assert_allclose(force_of(interaction, moved, cell, params()), force, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["free", "triclinic"])
def test_second_derivatives_through_the_list_equal_those_over_all_pairs(x64, kind):
    position, cell = configuration(kind, 2)
    position, half = position[:16], {"species": SPECIES[:16]}
    every, some = (spheres(method, **half) for method in METHODS)

    def derivatives(interaction):
        neighbors = interaction.prepare(position, cell, params())

        def energy(x, c, p):
            return interaction.energy(x, c, p, neighbors)

        def force(x, c, p):
            return interaction.force(x, c, p, neighbors)

        arguments = (0, 2) if cell is None else (0, 1, 2)
        hessian = jax.jacfwd(jax.grad(energy, argnums=arguments), argnums=arguments)
        forward, reverse = jax.jacfwd(force, argnums=arguments), jax.jacrev(force, argnums=arguments)
        return jax.jit(lambda *at: (hessian(*at), forward(*at), reverse(*at)))(position, cell, params())

    found, expected = derivatives(some), derivatives(every)
    assert float(jnp.abs(expected[0][0][0]).max()) > 0.1
    # Sums of some hundred terms of order one.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=2e-12), found, expected)
    hessian, forward, reverse = found
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=2e-12), forward, reverse)
    np.testing.assert_allclose(hessian[0][0], -forward[0], rtol=0, atol=2e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [2, 3])
def test_lists_equal_all_pairs_and_forces_and_stress_the_derivatives_of_the_energy(x64, dimension, kind):
    check_derivatives(dimension, kind)


@pytest.mark.parametrize("method", METHODS)
def test_a_sheared_cell_equals_the_rectangular_cell_twice_as_high(x64, method):
    # Lattice vectors (L, 0) and (L / 2, H): two of the cells make a rectangle L by 2 H.
    length, height = 4.0, 3.5
    rng = np.random.default_rng(2)
    position = rng.uniform(-3, 6, (PARTICLES // 2, 2))
    sheared = jnp.array([[length, 0.0], [length / 2, height]])
    twice = jnp.asarray(np.concatenate([position, position + np.array([length / 2, height])]))
    half, whole = (spheres(method, species=np.zeros(count, int)) for count in (PARTICLES // 2, PARTICLES))
    rectangle = jnp.array([length, 2 * height])
    once = energy_of(half, jnp.asarray(position), sheared, params())
    assert float(once) > 1
    assert float(energy_of(whole, twice, rectangle, params())) == pytest.approx(2 * float(once), rel=1e-13)
    force = force_of(half, jnp.asarray(position), sheared, params())
    doubled = force_of(whole, twice, rectangle, params())
    np.testing.assert_allclose(doubled, np.concatenate([force, force]), rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_may_be_computed_from_one_number_per_particle(x64, method):
    position, cell = configuration("orthorhombic", 2)
    diameter = jnp.asarray([1.0, 1.3])[SPECIES]

    def by_particle(params):
        return {"epsilon": params["unused"], "sigma": PerParticle(params["diameter"], lambda a, b: (a + b) / 2)}

    mixed = spheres(method, parameters=by_particle, species=None)
    tables = {"epsilon": jnp.asarray(1.0), "sigma": jnp.array([[1.0, 1.15], [1.15, 1.3]])}
    expected = energy_of(spheres(method), position, cell, tables)
    found = {"unused": jnp.asarray(1.0), "diameter": diameter}
    assert float(energy_of(mixed, position, cell, found)) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_iterations_do_not_depend_on_units_because_the_cutoff_scales(x64, method):
    position, cell = configuration("orthorhombic", 2)
    scale = 2.0**70
    following = spheres(method, cutoff=lambda p: CUTOFF * p["unused"])
    scaled = {**params(), "sigma": scale * params()["sigma"], "unused": jnp.asarray(scale)}
    # Powers of two scale without rounding.
    expected = force_of(following, position, cell, params())
    np.testing.assert_array_equal(scale * force_of(following, scale * position, scale * cell, scaled), expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_cutoff_beyond_half_the_cell_is_refused_or_gives_nan(x64, method):
    position, cell = configuration("triclinic", 2)
    interaction = spheres(method)
    small = cell * 2 * CUTOFF / spaces.of_cell(cell, 2).widths.min()
    with pytest.raises(UserError, match="reaches beyond half the cell"):
        interaction.prepare(position, 0.999 * small, params())
    energy = jax.jit(lambda cell: energy_of(interaction, position, cell, params()))
    assert bool(jnp.isfinite(energy(small)))
    assert bool(jnp.isnan(energy(0.999 * small)))


def test_an_overflowed_list_gives_nan_until_it_is_enlarged(x64):
    position, cell = configuration("orthorhombic", 2)
    interaction = spheres("neighbor_list", capacity=2)
    neighbors = interaction.prepare(position, cell, params())
    assert bool(neighbors.overflowed)
    for value in (interaction.energy, interaction.force, interaction.stress):
        assert bool(jnp.isnan(value(position, cell, params(), neighbors)).all())
    sparse = interaction.prepare(3 * position, 9 * cell, params())
    example = enlarged(neighbors)
    larger = interaction.sized_like(example)
    wider = sized_like(dataclasses.replace(sparse, needed=jnp.int32(0)), example)
    assert wider.index.shape[0] >= int(neighbors.needed)
    expected = energy_of(spheres("all_pairs"), position, cell, params())
    found = larger.energy(position, cell, params(), larger.refresh(wider, position, cell, params()))
    assert float(found) == pytest.approx(float(expected), rel=1e-13)
    assert float(energy_of(larger, position, cell, params())) == pytest.approx(float(expected), rel=1e-13)


def test_combined_interactions_are_summed_and_their_lists_enlarged(x64):
    position, cell = configuration("orthorhombic", 2)
    tight, roomy, every = spheres("neighbor_list", capacity=2), spheres("neighbor_list"), spheres("all_pairs")
    both = combined(tight, roomy, every)
    neighbors = both.prepare(position, cell, params())
    assert bool(overflow_of(neighbors))
    larger = both.sized_like(enlarged(neighbors))
    assert not bool(overflow_of(larger.prepare(position, cell, params())))
    once = energy_of(every, position, cell, params())
    assert float(energy_of(larger, position, cell, params())) == pytest.approx(3 * float(once), rel=1e-13)


def test_no_cutoff_counts_every_pair_of_a_cluster(x64):
    position, _ = configuration("free", 3)
    unit = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(1.0)}
    found = energy_of(pair_interaction(lennard_jones(), cutoff=None), 2 * position, None, unit)
    far = energy_of(pair_interaction(lennard_jones(), cutoff=1e3, capacity=PARTICLES), 2 * position, None, unit)
    assert float(found) == pytest.approx(float(far), rel=1e-13)
    with pytest.raises(UserError, match="needs a cutoff"):
        energy_of(pair_interaction(lennard_jones(), cutoff=None), position, jnp.full(3, 9.0), unit)


def test_lists_equal_all_pairs_and_forces_and_stress_the_derivatives_of_the_energy_in_the_first_cases(x64):
    check_derivatives(3, "triclinic")
