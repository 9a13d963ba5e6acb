"""Convergence, implicit derivatives, members in flight, and buffers that grow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core import gradient
from simkit.core.averages import averaged
from simkit.core.converge import converge, converge_with_growth
from simkit.core.ensemble import ensemble
from simkit.core.implicit import solve_symmetric
from simkit.core.objective import Objective
from simkit.core.rollout import trajectory
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status, converged_when
from simkit.storage.store import Store
from tests.core.test_converge import assert_same, recorded, search, swing
from tests.core.toys import descent


def test_derivative_at_a_saddle_is_nan_not_wrong(x64):
    # E = (x1 - x0)^4 / 4 - k (x1 - x0)^2 / 2 is stationary at x1 = x0, where its curvature is -k.
    def residual(x, params):
        stretch = x[1] - x[0]
        force = stretch**3 - params["k"] * stretch - params["pull"]
        return jnp.stack([-force, force])

    simulation = Simulation(
        init=lambda params, key: jnp.zeros(2),
        step=lambda state, params: state,
        observe=lambda state, params: {"x": state},
        diagnose=lambda state, params: {"iteration": jnp.int32(0), "stretch": state[1] - state[0]},
        params={"k": jnp.asarray(1.0), "pull": jnp.asarray(0.0)},
        status=converged_when(lambda state, params: jnp.bool_(True)),
        converges=True,
        equilibrium=Equilibrium(unknowns=lambda state: state, residual=residual, replace=lambda state, x: x),
    )
    assert np.isnan(jax.grad(Objective(simulation, "stretch", 1))(simulation.params, jax.random.key(0))["pull"])


def test_implicit_derivative_equals_unrolled_and_central_difference(x64):
    simulation, key = descent(), jax.random.key(0)
    wrt = ["rest", "stiffness"]
    for mode in ("reverse", "forward"):
        checked = gradient.check_gradient(Objective(simulation, "length", 10_000), simulation.params, key, wrt, mode)
        # Central differences at h = 6e-6 of a minimum converged to 1e-12: errors of 1e-7 at the most.
        assert max(checked.relative_difference.values()) < 1e-6

    unrolled = jax.grad(lambda params: trajectory(simulation, 2000, 2000)(params, key)[2]["length"][-1])
    for name, derivative in unrolled(simulation.params).items():
        # The iteration contracts by at least 0.99 per step: after 2000 steps its derivative has converged to 1e-8.
        np.testing.assert_allclose(checked.derivative[name], derivative, rtol=1e-6)


def test_every_member_of_a_batch_stops_on_its_own(x64):
    simulation = descent()
    keys = jax.random.split(jax.random.key(1), 5)

    def run(key):
        return converge(simulation, 10_000)(simulation.init(simulation.params, key), simulation.params)

    together, alone = jax.jit(jax.vmap(run))(keys), [jax.jit(run)(key) for key in keys]
    assert list(together.iterations) == [int(result.iterations) for result in alone]
    assert len(set(map(int, together.iterations))) > 1 and (together.status == Status.CONVERGED).all()
    np.testing.assert_allclose(together.state.position, np.stack([r.state.position for r in alone]), rtol=1e-12)


def test_derivative_through_unfinished_iterations_has_the_status_max_steps(x64):
    simulation = dataclasses.replace(descent(tolerance=1e-10), equilibrium=None)
    key = jax.random.key(0)
    for steps, expected in ((3, Status.MAX_STEPS), (5000, Status.CONVERGED)):
        _, status = jax.jit(Objective(simulation, "length", steps).with_status)(simulation.params, key)
        assert status == expected


COUNT = 12


def ring(shift=0.0):
    """Return the Laplacian of a ring, whose zero mode is the constant vector, less a shift of all the others."""
    one = np.eye(COUNT)
    laplacian = 2 * one - np.roll(one, 1, axis=0) - np.roll(one, -1, axis=0)
    return laplacian - shift * (one - 1 / COUNT)


def centered(x):
    return x - x.mean()


def solved(matrix, b, project=centered):
    return jax.jit(lambda b: solve_symmetric(lambda x: jnp.asarray(matrix) @ x, b, project))(b)


def test_solution_is_the_one_without_the_zero_mode(x64):
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    # The residual ends at 2e-12 of the right-hand side; the softest mode is 0.27.
    np.testing.assert_allclose(solved(ring(), b), np.linalg.pinv(ring()) @ centered(b), atol=1e-10)


def test_derivative_with_respect_to_the_operator_is_that_of_the_inverse(x64):
    b = centered(jax.random.normal(jax.random.key(0), (COUNT,)))

    def compliance(scale):
        return b @ solve_symmetric(lambda x: scale * (jnp.asarray(ring()) @ x), b, centered)

    value, slope = jax.jit(jax.value_and_grad(compliance))(2.0)
    assert float(slope) == pytest.approx(-float(value) / 2, rel=1e-10)
    assert float(jax.jit(jax.jacfwd(compliance))(2.0)) == pytest.approx(float(slope), rel=1e-10)


def test_without_a_minimum_the_solution_is_nan(x64):
    b = jax.random.normal(jax.random.key(0), (COUNT,))
    # The softest modes, 2 - 2 cos(30 degrees) = 0.268, become unstable.
    assert np.isfinite(solved(ring(0.2), b)).all()
    assert np.isnan(solved(ring(0.3), b)).all()
    # A zero mode that is not projected out has no solution either.
    assert np.isnan(solved(ring(), b, lambda x: x)).all()


def test_buffers_of_ensembles_and_averages_grow(x64):
    keys, frequency = jax.random.split(jax.random.key(0), 3), jnp.asarray([0.5, 4.0, 2.0])
    for wrap in (
        lambda member: ensemble(member, ["frequency"]),
        lambda member: ensemble(averaged(member, lambda s, p: {"x": s.angle}, every=1, skip=0), ["frequency"]),
    ):
        small, large = wrap(swing()), wrap(swing(64))
        params = small.params | {"frequency": frequency}
        grown, pieces = recorded(small, keys, params=params)
        roomy, _ = recorded(large, keys, params=params)
        assert not np.any(pieces[-1].status == Status.BUFFER_OVERFLOW)
        assert_same(grown, roomy)


def test_added_quantities_are_kept_when_buffers_grow(x64):
    bare = search()
    simulation = bare.with_quantities(square=lambda state, params: state.x**2).with_params(target=3.0)
    grown, end = converge_with_growth(simulation, 100)(simulation.params, jax.random.key(0))
    assert int(end.status) == Status.CONVERGED
    assert end.state.trials.capacity >= 22
    assert float(grown.params["target"]) == 3.0
    assert float(grown.diagnose(end.state, grown.params)["square"]) == pytest.approx(9, rel=1e-6)
    near = Objective(simulation, "square", steps=100).continuation(simulation.params, jax.random.key(0))
    assert float(jax.grad(near)(simulation.params)["target"]) == pytest.approx(6, rel=1e-6)


@pytest.mark.parametrize("objective", ["last", "time_mean(last, after=1)"])
def test_a_derivative_is_that_of_the_run_with_large_buffers(objective, x64, recwarn):
    def timed(capacity):
        def last(state, params):
            return jnp.max(state.passages.times) / params["frequency"]

        return swing(capacity).with_quantities(last=last)

    found, expected = (
        simkit.value_and_grad(timed(capacity), "frequency", objective=objective, steps=200) for capacity in (1, 64)
    )
    assert found == expected and not recwarn
    if objective == "last":
        small = timed(1)
        checked = simkit.check_gradient(Objective(small, "last", 200), small.params, jax.random.key(0), "frequency")
        assert checked.value == expected[0] and checked.verdict == {"frequency": "agrees"}


PASSAGES = 25


def test_a_run_that_overflows_equals_the_run_with_large_buffers_bit_for_bit(x64):
    grown, pieces = recorded(swing())
    roomy, _ = recorded(swing(64))
    assert pieces[0].state.passages.capacity == 1 < PASSAGES < pieces[-1].state.passages.capacity < 64
    assert grown["diagnosed.passages"][-1] == PASSAGES
    # Sums of the same times and of unused zeros.
    assert_same(grown, roomy)


def test_a_run_interrupted_after_its_buffers_grew_is_resumed(x64, tmp_path):
    whole, _ = recorded(swing())
    _, pieces = recorded(swing(), store=Store(tmp_path), stop=20)
    assert pieces[-1].state.passages.capacity > 1
    recorded(swing(), store=Store(tmp_path))
    stored = Store(tmp_path).read()
    assert_same({name: np.concatenate([arrays[name] for arrays in stored]) for name in whole}, whole)
