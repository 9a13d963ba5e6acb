"""Pair potentials and their sums over all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.cores import split_over_cores
from simkit.molecular.potentials import mean_diameter, soft_sphere
from tests.every import every


def test_split_over_cores_returns_its_number_under_vmap_too():
    def total(x):
        return jax.lax.fori_loop(0, 5, lambda k, sums: sums + split_over_cores(k) * x, jnp.zeros_like(x))

    numbers = jnp.arange(6.0).reshape(3, 2)
    # 0 + 1 + 2 + 3 + 4, exact in binary.
    np.testing.assert_array_equal(jax.jit(jax.vmap(total))(numbers), 10 * numbers)


EXPONENTS = [2.0, 2.5, 2.7, 3.0]


def overlapping(dimension, count=24, seed=0):
    rng = np.random.default_rng(seed)
    box = jnp.asarray(rng.uniform(3.0, 4.0, dimension))
    position = jnp.asarray(rng.uniform(-1, 2, (count, dimension))) * box
    diameter = jnp.where(jnp.arange(count) < count // 2, 1.0, 1.4)
    return position, spaces.periodic(box), {"epsilon": 1.3, "sigma": mean_diameter(diameter)}


def energy_of(position, space, potential, parameters):
    return pairs.energy_per_particle(pairs.all_pairs(position, space), potential, **parameters).sum()


def forces_of(position, space, potential, parameters):
    return pairs.forces(pairs.all_pairs(position, space), potential, **parameters)


@every("exponent", EXPONENTS)
def test_force_is_minus_the_central_difference_of_the_energy(x64, exponent):
    position, space, parameters = overlapping(2)
    potential = soft_sphere(exponent)
    direction = jnp.asarray(np.random.default_rng(3).normal(size=position.shape))
    step = 1e-6
    ahead, behind = (energy_of(position + s * direction, space, potential, parameters) for s in (step, -step))
    power = -jnp.sum(forces_of(position, space, potential, parameters) * direction)
    # Energies of order ten: round-off 10 * 2.2e-16 / 1e-6 = 2e-9; truncation 1e-12 times the third derivative.
    assert float(power) == pytest.approx(float((ahead - behind) / (2 * step)), abs=2e-8)


@every("exponent", EXPONENTS)
def test_forces_sum_to_zero(x64, exponent):
    position, space, parameters = overlapping(3)
    force = forces_of(position, space, soft_sphere(exponent), parameters)
    # 24 forces of order one, each with a rounding of 2.2e-16 per contact.
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13)


def test_energy_does_not_change_under_translation_or_permutation(x64):
    position, space, parameters = overlapping(2)
    potential = soft_sphere(2.5)
    energy = float(energy_of(position, space, potential, parameters))
    moved = energy_of(position + jnp.array([0.3, 11.0]), space, potential, parameters)
    # Coordinates of order 20 lose 4e-15, which contacts with forces of order one turn into energy, some 50 times.
    assert float(moved) == pytest.approx(energy, abs=1e-12)
    order = np.random.default_rng(4).permutation(len(position))
    shuffled = {**parameters, "sigma": parameters["sigma"][order][:, order]}
    assert float(energy_of(position[order], space, potential, shuffled)) == pytest.approx(energy, abs=1e-13)


def test_no_particle_pushes_itself_when_positions_are_computed_on_the_fly(x64):
    position, space, parameters = overlapping(2)
    potential = soft_sphere(2.0)

    # A compiler may fuse the product into the difference of positions, and x - x is then no longer exactly zero.
    @jax.jit
    def compiled(scale, reduced):
        return forces_of(scale * reduced, space, potential, parameters)

    scale = jnp.asarray(7.3)
    # A self-force would be of order one; round-off of coordinates of order 10 is 1e-15 per contact.
    np.testing.assert_allclose(
        compiled(scale, position / scale), forces_of(position, space, potential, parameters), atol=1e-12
    )


def test_virial_pressure_is_minus_the_volume_derivative_of_the_energy(x64):
    position, _, parameters = overlapping(3)
    potential = soft_sphere(2.5)
    box = jnp.array([3.1, 3.3, 3.6])
    reduced = position / box

    def energy_at(volume):
        scaled = box * (volume / jnp.prod(box)) ** (1 / 3)
        return energy_of(reduced * scaled, spaces.periodic(scaled), potential, parameters)

    volume, step = jnp.prod(box), 1e-5
    difference = (energy_at(volume + step) - energy_at(volume - step)) / (2 * step)
    virial = pairs.virial(pairs.all_pairs(reduced * box, spaces.periodic(box)), potential, **parameters)
    # Round-off 10 * 2.2e-16 / 1e-5 = 2e-10 beside a pressure of order 0.1.
    assert float(jnp.trace(virial) / (3 * volume)) == pytest.approx(-float(difference), rel=1e-8)


def triangular_lattice(rows, columns):
    """Return a triangular lattice with unit spacing and its rectangular box."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    position = np.stack([x + 0.5 * (y % 2), y * np.sqrt(3) / 2], axis=-1).reshape(-1, 2)
    return jnp.asarray(position), jnp.array([columns, rows * np.sqrt(3) / 2])


@every("exponent", EXPONENTS)
@every("packing_fraction", [0.92, 1.0, 1.2])
def test_triangular_lattice_has_its_analytic_energy_and_pressure(x64, exponent, packing_fraction):
    position, box = triangular_lattice(6, 5)
    # phi = pi sigma^2 / (2 sqrt(3) a^2) with spacing a = 1: six neighbors touch above pi / sqrt(12) = 0.9069, and the
    # next ones, at sqrt(3), not before phi = 2.7.
    sigma = np.sqrt(packing_fraction * 2 * np.sqrt(3) / np.pi)
    potential, space = soft_sphere(exponent), spaces.periodic(box)
    parameters = {"epsilon": 0.7, "sigma": sigma}
    apart = pairs.all_pairs(position, space)
    overlap = 1 - 1 / sigma
    energy = 3 * 0.7 / exponent * overlap**exponent
    # p = W / (2 V) with three contacts per particle and an area of sqrt(3) / 2 per particle.
    pressure = 3 * (0.7 / sigma) * overlap ** (exponent - 1) / np.sqrt(3)
    # The overlap is a difference of numbers near one: a rounding of 1e-15 is 1e-12 of the smallest overlap, 0.007.
    found = pairs.energy_per_particle(apart, potential, **parameters)
    np.testing.assert_allclose(found, energy, rtol=1e-11)
    virial = pairs.virial(apart, potential, **parameters)
    assert float(jnp.trace(virial) / (2 * space.volume)) == pytest.approx(pressure, rel=1e-11)
    np.testing.assert_allclose(pairs.forces(apart, potential, **parameters), 0, atol=1e-14)


def test_an_exponent_without_finite_stiffness_is_refused():
    for exponent in (1.5, float("nan")):
        with pytest.raises(UserError, match="below 2"):
            soft_sphere(exponent)
