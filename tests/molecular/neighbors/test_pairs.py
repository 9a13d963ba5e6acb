"""Pair potentials and their sums over all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.neighbors.cell_list import split_over_cores
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


@every("dimension", [2, 3])
def test_forces_are_minus_the_derivative_of_the_energy_and_sum_to_zero(x64, dimension):
    position, space, parameters = overlapping(dimension)

    @jax.jit
    def computed(position):
        """Return the energy, its derivative and the forces for each exponent."""
        return [
            (
                *jax.value_and_grad(energy_of)(position, space, soft_sphere(exponent), parameters),
                forces_of(position, space, soft_sphere(exponent), parameters),
            )
            for exponent in EXPONENTS
        ]

    direction, step = jnp.asarray(np.random.default_rng(3).normal(size=position.shape)), 1e-6
    cases = (computed(position + s * direction) for s in (-step, 0, step))
    for exponent, (behind, *_), (_, gradient, force), (ahead, *_) in zip(EXPONENTS, *cases, strict=True):
        assert float(jnp.abs(force).max()) > 0.1
        # Sums of some ten contacts of order one: a few hundred roundings of 2.2e-16 at most.
        np.testing.assert_allclose(force, -gradient, rtol=1e-12, atol=1e-13, err_msg=str(exponent))
        np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13, err_msg=str(exponent))
        # Energies of order ten: round-off 10 * 2.2e-16 / 1e-6 = 2e-9; truncation 1e-12 times the third derivative.
        power = float(-jnp.sum(force * direction))
        assert power == pytest.approx(float((ahead - behind) / (2 * step)), abs=2e-8), exponent


def test_energy_does_not_change_under_translation_or_permutation(x64):
    position, space, parameters = overlapping(2)
    potential = soft_sphere(2.5)
    computed = jax.jit(lambda position, parameters: energy_of(position, space, potential, parameters))
    energy = float(computed(position, parameters))
    moved = computed(position + jnp.array([0.3, 11.0]), parameters)
    # Coordinates of order 20 lose 4e-15, which contacts with forces of order one turn into energy, some 50 times.
    assert float(moved) == pytest.approx(energy, abs=1e-12)
    order = np.random.default_rng(4).permutation(len(position))
    shuffled = {**parameters, "sigma": parameters["sigma"][order][:, order]}
    assert float(computed(position[order], shuffled)) == pytest.approx(energy, abs=1e-13)


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

    @jax.jit
    def energy_at(volume):
        scaled = box * (volume / jnp.prod(box)) ** (1 / 3)
        return energy_of(reduced * scaled, spaces.periodic(scaled), potential, parameters)

    volume, step = jnp.prod(box), 1e-5
    difference = (energy_at(volume + step) - energy_at(volume - step)) / (2 * step)
    virial = jax.jit(lambda x: pairs.virial(pairs.all_pairs(x, spaces.periodic(box)), potential, **parameters))(
        reduced * box
    )
    # Round-off 10 * 2.2e-16 / 1e-5 = 2e-10 beside a pressure of order 0.1.
    assert float(jnp.trace(virial) / (3 * volume)) == pytest.approx(-float(difference), rel=1e-8)


def triangular_lattice(rows, columns):
    """Return a triangular lattice with unit spacing and its rectangular box."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    position = np.stack([x + 0.5 * (y % 2), y * np.sqrt(3) / 2], axis=-1).reshape(-1, 2)
    return jnp.asarray(position), jnp.array([columns, rows * np.sqrt(3) / 2])


@every("exponent", EXPONENTS)
def test_triangular_lattice_has_its_analytic_energy_and_pressure(x64, exponent):
    (position, box), potential = triangular_lattice(6, 5), soft_sphere(exponent)
    space = spaces.periodic(box)

    @jax.jit
    def computed(sigma):
        apart, parameters = pairs.all_pairs(position, space), {"epsilon": 0.7, "sigma": sigma}
        functions = pairs.energy_per_particle, pairs.virial, pairs.forces
        return [function(apart, potential, **parameters) for function in functions]

    for packing_fraction in (0.92, 1.0, 1.2):
        # phi = pi sigma^2 / (2 sqrt(3) a^2) with spacing a = 1: six neighbors touch above pi / sqrt(12) = 0.9069, and
        # the next ones, at sqrt(3), not before phi = 2.7.
        sigma = np.sqrt(packing_fraction * 2 * np.sqrt(3) / np.pi)
        overlap = 1 - 1 / sigma
        energy, virial, force = computed(sigma)
        # The overlap is a difference of numbers near one: a rounding of 1e-15 is 1e-12 of the smallest overlap, 0.007.
        np.testing.assert_allclose(energy, 3 * 0.7 / exponent * overlap**exponent, rtol=1e-11)
        # p = W / (2 V) with three contacts per particle and an area of sqrt(3) / 2 per particle.
        pressure = 3 * (0.7 / sigma) * overlap ** (exponent - 1) / np.sqrt(3)
        assert float(jnp.trace(virial) / (2 * space.volume)) == pytest.approx(pressure, rel=1e-11)
        np.testing.assert_allclose(force, 0, atol=1e-14)


def test_an_exponent_without_finite_stiffness_is_refused():
    for exponent in (1.5, float("nan")):
        with pytest.raises(UserError, match="below 2"):
            soft_sphere(exponent)
