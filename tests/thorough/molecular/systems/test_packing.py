"""Soft disks relaxed to mechanical equilibrium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of
from tests.molecular.packings import packing
from tests.physics.test_relaxed_derivatives import check_implicit_derivative

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


@pytest.mark.parametrize("exponent", [2.0, 2.5])
@pytest.mark.parametrize("values", [{}, {"packing_fraction": 0.7}, {"packing_fraction": 1.2}, {"diameter_ratio": 1.0}])
def test_every_packing_relaxes_to_force_balance(x64, exponent, values):
    simulation = packing(particles=32, exponent=exponent)
    params = changed(simulation, **values)
    start = simulation.diagnose(simulation.init(params, jax.random.key(0)), params)
    _, end = relaxed(simulation, params)
    assert float(end["max_force"]) < 1e-10
    assert float(end["energy"]) < float(start["energy"])


def test_energy_falls_over_every_stretch_of_fifty_steps(x64):
    simulation = packing(particles=64)
    _, _, diagnostics = jax.jit(trajectory(simulation, 1500, 50))(simulation.params, jax.random.key(1))
    energy = np.asarray(diagnostics["energy"])
    assert energy[-1] < 0.05 * energy[0]
    # FIRE may climb for a step but stops when it does. The end is the minimum, flat to round-off of the sum.
    assert np.all(np.diff(energy) <= 1e-14 * energy[0])


def test_path_does_not_depend_on_the_units_of_energy_and_length(x64):
    simulation = packing(particles=32)
    reference, diagnostics = relaxed(simulation, simulation.params)
    # Powers of two, so that every rounding is the same.
    stiffness, diameter = 2.0**-8, 2.0**15
    scaled, rescaled = relaxed(simulation, changed(simulation, stiffness=stiffness, small_diameter=diameter))
    assert int(scaled.iterations) == int(reference.iterations)
    for name, unit in {"energy": stiffness, "pressure": stiffness / diameter**2, "contact_number": 1.0}.items():
        assert float(rescaled[name]) == pytest.approx(unit * float(diagnostics[name]), rel=1e-14)


def test_a_converged_packing_does_not_move(x64):
    simulation = packing(particles=32, force_tolerance=1e-12)
    result, diagnostics = relaxed(simulation, simulation.params)
    params = simulation.params
    later = jax.jit(lambda s: jax.lax.fori_loop(0, 200, lambda _, s: simulation.step(s, params), s))(result.state)
    moved = jnp.abs(later.descent.position - result.state.descent.position).max()
    # 32 forces of 1e-12 against the softest mode, of stiffness 0.0135 here: 4.2e-10.
    assert float(moved) < 6.4e-10
    after = simulation.diagnose(later, params)
    assert float(after["max_force"]) < 1e-12
    assert float(after["energy"]) == pytest.approx(float(diagnostics["energy"]), rel=1e-12)


def test_pressure_is_minus_the_volume_derivative_of_the_relaxed_energy(x64):
    simulation = packing(particles=32, force_tolerance=1e-13)
    result, diagnostics = relaxed(simulation, simulation.params)

    @jax.jit
    def energy_at(packing_fraction):
        params = {**simulation.params, "packing_fraction": packing_fraction}
        return simulation.diagnose(converge(simulation, MAX_STEPS)(result.state, params).state, params)["energy"]

    packing_fraction, step = simulation.params["packing_fraction"], 1e-5
    slope = (energy_at(packing_fraction + step) - energy_at(packing_fraction - step)) / (2 * step)
    # V = A / phi, so p = -dE/dV = phi^2 / A dE/dphi, with A the area of the disks.
    area = np.pi / 4 * 16 * (1 + 1.4**2)
    pressure = packing_fraction**2 / area * slope
    # Truncation of the difference, 1e-10 times a third derivative of order 1e3 of an energy of order 0.1.
    assert float(diagnostics["pressure"]) == pytest.approx(float(pressure), rel=1e-6)


def test_implicit_derivative_equals_the_dense_solve(x64):
    simulation = packing(particles=32, force_tolerance=1e-13)
    state = relaxed(simulation, simulation.params)[0].state
    equilibrium = simulation.equilibrium

    def residual(position, packing_fraction):
        params = {**simulation.params, "packing_fraction": packing_fraction}
        return equilibrium.residual(position.reshape(32, 2), params).ravel()

    position = equilibrium.unknowns(state).ravel()
    packing_fraction = simulation.params["packing_fraction"]
    stiffness, load = map(np.asarray, jax.jit(jax.jacfwd(residual, argnums=(0, 1)))(position, packing_fraction))
    dense = -np.linalg.pinv(stiffness, rcond=1e-9, hermitian=True) @ load

    def solution(packing_fraction):
        params = {**simulation.params, "packing_fraction": packing_fraction}
        return equilibrium.unknowns(converge(simulation, MAX_STEPS)(state, params).state).ravel()

    _, implicit = jax.jit(lambda x: jax.jvp(solution, (x,), (jnp.ones_like(x),)))(packing_fraction)
    # A conjugate-gradient residual of 2e-12 at a condition number of 330: 6e-10 of the norm, for 64 components 5e-9.
    np.testing.assert_allclose(implicit.ravel(), dense, rtol=0, atol=1e-8 * np.abs(dense).max())


def test_stiffness_matrix_is_symmetric_with_translations_as_zero_modes(x64):
    simulation = packing(particles=32, force_tolerance=1e-13)
    params = changed(simulation, packing_fraction=1.0)
    state = relaxed(simulation, params)[0].state
    assert float(simulation.diagnose(state, params)["rattler_fraction"]) == 0.0
    residual, position = simulation.equilibrium.residual, simulation.equilibrium.unknowns(state)
    matrix = np.asarray(jax.jit(jax.jacfwd(residual))(position, params)).reshape(64, 64)
    # Entries of order one: 2.2e-16 times a few contacts.
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
    # The equations hold the two translations with the stiffness of a contact, k / d^2.
    translations = np.kron(np.ones((32, 1)), np.eye(2)) / np.sqrt(32)
    forces = matrix - translations @ translations.T
    values = np.linalg.eigvalsh(forces)
    assert np.all(np.abs(values[:2]) < 1e-13)
    assert values[2] > 1e-3
    np.testing.assert_allclose(forces @ translations, 0, atol=1e-13)


def test_vmap_over_parameters_and_seeds_equals_a_loop(x64):
    simulation = packing(particles=16)
    fractions, seeds = jnp.array([0.8, 0.9, 1.1]), jnp.arange(3)

    def run(packing_fraction, seed):
        params = {**simulation.params, "packing_fraction": packing_fraction}
        state = simulation.init(params, jax.random.key(seed))
        # Few enough steps that round-off is not amplified by the disorder of the first collisions.
        state = jax.lax.fori_loop(0, 20, lambda _, s: simulation.step(s, params), state)
        return simulation.diagnose(state, params)

    batched = jax.jit(jax.vmap(run))(fractions, seeds)
    for index in range(3):
        single = jax.jit(run)(fractions[index], seeds[index])
        for name, value in single.items():
            assert float(batched[name][index]) == pytest.approx(float(value), rel=1e-12), name


def test_step_keeps_every_dtype_in_single_precision():
    simulation = packing(particles=16)
    state = simulation.init(simulation.params, jax.random.key(0))
    stepped = jax.eval_shape(simulation.step, state, simulation.params)
    assert jax.tree.map(lambda a: (a.shape, a.dtype, a.weak_type), stepped) == jax.tree.map(
        lambda a: (a.shape, a.dtype, a.weak_type), state
    )
    assert state.descent.position.dtype == jnp.float32


def test_single_precision_reaches_its_advised_tolerance():
    simulation = packing(particles=32, force_tolerance=1e-5)
    _, diagnostics = relaxed(simulation, simulation.params)
    assert diagnostics["pressure"].dtype == jnp.float32
    assert float(diagnostics["max_force"]) < 2e-5


def test_step_exports_without_custom_calls(x64):
    simulation = packing(particles=16)
    state = simulation.init(simulation.params, jax.random.key(0))
    text = jax.jit(simulation.step).lower(state, simulation.params).as_text()
    assert "custom_call" not in text


@pytest.mark.parametrize("name", ["packing_fraction", "diameter_ratio", "stiffness", "small_diameter"])
@pytest.mark.parametrize("exponent", [2.0, 2.5])
def test_implicit_derivative_of_the_pressure_equals_the_relaxed_difference(x64, exponent, name):
    check_implicit_derivative(exponent, name, forward_too=True)
