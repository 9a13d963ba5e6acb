"""A step of the simulation starts the solver from the acceleration of the step before, as a loop of MuJoCo's does."""

import jax
import mujoco
import numpy as np
import pytest

from simkit.core.rollout import trajectory
from simkit.rigid import mjcf
from simkit.rigid.models.source import compiled, read_spec

STEPS = 200


def plain_loop(model, iterations, control):
    """Return coordinates and velocities after each step of `mj_step`, (steps, nq + nv)."""
    spec = read_spec(model)
    if iterations:
        spec.option.iterations = iterations
    found = compiled(spec)
    data, rows = mujoco.MjData(found), []
    data.qpos[:] = start_of(model)
    data.ctrl[:] = control
    for _ in range(STEPS):
        mujoco.mj_step(found, data)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    return np.array(rows)


def start_of(model):
    return np.asarray(mjcf(model, engine="mujoco").params["initial_position"], float)


@pytest.mark.parametrize(("model", "iterations"), [("brax:ant.xml", 0), ("brax:ant.xml", 1), ("brax:humanoid.xml", 1)])
def test_200_steps_equal_a_plain_loop_of_mujoco(x64, model, iterations):
    """With one iteration the result depends on the warm start; the converged result for the ant does not."""
    found = mjcf(model, engine="mujoco", solver_iterations=iterations)
    control = 0.4 * np.sin(np.arange(found.params["control"].size))
    found = found.with_params(control=control)
    _, observed, _ = jax.jit(trajectory(found, STEPS, 1))(found.params, jax.random.key(0))
    ours = np.concatenate([observed["joint_position"], observed["joint_velocity"]], axis=1)[1:]
    expected = plain_loop(model, iterations, control)
    np.testing.assert_allclose(ours, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


def test_members_carry_their_own_warm_starts(x64):
    """Substeps equal single time steps, in an ensemble whose members differ."""
    results = []
    for substeps in (1, 4):
        found = mjcf("brax:ant.xml", engine="mujoco", substeps=substeps, solver_iterations=1)
        params = found.params | {"gravity": np.array([9.81, 5.0, 20.0])}
        axes = dict.fromkeys(params) | {"gravity": 0}
        many = jax.jit(jax.vmap(trajectory(found, 40 // substeps, 40 // substeps), in_axes=(axes, None)))
        results.append(many(params, jax.random.key(0))[1]["joint_position"])
    np.testing.assert_allclose(results[0], results[1], atol=1e-12)
