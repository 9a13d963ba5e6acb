"""Soft disks relaxed to mechanical equilibrium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status, status_of
from simkit.errors import UserError
from tests.every import every
from tests.molecular.packings import packing

MAX_STEPS = 20_000


def changed(simulation, **values):
    return simulation.with_params(**values).params


def relaxed(simulation, params, seed=0):
    """Return the converged packing and its diagnostics."""

    @jax.jit
    def run(params, key):
        result = converge(simulation, MAX_STEPS)(simulation.init(params, key), params)
        return result, simulation.diagnose(result.state, params)

    result, diagnostics = run(params, jax.random.key(seed))
    assert int(result.status) == Status.CONVERGED
    return result, diagnostics


def test_a_packing_relaxed_for_other_parameters_is_not_converged(x64):
    simulation = packing(particles=32)
    state = relaxed(simulation, simulation.params)[0].state
    assert status_of(simulation)(state, simulation.params) == Status.CONVERGED
    assert status_of(simulation)(state, changed(simulation, packing_fraction=0.91)) != Status.CONVERGED
    assert status_of(simulation)(state, changed(simulation, diameter_ratio=1.41)) != Status.CONVERGED


def test_energy_per_particle_and_energies_of_particles_add_up(x64):
    simulation = packing(particles=32)
    params = changed(simulation, stiffness=2.5)
    result, diagnostics = relaxed(simulation, params)
    observed = simulation.observe(result.state, params)
    # 32 positive terms, summed in another order.
    assert float(observed["energy_of_particle"].sum()) == pytest.approx(float(diagnostics["energy"]), rel=1e-13)
    assert float(diagnostics["energy_per_particle"] * 32) == pytest.approx(float(diagnostics["energy"]), rel=1e-14)


def test_observed_disks_fill_the_box_to_the_packing_fraction(x64):
    simulation = packing(particles=32)
    params = changed(simulation, packing_fraction=0.87, diameter_ratio=1.7, small_diameter=0.3)
    observed = simulation.observe(simulation.init(params, jax.random.key(0)), params)
    area = np.pi / 4 * (observed["diameter"] ** 2).sum()
    # A sum of 32 terms and a square root: a few roundings.
    assert float(area / observed["box"].prod()) == pytest.approx(0.87, rel=1e-13)
    assert sorted(set(np.asarray(observed["diameter"]).round(12))) == [0.3, 0.51]
    assert bool(jnp.all((observed["position"] >= 0) & (observed["position"] <= observed["box"])))
    for name, dimensions in simulation.dimensions.items():
        assert observed[name].ndim == len(dimensions)


def test_residual_forces_have_no_resultant(x64):
    simulation = packing(particles=32)
    state = simulation.init(simulation.params, jax.random.key(0))
    before = state.descent.position.mean(axis=0)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 500, lambda _, s: simulation.step(s, simulation.params), s))(state)
    # Every step adds a rounding of some 1e-16 of the box, which is 6.4 wide, to the mean.
    np.testing.assert_allclose(state.descent.position.mean(axis=0), before, atol=6e-13)


@every(
    ("values", "message"),
    [
        ({"exponent": 1.0}, "interactions\\[0\\].exponent = 1 is outside"),
        ({"force_tolerance": 0.0}, "relax.force_tolerance = 0 is outside"),
    ],
)
def test_impossible_configuration_is_refused(values, message):
    with pytest.raises(UserError, match=message):
        packing(32, **values)
