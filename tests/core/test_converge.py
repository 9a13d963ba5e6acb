"""Convergence and the implicit derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.converge import converge
from simkit.core.objective import Objective
from simkit.core.simulation import Equilibrium, Simulation
from simkit.core.status import Status, converged_when
from tests.core.toys import descent, oscillator


def test_converge_reports_when_its_steps_run_out(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    assert converge(simulation, 3)(state, simulation.params).status == Status.MAX_STEPS


def test_converge_stops_at_once_on_a_non_finite_state(x64):
    simulation = descent()
    state = simulation.init(simulation.params, jax.random.key(0))
    result = converge(simulation, 1000)(state, {**simulation.params, "stiffness": jnp.asarray(jnp.nan)})
    assert result.status == Status.NON_FINITE
    assert result.iterations == 1


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_residual_that_leaves_out_unknowns_does_not_hide_a_missing_solution(mode, x64):
    # As a packing far from rest: every particle counts as loose, and a cotangent of NaN is masked with its force.
    def residual(x, params):
        return jnp.where(jnp.array([True, True]), x - jax.lax.stop_gradient(x), x - params["pull"])

    simulation = Simulation(
        init=lambda params, key: jnp.zeros(2),
        step=lambda state, params: state + 1,
        observe=lambda state, params: {"x": state},
        diagnose=lambda state, params: {"iteration": jnp.int32(0), "work": (params["pull"] * state).sum()},
        params={"pull": jnp.asarray(1.0)},
        status=converged_when(lambda state, params: jnp.bool_(False)),
        converges=True,
        equilibrium=Equilibrium(unknowns=lambda state: state, residual=residual, replace=lambda state, x: x),
    )
    derivative = gradient.with_derivative(Objective(simulation, "work", 3), ["pull"], mode=mode)
    assert np.isnan(derivative(simulation.params, jax.random.key(0))[1]["pull"])


def test_converge_refuses_a_simulation_without_equilibrium():
    with pytest.raises(ValueError, match="converges=True and an equilibrium"):
        converge(oscillator(), 10)
