"""StableHLO programs, reloaded without simkit, agree with simkit in values and derivatives."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.export import program
from simkit.jobs.derivatives import objective_of
from simkit.jobs.job import begin
from simkit.jobs.runs import Run
from simkit.scenario.build import build
from tests.scenarios.small import NAMES, small_to_the_end


@pytest.mark.parametrize("name", NAMES)
def test_exported_program_runs_and_differentiates_any_batch(name, tmp_path, x64):
    scenario = small_to_the_end(name)
    folder = tmp_path / "deep" / "folder"
    report = program(scenario, folder, what="final", batch="symbolic")
    assert report.passed, report.misses
    card = json.loads((folder / "io.json").read_text())
    reloaded = jax.export.deserialize(bytearray((folder / "model.jaxexport").read_bytes()))
    assert set(reloaded.platforms) == {"cpu", "cuda", "tpu"}

    simulation, members = build(scenario), 2
    inputs = {f"params.{name}": jnp.stack([value] * members) for name, value in simulation.params.items()}
    inputs["key"] = jnp.stack([jax.random.key_data(jax.random.key(scenario.run.seed))] * members)
    inputs = [inputs[port["name"]] for port in card["inputs"]]
    names = [port["name"].removeprefix("diagnostic.") for port in card["outputs"]]
    found = dict(zip(names, reloaded.call(*inputs), strict=True))
    diagnostics = begin(Run(scenario), None).diagnostics
    assert set(found) == set(diagnostics)
    scale = max(abs(value) for value in diagnostics.values())
    for quantity, expected in diagnostics.items():
        # The number of steps of a relaxation depends on round-off, and a run ends at a frame.
        if quantity not in ("iteration", "force_evaluations"):
            np.testing.assert_allclose(found[quantity], [expected] * members, rtol=1e-9, atol=1e-9 * scale)

    # The program returns final diagnostics, so an objective of the end is compared, preferably one that is defined so.
    objective = min(scenario.objectives.values(), key=lambda objective: objective.reduce != "final")
    quantity = next(name for name in objective.made_of if name in found)
    objective = dataclasses.replace(objective, reduce="final", quantity=quantity, expression="")
    at_end = {objective.name: objective}
    function = objective_of(dataclasses.replace(scenario, objectives=at_end), simulation, objective.name)
    parameters = list(simulation.params)
    _, derivative = jax.jit(gradient.with_derivative(function, parameters))(simulation.params, jax.random.key(0))
    value = found[objective.quantity]
    outer = 2 * value if objective.square else jnp.ones_like(value)
    cotangents = [
        (outer if quantity == objective.quantity else jnp.zeros_like(found[quantity]))
        if found[quantity].dtype.kind == "f"
        else np.zeros(found[quantity].shape, jax.dtypes.float0)
        for quantity in names
    ]
    leaves = reloaded.vjp().call(*inputs, *cotangents)
    scale = max(float(np.max(np.abs(one))) for one in derivative.values())
    for port, array in zip(card["inputs"], leaves, strict=False):
        if port["name"] != "key":
            expected = derivative[port["name"].removeprefix("params.")]
            # Conjugate gradients of an implicit derivative end at 2e-12.
            np.testing.assert_allclose(array, [expected] * members, 1e-8, 1e-10 * scale, err_msg=port["name"])
