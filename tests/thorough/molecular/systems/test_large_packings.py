"""Packings large enough for neighbor lists, against sums over all pairs at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.engine.driver import Plan
from simkit.molecular.description import starts
from simkit.molecular.minimizers import largest_norm
from tests.driving import drive
from tests.molecular.packings import packing
from tests.physics.test_neighbors_in_relaxation import check_forces, over_all_pairs


def test_forces_are_those_of_all_pairs_at_every_step_of_every_member_of_lbfgs(x64):
    check_forces("lbfgs")


def test_forces_are_those_of_all_pairs_through_an_overflow(x64, monkeypatch):
    monkeypatch.setattr(starts, "DEVIATIONS", 0.0)
    simulation, steps = packing(particles=136), 40
    pieces = list(drive(simulation, simulation.params, jax.random.key(3), Plan(steps=steps, every=1)))
    frames = {name: np.concatenate([piece.arrays[name] for piece in pieces]) for name in pieces[0].arrays}
    assert pieces[-1].state.neighbors.index.shape[0] > 8
    energy, force, contacts = jax.jit(jax.vmap(over_all_pairs))(
        *(jnp.asarray(frames[f"observed.{name}"]) for name in ("position", "diameter", "box"))
    )
    assert len(energy) == steps + 1
    # Sums of some 400 contacts in another order; positions were wrapped, which rounds at 2e-15.
    np.testing.assert_allclose(frames["diagnosed.energy"], energy, rtol=1e-12)
    np.testing.assert_allclose(frames["diagnosed.max_force"], jax.vmap(largest_norm)(force), rtol=1e-12)
    np.testing.assert_array_equal(frames["observed.contacts"], contacts)


def test_derivative_of_a_listed_packing_equals_the_relaxed_difference(x64):
    simulation = packing(particles=136, force_tolerance=1e-13)

    @jax.jit
    def relaxed(params, key):
        return converge(simulation, 20_000)(simulation.init(params, key), params)

    result = relaxed(simulation.params, jax.random.key(0))
    assert int(result.status) == Status.CONVERGED

    @jax.jit
    def pressure(value):
        params = {**simulation.params, "packing_fraction": value}
        return simulation.diagnose(converge(simulation, 20_000)(result.state, params).state, params)["pressure"]

    value, step = simulation.params["packing_fraction"], 1e-6
    difference = (pressure(value + step) - pressure(value - step)) / (2 * step)
    # Forces left at 1e-13 change the pressure by 1e-15 and the difference by 1e-9 beside 0.4; 1e-5 leaves room for a
    # contact that opens or closes.
    assert float(jax.jit(jax.grad(pressure))(value)) == pytest.approx(float(difference), rel=1e-5)


def test_four_thousand_disks_relax_in_single_precision():
    simulation = packing(particles=4096, force_tolerance=1e-4)

    @jax.jit
    def run(params, key):
        result = converge(simulation, 10_000)(simulation.init(params, key), params)
        return result.status, simulation.diagnose(result.state, params)

    status, end = run(simulation.params, jax.random.key(0))
    assert int(status) == Status.CONVERGED
    # The kept force and the one worked out anew differ by round-off, 1e-6.
    assert float(end["max_force"]) < 1.02e-4
    # O'Hern et al.: Z = 3.98 + (3.6 +- 0.5) (0.9 - 0.842)^0.5; weak contacts open late, so forces of 1e-4 add little.
    assert float(end["contact_number"]) == pytest.approx(4.847, abs=0.12)
