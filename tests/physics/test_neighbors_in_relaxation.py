"""Packings large enough for neighbor lists, against sums over all pairs at every step."""

import jax
import jax.numpy as jnp

from simkit.molecular import spaces
from simkit.molecular.minimizers import largest_norm
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.neighbor_list import NeighborList
from simkit.molecular.potentials import mean_diameter, soft_sphere
from tests.molecular.packings import packing


def over_all_pairs(position, diameter, box):
    """Return energy, forces and contacts per disk of harmonic disks, by looking at every pair."""
    apart, potential = pairs.all_pairs(position, spaces.periodic(box)), soft_sphere(2.0)
    touch = {"epsilon": jnp.ones(()), "sigma": mean_diameter(diameter)}
    energy = pairs.energy_per_particle(apart, potential, **touch).sum()
    contacts = (apart.is_pair & (apart.distance < touch["sigma"])).sum(axis=1)
    return energy, pairs.forces(apart, potential, **touch), contacts


def followed(simulation):
    """Return ``key -> (last state, (error of the force, force))`` over the first 150 steps."""
    params = simulation.params

    def step(state, _):
        state = simulation.step(state, params)
        observed = simulation.observe(state, params)
        _, force, _ = over_all_pairs(state.descent.position, observed["diameter"], observed["box"])
        return state, (largest_norm(state.descent.force - force), largest_norm(force))

    return lambda key: jax.lax.scan(step, simulation.init(params, key), None, length=150)


def check_forces(minimizer):
    """Follow two batches of packings from random starts, and hold every force against the sum over all pairs."""
    # Two simulations of different sizes in one process, each a batch.
    for particles in (136, 150):
        follow = jax.jit(jax.vmap(followed(packing(particles=particles, minimizer=minimizer))))
        end, (error, force) = follow(jax.random.split(jax.random.key(particles), 3))
        assert isinstance(end.neighbors, NeighborList)
        assert not bool(end.neighbors.overflowed.any())
        # The first collisions wear the list out, and the force falls far.
        assert int(end.neighbors.builds.min()) > 3
        assert float((force[:, -1] / force[:, 0]).max()) < 0.1
        # A force of order one is a sum of a few terms of distances of order 10, rounded at 2e-15.
        assert float(error.max()) < 1e-13


def test_forces_are_those_of_all_pairs_at_every_step_of_every_member(x64):
    check_forces("fire")
