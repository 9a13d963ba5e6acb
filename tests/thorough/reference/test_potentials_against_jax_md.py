"""Potentials of simkit against those of jax-md, and energies of jax-md as interactions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.buffers import enlarged, sized_like
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular.interactions.jax_md import from_jax_md
from simkit.molecular.interactions.pair_interaction import pair_interaction
from simkit.molecular.minimizers.protocol import Scale
from simkit.molecular.potentials import soft_sphere
from simkit.molecular.relaxation import relaxation
from tests.reference.test_potentials_against_jax_md import BOX, lennard_jones_of, spread


def test_no_pair_is_lost_while_particles_move_out_of_the_box(x64, jax_md):
    # Cells of 2.4 in a box of 12: jax-md uses its cell list, and files particles by their place in the box.
    box = jnp.full(3, 12.0)
    position = spread(count=150, box=box, apart=1.0)
    plain, lists, listed = lennard_jones_of(jax_md, box, capacity_multiplier=5.0)
    interaction = from_jax_md(listed, box=box, neighbor_list=lists, position=position)

    @jax.jit
    def follow(neighbors, position):
        neighbors = interaction.refresh(neighbors, position, box, {})
        return neighbors, interaction.energy(position, box, {}, neighbors), neighbors.overflowed

    neighbors = jax.jit(interaction.prepare)(position, box, {})
    assert neighbors.lists.cell_list_fn is not None
    drift = jnp.asarray(np.random.default_rng(4).normal(size=position.shape))
    for step in range(12):
        moved = position + 0.3 * step * drift
        neighbors, energy, overflowed = follow(neighbors, moved)
        assert not bool(overflowed)
        assert float(energy) == pytest.approx(float(plain(moved)), rel=1e-10)
    assert bool(((moved < -1) | (moved > box + 1)).any())


def test_an_overflow_is_reported_persists_and_is_removed_by_enlarging(x64, jax_md):
    box, position = jnp.full(3, 12.0), spread(count=150, box=(12, 12, 12), apart=1.0)
    plain, lists, listed = lennard_jones_of(jax_md, box, capacity_multiplier=1.0)
    interaction = from_jax_md(listed, box=box, neighbor_list=lists, position=position)
    dense = position * 0.6
    first = interaction.prepare(position, box, {})
    over = interaction.refresh(first, dense, box, {})
    assert bool(over.overflowed)
    assert bool(jnp.isnan(interaction.energy(dense, box, {}, over)))
    again = interaction.refresh(over, position, box, {})
    assert bool(again.overflowed)
    example = enlarged(over)
    larger, room = interaction.sized_like(example), sized_like(first, example)
    room = larger.refresh(room, dense, box, {})
    assert not bool(room.overflowed)
    assert float(larger.energy(dense, box, {}, room)) == pytest.approx(float(plain(dense)), rel=1e-10)


def test_two_interactions_with_lists_work_in_one_process_and_under_vmap(x64, jax_md):
    box, positions = jnp.asarray(BOX), jnp.stack([spread(seed) for seed in range(3)])
    plain, lists, listed = lennard_jones_of(jax_md, box)
    for _ in range(2):
        interaction = from_jax_md(listed, box=box, neighbor_list=lists, position=positions[0])

        @jax.jit
        @jax.vmap
        def energy(position, interaction=interaction):
            start = interaction.prepare(position, box, {})
            neighbors = interaction.refresh(start, position + 0.3, box, {})
            return interaction.energy(position + 0.3, box, {}, neighbors), neighbors.overflowed

        found, overflowed = energy(positions)
        expected = jax.vmap(plain)(positions)
        np.testing.assert_allclose(found, jnp.where(overflowed, jnp.nan, expected), rtol=1e-10)
        assert not bool(overflowed[0])


def test_another_cell_with_a_neighbor_list_gives_nan(x64, jax_md):
    box, position = jnp.asarray(BOX), spread()
    _, lists, listed = lennard_jones_of(jax_md, box)
    interaction = from_jax_md(listed, box=box, neighbor_list=lists, position=position)
    neighbors = interaction.prepare(position, box, {})
    assert bool(jnp.isfinite(interaction.energy(position, box, {}, neighbors)))
    assert bool(jnp.isnan(interaction.energy(position, 1.001 * box, {}, neighbors)))


def test_a_jax_md_energy_relaxes_like_that_of_simkit(x64, jax_md):
    box, position = jnp.asarray(BOX), spread()
    displacement, _ = jax_md.space.periodic(box)
    theirs = jax_md.energy.soft_sphere_pair(
        displacement, sigma=jnp.asarray(2.4), epsilon=jnp.asarray(1.0), alpha=jnp.asarray(2.0)
    )
    params = {"epsilon": jnp.asarray(1.0), "sigma": jnp.asarray(2.4)}
    energies = []
    for interaction in (
        from_jax_md(theirs, box=box, parameters=["epsilon", "sigma"]),
        pair_interaction(soft_sphere(), cutoff=lambda params: params["sigma"]),
    ):
        simulation = relaxation(
            interaction,
            lambda params, key: position,
            params=params,
            scale=lambda params: Scale(params["sigma"], params["epsilon"] / params["sigma"] ** 2),
            cell=lambda params: jnp.diag(box),
        )
        result = jax.jit(converge(simulation, 2000))(simulation.init(params, jax.random.key(0)), params)
        assert int(result.status) == Status.CONVERGED
        energies.append(float(simulation.diagnose(result.state, params)["energy"]))
    # The same minimizer on the same energy walks to the same minimum; forces of 1e-10 leave 1e-20 of energy.
    assert energies[0] == pytest.approx(energies[1], rel=1e-10)
