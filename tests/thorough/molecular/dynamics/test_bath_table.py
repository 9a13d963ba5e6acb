"""Every method with every barostat, cell, dimension, schedule and frozen particles: conserved quantities or refusal."""

import jax
import numpy as np
import pytest

from tests.molecular.dynamics.test_bath_table import ROWS, made

STEPS = 20


def ran(simulation):
    """Return the last state and what all steps tell, compiled without optimizations, which would take longer."""

    def diagnosed(state, params):
        return state, simulation.observe(state, params), simulation.diagnose(state, params)

    def compiled(function, *arguments):
        return jax.jit(function).lower(*arguments).compile({"xla_backend_optimization_level": 0})

    params, key = simulation.params, jax.random.key(0)
    state = compiled(simulation.init, params, key)(params, key)
    step = compiled(lambda state, params: diagnosed(simulation.step(state, params), params), state, params)
    steps = []
    for _ in range(STEPS):
        steps.append(step(state, params))
        state = steps[-1][0]
    return state, *(
        {name: np.stack([np.asarray(moment[which][name]) for moment in steps]) for name in steps[0][which]}
        for which in (1, 2)
    )


def check(method, barostat, kind, dimension, schedule, frozen):
    simulation = made(method, barostat, kind, dimension, schedule, frozen)
    state, seen, found = ran(simulation)
    for values in (*seen.values(), *found.values()):
        assert np.isfinite(values).all()
    count = seen["position"].shape[1]
    held = np.arange(count) < 2 if frozen else np.zeros(count, bool)
    assert (np.abs(seen["position"][-1] - seen["position"][0])[~held].max(axis=1) > 0).all()
    kinetic = found["kinetic_energy"]
    freedom = dimension * (count - held.sum() - (method != "langevin" and not frozen))
    assert float(state.freedom.count) == freedom
    np.testing.assert_allclose(found["temperature"], 2 * kinetic / freedom, rtol=1e-12)
    if frozen:
        assert (seen["velocity"][:, held] == 0).all()
        assert (seen["position"][:, held] == seen["position"][0, held]).all()
    elif method != "langevin":
        # Round-off of 20 steps.
        assert found["momentum"].max() < 1e-13
    if method == "velocity_verlet":
        kept = found["energy"]
    elif method != "langevin" and barostat == "none":
        kept = found["conserved_energy"]
        assert np.ptp(found["energy"]) > 100 * np.ptp(kept)
    else:
        kept = np.zeros(1)
        assert "conserved_energy" not in found
    # Verlet's error: steps of 0.005 at frequencies below 20.
    assert np.ptp(kept) < 3e-3 * kinetic.mean()
    if barostat == "none":
        assert state.cell is None
        assert kind == "free" or (seen["cell"] == seen["cell"][0]).all()
        return
    assert seen["cell"].shape == (STEPS, dimension, dimension)
    volume = np.abs(np.linalg.det(seen["cell"]))
    np.testing.assert_allclose(found["volume"], volume, rtol=1e-12)
    assert (np.diff(volume) != 0).all()
    shape = np.linalg.solve(seen["cell"][0], seen["cell"][-1])
    if kind == "sides":
        assert (seen["cell"][:, ~np.eye(dimension, dtype=bool)] == 0).all()
    if barostat == "isotropic":
        np.testing.assert_allclose(shape, shape[0, 0] * np.eye(dimension), atol=1e-13)
    else:
        assert np.ptp(np.diagonal(shape)) > 1e-4


@pytest.mark.parametrize(("method", "barostat", "kind", "dimension", "schedule"), ROWS)
def test_each_combination_runs_and_conserves(x64, method, barostat, kind, dimension, schedule):
    check(method, barostat, kind, dimension, schedule, frozen=False)


@pytest.mark.parametrize(
    ("method", "kind", "dimension"),
    [("velocity_verlet", "sides", 2), ("langevin", "free", 3), ("nose_hoover", "triclinic", 2), ("bussi", "sides", 3)],
)
def test_conserved_quantities_hold_with_frozen_particles(x64, method, kind, dimension):
    check(method, "none", kind, dimension, schedule=method == "nose_hoover", frozen=True)
