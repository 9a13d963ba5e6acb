"""Exported programs, reloaded without simkit, give what simkit gives."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.errors import UserError
from simkit.export.stablehlo import export_scenario
from simkit.jobs.derivatives import objective_of
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.scenario.build import build
from tests.scenarios.small import NAMES, small, small_to_the_end

# One of each domain, of which one converges; a program for three platforms and its derivative compile for a minute.
SOONEST = ("bouncing_ball", "taylor_green", "soft_sphere_packing")


@pytest.mark.parametrize(
    "name", [name if name in SOONEST else pytest.param(name, marks=pytest.mark.thorough) for name in NAMES]
)
def test_exported_program_runs_and_differentiates_any_batch(name, tmp_path, x64):
    scenario = small_to_the_end(name)
    exported = export_scenario(scenario, tmp_path / "deep" / "folder")
    # The same arithmetic, compiled apart; a few steps hardly amplify its round-off.
    assert exported.value_error < 1e-12 and exported.gradient_error < 1e-9
    program = jax.export.deserialize(bytearray(exported.program.read_bytes()))
    assert set(program.platforms) == {"cpu", "cuda", "tpu"}

    simulation, members = build(scenario), 2
    params = {key: jnp.stack([value] * members) for key, value in simulation.params.items()}
    keys = jnp.stack([jax.random.key_data(jax.random.key(scenario.run.seed))] * members)
    found = program.call(params, keys)
    diagnostics = begin(Run(scenario), None).diagnostics
    assert set(found) == set(diagnostics)
    scale = max(abs(value) for value in diagnostics.values())
    for quantity, expected in diagnostics.items():
        # How many steps a relaxation takes depends on round-off, and it is driven to the first frame that is done.
        if quantity not in ("iteration", "force_evaluations"):
            np.testing.assert_allclose(found[quantity], [expected] * members, rtol=1e-9, atol=1e-9 * scale)

    # The program returns final diagnostics, so an objective is taken at the end, one that is meant so if there is any.
    objective = min(scenario.objectives.values(), key=lambda objective: objective.reduce != "final")
    quantity = next(name for name in objective.made_of if name in found)
    objective = dataclasses.replace(objective, reduce="final", quantity=quantity, expression="")
    at_end = {objective.name: objective}
    function = objective_of(dataclasses.replace(scenario, objectives=at_end), simulation, objective.name)
    _, derivative = jax.jit(gradient.with_derivative(function, list(params)))(simulation.params, jax.random.key(0))
    value = found[objective.quantity]
    outer = 2 * value if objective.square else jnp.ones_like(value)
    cotangent = {
        quantity: outer if quantity == objective.quantity else jnp.zeros_like(array)
        for quantity, array in found.items()
    }
    cotangent = {
        quantity: array if array.dtype.kind == "f" else np.zeros(array.shape, jax.dtypes.float0)
        for quantity, array in cotangent.items()
    }
    leaves = program.vjp().call(*jax.tree.leaves((params, keys)), *jax.tree.leaves(cotangent))
    for array, (key, expected) in zip(leaves, sorted(derivative.items()), strict=False):
        # Conjugate gradients of an implicit derivative end at 2e-12.
        scale = max(float(np.max(np.abs(one))) for one in derivative.values())
        np.testing.assert_allclose(array, [expected] * members, rtol=1e-8, atol=1e-10 * scale, err_msg=key)


def test_card_describes_the_program(tmp_path):
    exported = export_scenario(small("bouncing_ball", precision="float32"), tmp_path)
    card = json.loads(exported.card.read_text())
    assert card["inputs"]["params"]["launch_speed"] == {"shape": ["batch"], "dtype": "float32", "default": 4.0}
    assert card["inputs"]["key_data"] == {"shape": ["batch", 2], "dtype": "uint32"}
    assert card["outputs"]["position_x"] == {"shape": ["batch"], "dtype": "float32"}
    assert card["steps"] == 12 and card["platforms"] == ["cpu", "cuda", "tpu"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bouncing_ball.json", "bouncing_ball.stablehlo"]


def test_run_without_a_derivative_is_not_exported(tmp_path):
    with pytest.raises(UserError, match="does not converge"):
        export_scenario(small("soft_sphere_packing"), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_program_that_disagrees_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("simkit.export.stablehlo._disagreement", lambda *arguments: (0.0, 0.5))
    with pytest.raises(UserError, match=r"differs from JAX by 0 .* and 0.5 .*; nothing was written"):
        export_scenario(small("bouncing_ball"), tmp_path / "out")
    assert not list(tmp_path.iterdir())
