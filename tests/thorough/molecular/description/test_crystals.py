"""Relaxation of disordered crystals and their cells, as the scenarios describe them, against lattice sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular.structures import lattices
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load

CUTOFF, SWITCH_ON = 2.6, 1.6
SMALL = {"cutoff": CUTOFF, "switch_on": SWITCH_ON}


def crystal(*, cutoff=4.0, switch_on=2.5, repeats=(4, 4, 4)):
    """Return the simulation of the scenario with another size and cut-off."""
    ending = {"cutoff": f"{cutoff}*sigma", "switch_on": switch_on / cutoff}
    ending = {f"config.interactions.0.{key}": value for key, value in ending.items()}
    return build(load("lennard_jones_crystal", {"config.start.repeats": list(repeats), **ending}))


def lattice_energy(bond, *, cutoff, switch_on):
    """Return the energy per atom of a face-centered cubic crystal summed site by site, its tail by trapezoids."""
    steps = np.arange(-8, 9)
    sites = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    sites = sites[(sites.sum(axis=1) % 2 == 0) & sites.any(axis=1)]
    distance = bond / np.sqrt(2) * np.sqrt((sites**2).sum(axis=1))

    def energy(r):
        return 4 * (r**-12 - r**-6)

    def switch(r):
        x = np.clip((r - switch_on) / (cutoff - switch_on), 0, 1)
        return 1 - 10 * x**3 + 15 * x**4 - 6 * x**5

    r = np.linspace(switch_on, cutoff, 20001)
    missing = np.trapezoid(energy(r) * (1 - switch(r)) * r**2, r) + 4 * (cutoff**-9 / 9 - cutoff**-3 / 3)
    return (energy(distance) * switch(distance)).sum() / 2 + 2 * np.pi * np.sqrt(2) / bond**3 * missing


@pytest.fixture(scope="module")
def relaxed():
    """Return a small crystal, how it came to rest, and its diagnostics."""
    with jax.enable_x64(True):
        simulation = crystal(**SMALL)

        @jax.jit
        def run(params, key):
            result = converge(simulation, 400)(simulation.init(params, key), params)
            return result, simulation.diagnose(result.state, params)

        params = simulation.params
        return [run({**params, "pressure": jnp.asarray(p)}, jax.random.key(0)) for p in (0.0, 5.0)]


def test_a_disordered_crystal_relaxes_to_its_sites(relaxed):
    for result, end in relaxed:
        assert int(result.status) == Status.CONVERGED
        # Forces of 1e-10 on bonds of stiffness 57, and on soft modes some ten times softer.
        assert float(end["largest_displacement"]) < 1e-10
        # All bonds are alike, so nothing is left for any single one.
        assert float(end["max_force"]) < 1.1e-10


def test_relaxed_energy_and_size_are_the_minimum_of_the_lattice_sum(relaxed):
    _, end = relaxed[0]
    bond, settings = float(end["nearest_distance"]), SMALL
    # The trapezoidal rule leaves 1e-9 of a tail of order 1.
    assert float(end["energy_per_particle"]) == pytest.approx(lattice_energy(bond, **settings), abs=1e-8)
    step = 1e-5
    below, here, above = (lattice_energy(bond + s, **settings) for s in (-step, 0, step))
    # A bond off by 2e-8 would show, for the curvature is about 600. Of the difference, the third derivative, about
    # -1e4, makes step^2 1e4 / 6 = 2e-7, and rounding 1e-14 / step = 1e-9.
    assert abs(above - below) / (2 * step) < 1e-5
    assert below > here < above


def test_pressure_is_the_volume_derivative_of_the_lattice_sum(relaxed):
    _, end = relaxed[1]
    assert float(end["pressure"]) == pytest.approx(5, abs=1e-9)
    bond, settings, step = float(end["nearest_distance"]), SMALL, 1e-4
    slope = (lattice_energy(bond + step, **settings) - lattice_energy(bond - step, **settings)) / (2 * step)
    # p = -dE/dV with V = bond^3 / sqrt(2) per atom; the central difference errs by step^2 E''' / 6, about 1e-5 of it.
    assert -slope / (3 * bond**2 / np.sqrt(2)) == pytest.approx(5, rel=1e-4)


def test_the_full_range_sum_is_the_limit_of_long_cutoffs():
    # -A6^2 / (2 A12), independent of any cut-off, at its bond (2 A12 / A6)^(1/6).
    exact, bond = -8.6102002, 1.0901730
    errors = [abs(lattice_energy(bond, cutoff=c, switch_on=0.6 * c) / exact - 1) for c in (2.5, 4.0, 5.5)]
    assert errors[0] > errors[1] > errors[2]
    # The default.
    assert abs(lattice_energy(bond, cutoff=4.0, switch_on=2.5) / exact - 1) < 3e-5


def test_derivative_of_the_lattice_constant_equals_the_relaxed_difference(x64, relaxed):
    simulation = crystal(**SMALL)
    state = relaxed[0][0].state

    @jax.jit
    def size(pressure):
        params = {**simulation.params, "pressure": pressure}
        return simulation.diagnose(converge(simulation, 400)(state, params).state, params)["lattice_constant"]

    slope, step = float(jax.jit(jax.grad(size))(0.0)), 0.01
    difference = (float(size(step)) - float(size(-step))) / (2 * step)
    # The bulk modulus of 75 changes by 8 per unit of pressure: second order, (0.01 * 8 / 75)^2 = 1e-6.
    assert slope == pytest.approx(difference, rel=1e-5)


def test_silicon_in_the_smallest_cell_has_two_bonds_per_atom(x64):
    simulation = build(load("silicon", {"config.start.repeats": [2, 2, 2]}))

    @jax.jit
    def run(params, key):
        result = converge(simulation, 400)(simulation.init(params, key), params)
        return result.status, simulation.diagnose(result.state, params)

    status, end = run(simulation.params, jax.random.key(1))
    assert int(status) == Status.CONVERGED
    # Bonds sit at the minimum of the pair energy, -epsilon to the ten digits of its constants; angles cost nothing.
    assert float(end["energy_per_particle"]) == pytest.approx(-2 * 2.1683, rel=1e-9)
    assert float(end["lattice_constant"]) == pytest.approx(4 / np.sqrt(3) * 2 ** (1 / 6) * 2.0951, rel=1e-5)


def test_start_has_the_given_strain_and_disorder(x64):
    simulation = crystal(**SMALL)
    params = {**simulation.params, "initial_strain": jnp.asarray(0.03), "disorder": jnp.asarray(0.07)}
    state = jax.jit(simulation.init)(params, jax.random.key(3))
    bond = 1.03 * 1.0901730
    away = np.asarray(state.descent.position[:256] - lattices.face_centered_cubic((4, 4, 4), spacing=bond).position)
    # 768 uniform numbers come within 2 % of their bound (probability of none: 0.98^768 = 2e-7).
    assert 0.98 * 0.07 * bond < np.abs(away).max() <= 0.07 * bond * (1 + 1e-12)
