"""Pair potentials: forces against derivatives, positions of minima, smoothness of cut-offs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.errors import UserError
from simkit.molecular.potentials import (
    energy_shifted,
    force_shifted,
    lennard_jones,
    lorentz_berthelot,
    mie,
    morse,
    morse_diatomic,
    pair_potential,
    soft_sphere,
    switched,
    tail_energy,
    tail_pressure,
    truncated,
    weeks_chandler_andersen,
)
from tests.tables import every


def _gaussian(distance, *, epsilon, sigma):
    return epsilon * jnp.exp(-((distance / sigma) ** 2))


LENGTHS = {"epsilon": 1.3, "sigma": 0.9}
POTENTIALS = {
    "soft sphere": (soft_sphere(2.5), LENGTHS),
    "lennard-jones": (lennard_jones(), LENGTHS),
    "mie 14-7": (mie(14, 7), LENGTHS),
    "mie 9-6": (mie(9, 6), LENGTHS),
    "mie 10.5-4.5": (mie(10.5, 4.5), LENGTHS),
    "weeks-chandler-andersen": (weeks_chandler_andersen(), LENGTHS),
    "morse": (morse(), {**LENGTHS, "rho": 6.0}),
    "morse diatomic": (morse_diatomic(), {"depth": 1.3, "alpha": 5.0, "bond_length": 0.9}),
    "user's own": (pair_potential(_gaussian), LENGTHS),
}
CUTOFFS = {
    "truncated": (truncated, {"cutoff": 2.0}),
    "energy-shifted": (energy_shifted, {"cutoff": 2.0}),
    "force-shifted": (force_shifted, {"cutoff": 2.0}),
    "switched": (switched, {"switch_on": 1.6, "cutoff": 2.0}),
}
EVERY = POTENTIALS | {
    f"{name}, {ending}": (wrap(POTENTIALS[name][0]), {**POTENTIALS[name][1], **more})
    for name in ("lennard-jones", "morse", "user's own")
    for ending, (wrap, more) in CUTOFFS.items()
}


@functools.cache
def program(wide):
    """Return the compiled ``distances -> {potential: (energy, force, slope of the energy)}`` of one precision."""
    kind = jnp.float64 if wide else jnp.float32

    def evaluate(distance):
        found = {}
        for name, (potential, parameters) in EVERY.items():
            energy = functools.partial(potential.energy, **{key: kind(value) for key, value in parameters.items()})
            force = potential.force(distance, **{key: kind(value) for key, value in parameters.items()})
            found[name] = energy(distance), force, jax.grad(lambda r, energy=energy: energy(r).sum())(distance)
        return found

    return jax.jit(evaluate)


def test_force_is_minus_the_derivative_of_the_energy(x64):
    found = program(True)(jnp.asarray(np.random.default_rng(0).uniform(0.5, 2.5, 303)))
    for name, (_, force, slope) in found.items():
        assert float(jnp.abs(force).max()) > 0.1, name
        # Both are closed expressions: some ten roundings of the largest term, which is at most 1e3 times the force
        # where attraction and repulsion cancel.
        np.testing.assert_allclose(force, -slope, rtol=1e-12, atol=1e-12, err_msg=name)


def test_energy_and_force_vanish_beyond_the_cutoff(x64):
    distance = jnp.linspace(2.0, 40.0, 303)
    found = program(True)(distance)
    for name in set(EVERY) - set(POTENTIALS):
        energy, force, _ = found[name]
        assert float(jnp.abs(energy).max()) == float(jnp.abs(force).max()) == 0, name


@every(("repulsion", "attraction"), [(12, 6), (9, 6), (14, 7), (36, 12), (10.5, 4.5)])
def test_the_mie_minimum_is_minus_epsilon_where_its_formula_puts_it(x64, repulsion, attraction):
    potential = mie(repulsion, attraction)
    minimum = 0.9 * (repulsion / attraction) ** (1 / (repulsion - attraction))
    # Values of order one, ten roundings; the force is a difference of terms of order 100.
    assert float(potential.energy(minimum, **LENGTHS)) == pytest.approx(-1.3, rel=1e-13)
    assert float(potential.force(minimum, **LENGTHS)) == pytest.approx(0, abs=1e-11)
    assert float(potential.energy(0.9, **LENGTHS)) == pytest.approx(0, abs=1e-13)


def test_lennard_jones_has_its_textbook_values(x64):
    potential = lennard_jones()
    # 4 (2^-12 - 2^-6) and -U'(2) = 24 (2 * 2^-13 - 2^-7), exact in binary.
    assert float(potential.energy(2.0, epsilon=1.0, sigma=1.0)) == 4 * (2**-12 - 2**-6)
    assert float(potential.force(2.0, epsilon=1.0, sigma=1.0)) == 24 * (2 * 2**-13 - 2**-7)
    # The curvature at the minimum is 72 epsilon / (2^(1/3) sigma^2).
    stiffness = -jax.grad(lambda r: potential.force(r, epsilon=1.3, sigma=0.9))(2 ** (1 / 6) * 0.9)
    assert float(stiffness) == pytest.approx(72 * 1.3 / (2 ** (1 / 3) * 0.81), rel=1e-12)


def test_morse_has_its_textbook_minimum_and_stiffness(x64):
    potential, parameters = POTENTIALS["morse diatomic"]
    assert float(potential.energy(0.9, **parameters)) == pytest.approx(-1.3, rel=1e-15)
    assert float(potential.force(0.9, **parameters)) == 0
    stiffness = -jax.grad(lambda r: potential.force(r, **parameters))(0.9)
    assert float(stiffness) == pytest.approx(2 * 1.3 * 5.0**2, rel=1e-14)


def test_the_core_of_lennard_jones_continues_smoothly(x64):
    potential, core = lennard_jones(), 0.09
    below, above = core * (1 - 1e-9), core * (1 + 1e-9)
    # The energy changes by 12 of its parts in 1e9 per part in 1e9 of distance, the force by 13.
    assert float(potential.energy(below, **LENGTHS)) == pytest.approx(
        float(potential.energy(above, **LENGTHS)), rel=3e-8
    )
    assert float(potential.force(below, **LENGTHS)) == pytest.approx(float(potential.force(above, **LENGTHS)), rel=3e-8)
    # A parabola: the force falls to zero along a line. One rounding per operation.
    assert float(potential.force(0.0, **LENGTHS)) == 0
    half, whole = (float(potential.force(r, **LENGTHS)) for r in (core / 2, core))
    assert half == pytest.approx(whole / 2, rel=1e-14)


def _jumps(name):
    """Return the jumps of energy, force and stiffness at the cut-off."""
    potential, parameters = EVERY[f"lennard-jones, {name}"]
    stiffness = jax.grad(lambda r: potential.force(r, **parameters))
    inside = 2.0 * (1 - 1e-12)
    return [
        abs(float(f))
        for f in (potential.energy(inside, **parameters), potential.force(inside, **parameters), stiffness(inside))
    ]


def test_cutoffs_are_as_smooth_as_documented(x64):
    # At r_c = 2 with sigma = 0.9 and epsilon = 1.3, U = -0.043, F = -0.128, F' = 0.44. Evaluated one part in 1e12
    # before the end, a vanishing quantity is at most its slope (order one) times 2e-12; the switch's stiffness is of
    # order U / 0.4^2 * 60 x with x = 5e-12.
    vanishing = 1e-10
    energy, force, _ = _jumps("truncated")
    assert energy > 0.04
    assert force > 0.1
    energy, force, _ = _jumps("energy-shifted")
    assert energy < vanishing
    assert force > 0.1
    energy, force, stiffness = _jumps("force-shifted")
    assert max(energy, force) < vanishing
    assert stiffness > 0.1
    assert max(_jumps("switched")) < vanishing


def test_tail_energy_is_the_one_tabulated_by_nist(x64):
    # 30 particles, cubic box of side 8, cut-off 3 (NIST Standard Reference Simulation Website, Lennard-Jones
    # configuration 4); six decimals are tabulated.
    tail = 30 * tail_energy(30 / 8**3, cutoff=3.0, epsilon=1.0, sigma=1.0)
    assert float(tail) == pytest.approx(-0.545166, abs=5e-7)


def test_tail_corrections_are_integrals_beyond_the_cutoff(x64):
    density, cutoff, potential = 0.7, 2.2, lennard_jones()
    # Substituting r = r_c / t turns the tail into a polynomial in t on [0, 1]: Gauss quadrature is exact.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t, w = jnp.asarray((nodes + 1) / 2), jnp.asarray(weights / 2)
    r = cutoff / t
    shell = 4 * jnp.pi * r**2 * w * cutoff / t**2
    energy = density / 2 * (shell * potential.energy(r, **LENGTHS)).sum()
    pressure = density**2 / 6 * (shell * r * potential.force(r, **LENGTHS)).sum()
    # A sum of twenty terms.
    assert float(tail_energy(density, cutoff=cutoff, **LENGTHS)) == pytest.approx(float(energy), rel=1e-12)
    assert float(tail_pressure(density, cutoff=cutoff, **LENGTHS)) == pytest.approx(float(pressure), rel=1e-12)


def test_mixing_gives_means_and_keeps_like_pairs(x64):
    epsilon, sigma = lorentz_berthelot(jnp.array([1.0, 4.0]), jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(epsilon, [[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_array_equal(sigma, [[1.0, 1.5], [1.5, 2.0]])


@every(("repulsion", "attraction"), [(6, 6), (6, 12), (12, 0), (float("nan"), 6)])
def test_exponents_without_a_minimum_are_refused(repulsion, attraction):
    with pytest.raises(UserError, match="attraction"):
        mie(repulsion, attraction)
