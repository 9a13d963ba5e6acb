"""Lennard-Jones fluid of molecular.system: averages, with and without a bath."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.core.status import Status
from simkit.errors import UserError
from simkit.molecular.analysis.order import highest_peak, radial_distribution
from simkit.molecular.potentials import lennard_jones, switched
from tests.molecular.systems.test_fluid import SKIP, fluid


@functools.cache
def melting():
    """Return a short run: its simulation, last state, frames and diagnostics."""
    simulation = fluid()
    run = jax.jit(trajectory(simulation, 20, 1))
    return simulation, *run(simulation.params, jax.random.key(0))


def test_origins_are_the_initial_positions_along_x(x64):
    _, _, frames, _ = melting()
    edge = (256 / 0.86) ** (1 / 3)
    np.testing.assert_allclose(frames["origin"][-1], frames["position"][0][:, 0] / edge, atol=1e-14)


def test_energy_is_the_integral_of_the_radial_distribution(x64):
    simulation, _, frames, found = melting()
    r, g = simulation.coordinates["distance"], np.asarray(frames["radial_distribution"][-1])
    potential = np.asarray(switched(lennard_jones()).energy(r, epsilon=1.0, sigma=1.0, switch_on=2.5, cutoff=3.0))
    near = 2 * np.pi * 0.86 * np.sum(g * potential * r**2) * (r[1] - r[0])
    # U (1 - S) and what lies beyond the cut-off, with g = 1.
    more = np.linspace(2.5, 60.0, 400_001)
    x = np.clip((more - 2.5) / 0.5, 0, 1)
    lost = 4 * (more**-12 - more**-6) * x**3 * (10 - x * (15 - 6 * x)) * more**2
    tail = 2 * np.pi * 0.86 * np.trapezoid(lost, more) - 2 * np.pi * 0.86 * 4 / 3 / 60.0**3
    # Shells of 0.005 blur the potential by U'' dr^2 / 24, about 1e-4 of it where atoms touch.
    assert near + tail == pytest.approx(float(found["mean_potential_energy_per_particle"][-1]), rel=3e-4)


def test_averages_are_those_of_the_frames_after_equilibration(x64):
    _, _, _, found = melting()
    for name in ("pressure", "temperature", "potential_energy_per_particle"):
        mean = np.asarray(found[name])[SKIP + 1 :].mean()
        # The same samples, their energies added up in another order.
        assert float(found[f"mean_{name}"][-1]) == pytest.approx(mean, rel=1e-10)
        assert np.isnan(found[f"mean_{name}"][: SKIP + 1]).all()


def test_without_a_bath_energy_and_momentum_are_conserved_as_the_crystal_melts(x64):
    simulation, state, _, found = melting()
    assert "friction" not in simulation.params
    assert int(simulation.status(state, simulation.params)) == Status.OK
    # Half of the kinetic energy goes into the lattice, by equipartition if it were harmonic.
    assert float(found["temperature"][-1]) == pytest.approx(0.45, rel=0.25)
    exchanged = np.ptp(found["kinetic_energy"])
    # (omega h)^2 / 8 with omega about 20 for atoms that meet: 1e-3.
    assert np.ptp(found["energy"]) < 5e-3 * exchanged
    assert np.max(found["momentum"]) < 1e-11


def test_atoms_start_at_rest_as_a_whole_on_their_sites(x64):
    _, _, frames, found = melting()
    assert float(jnp.max(frames["displacement"][0])) < 1e-13
    # Twelve neighbors at 1.18, 6 at 1.67: the first shell of the face-centered cubic lattice at this density.
    spacing = (2**0.5 / 0.86) ** (1 / 3)
    shells = radial_distribution(frames["position"][0], frames["cell"][0], reach=3.0, bins=600)
    assert np.flatnonzero(shells)[0] == int(spacing / 3.0 * 600)
    # The peak of a single shell is the shell itself, to half its thickness.
    assert float(highest_peak(shells, 3.0)[0]) == pytest.approx(spacing, abs=0.0051)
    assert float(found["mean_square_displacement"][-1]) > 0.01


def test_shells_beyond_half_the_cell_are_refused(x64):
    simulation = fluid(radial_distribution={"reach": 3.5})
    with pytest.raises(UserError, match=r"radial_distribution.reach = 3.5 is beyond half the cell"):
        simulation.check(simulation.params, jax.random.key(0))
