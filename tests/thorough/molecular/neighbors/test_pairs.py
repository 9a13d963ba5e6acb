"""Pair potentials and their sums over all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import spaces
from simkit.molecular.neighbors import pairs
from simkit.molecular.potentials import per_pair, soft_sphere
from tests.molecular.neighbors.test_pairs import energy_of, forces_of, overlapping
from tests.molecular.potentials.test_potentials import EVERY
from tests.tables import every


@pytest.mark.parametrize("name", EVERY)
def test_second_derivatives_and_those_with_respect_to_parameters_are_finite(x64, name):
    potential, parameters = EVERY[name]
    # Distances of every kind: none, overlap, the core's edge, ordinary, beyond every cut-off.
    distance = jnp.array([0.0, 1e-6, 0.05, 0.09, 0.3, 0.9, 1.0, 1.6, 2.0, 2.4, 50.0])

    def total(distance, parameters):
        return (potential.energy(distance, **parameters) + potential.force(distance, **parameters)).sum()

    given = {name: jnp.asarray(value) for name, value in parameters.items()}
    # No infinity can hide in the sum: one less another is not finite either.
    for derivative in (jax.grad(total, (0, 1)), jax.jacfwd(jax.grad(total, (0, 1)), (0, 1))):
        assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(derivative(distance, given)))


def test_particles_that_coincide_give_finite_derivatives(x64):
    position, space, parameters = overlapping(2)
    position = position.at[1].set(position[0])
    potential = soft_sphere(2.0)
    apart = pairs.all_pairs(position, space)
    assert float(apart.distance[0, 1]) == 0.0
    assert float(potential.energy(apart.distance, **parameters)[0, 1]) == pytest.approx(1.3 / 2)
    assert bool(jnp.isfinite(jax.grad(energy_of)(position, space, potential, parameters)).all())
    assert bool(jnp.isfinite(forces_of(position, space, potential, parameters)).all())
    curvature = jax.jacfwd(forces_of)(position, space, potential, parameters)
    assert bool(jnp.isfinite(curvature).all())


def test_species_may_have_a_table_of_parameters(x64):
    position, space, _ = overlapping(2)
    species = jnp.arange(len(position)) % 2
    epsilon = per_pair(jnp.array([[1.0, 0.5], [0.5, 2.0]]), species)
    sigma = per_pair(jnp.array([[1.0, 1.1], [1.1, 1.4]]), species)
    found = energy_of(position, space, soft_sphere(2.0), {"epsilon": epsilon, "sigma": sigma})
    total = 0.0
    for i in range(len(position)):
        for j in range(i):
            r = float(jnp.linalg.norm(spaces.displacement(space, position[i], position[j])))
            a, b = int(species[i]), int(species[j])
            e, s = [[1.0, 0.5], [0.5, 2.0]][a][b], [[1.0, 1.1], [1.1, 1.4]][a][b]
            total += e / 2 * max(1 - r / s, 0) ** 2
    # 276 pairs of order 0.1, summed in another order.
    assert float(found) == pytest.approx(total, rel=1e-13)


EXPONENTS = [2.0, 2.5, 2.7, 3.0]


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
