"""A scenario as a portable StableHLO program: any batch size, CPU, CUDA and TPU, with its derivative."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.core import paths
from simkit.core.converge import converge
from simkit.core.precision import precision
from simkit.core.rollout import segment
from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.scenario import Scenario
from simkit.storage.files import make_folder, write_bytes, write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from simkit.core.simulation import Arrays, Simulation

PLATFORMS = ("cpu", "cuda", "tpu")
# Small, odd and different from the batch of one that tracing might specialize to.
VERIFIED_BATCH = 3


@dataclasses.dataclass(frozen=True)
class Exported:
    """What was written, and how well it agrees with JAX.

    Attributes:
        program: the serialized program.
        card: JSON that describes its inputs and outputs.
        value_error: largest relative difference between the reloaded program and JAX.
        gradient_error: the same for its vector-Jacobian product.
    """

    program: Path
    card: Path
    value_error: float
    gradient_error: float


def export_scenario(scenario: Scenario, folder: Path) -> Exported:
    """Write ``NAME.stablehlo`` and ``NAME.json``, reload the program and compare it with JAX.

    The program maps ``(params, key_data)`` to the final diagnostics of a whole run: ``params`` is ``{path: (batch,
    ...)}``, nested ones by their dotted paths, and ``key_data`` is ``uint32 (batch, 2)``, the data of one random key
    per member. Reload it with ``jax.export.deserialize(bytes)``; ``.call`` runs it and ``.vjp().call`` differentiates
    it, without simkit.

    Args:
        scenario: overrides applied.
        folder: where to write; made if missing.

    Raises:
        UserError: if the run fails, the folder cannot be written, or the reloaded program disagrees with JAX.
    """
    import jax
    from jax import export

    with precision(scenario.run.precision):
        simulation = build(scenario)
        run = jax.vmap(final_diagnostics(simulation, scenario.run.steps))
        (batch,) = export.symbolic_shape("batch")
        params = {
            name: jax.ShapeDtypeStruct((batch, *value.shape), value.dtype)
            for name, value in paths.leaves(simulation.params).items()
        }
        keys = jax.ShapeDtypeStruct((batch, 2), np.uint32)
        try:
            exported = export.export(jax.jit(run), platforms=PLATFORMS)(params, keys)
        except NotImplementedError as error:
            raise UserError(
                f"{scenario.name} calls the host and so cannot be exported ({error}); choose another engine"
            ) from error
        data = bytes(exported.serialize(vjp_order=1))
        value_error, gradient_error = _disagreement(scenario, simulation, run, data)
        if not np.isfinite([value_error, gradient_error]).all():
            raise UserError(
                f"{scenario.name}: its result or derivative is not finite, so that nothing can be compared: the run "
                "fails or does not converge; change its parameters or give it more steps"
            )
        # The same program, compiled apart: round-off grows along a run, but not to a thousandth.
        if max(value_error, gradient_error) > _tolerance(simulation):
            raise UserError(
                f"{scenario.name}: the reloaded program differs from JAX by {value_error:.3g} (value) and "
                f"{gradient_error:.3g} (derivative); nothing was written, please report this"
            )
    program, card = folder / f"{scenario.name}.stablehlo", folder / f"{scenario.name}.json"
    description = {
        "scenario": scenario.name,
        "platforms": PLATFORMS,
        "inputs": {
            "params": {
                name: {"shape": ["batch", *value.shape], "dtype": str(value.dtype), "default": value.tolist()}
                for name, value in paths.leaves(simulation.params).items()
            },
            "key_data": {"shape": ["batch", 2], "dtype": "uint32"},
        },
        "outputs": {
            name: {"shape": ["batch"], "dtype": str(value.dtype)} for name, value in _outputs(exported).items()
        },
        "steps": scenario.run.steps,
        "derivative": "vector-Jacobian product with respect to params",
    }
    make_folder(folder)
    write_bytes(program, data)
    write_json(card, description)
    return Exported(program, card, value_error, gradient_error)


def final_diagnostics(simulation: "Simulation", steps: int) -> "Callable[[Arrays, Any], dict[str, Any]]":
    """Return ``(params, key_data) -> {name: scalar}``, the diagnostics at the end of a run; ``params`` are by path.

    Args:
        simulation: what to run; one with an equilibrium is run until done, so that its derivative is implicit.
        steps: number of steps (at most, if it is run until done).
    """
    import jax

    def run(values: "Arrays", key_data: Any) -> dict[str, Any]:
        params = paths.replaced(simulation.params, values)
        state = simulation.init(params, jax.random.wrap_key_data(key_data))
        if simulation.equilibrium is not None:
            state = converge(simulation, steps)(state, params).state
        else:
            state = segment(simulation, steps)(state, params)
        return simulation.diagnose(state, params)

    return run


def _outputs(exported: Any) -> dict[str, Any]:
    import jax

    return jax.tree.unflatten(exported.out_tree, exported.out_avals)


def _disagreement(scenario: Scenario, simulation: "Simulation", run: Any, data: bytes) -> tuple[float, float]:
    """Return the relative differences of values and derivatives between JAX and the reloaded program."""
    import jax
    import jax.numpy as jnp
    from jax import export

    reloaded = export.deserialize(bytearray(data))
    params = {name: jnp.stack([value] * VERIFIED_BATCH) for name, value in paths.leaves(simulation.params).items()}
    keys = jnp.stack([jax.random.key_data(jax.random.key(scenario.run.seed + i)) for i in range(VERIFIED_BATCH)])
    expected, pullback = jax.vjp(jax.jit(lambda params: run(params, keys)), params)
    # Only what the scenario declares to be differentiable: the derivative of a round-off residual is noise.
    made_of = {name for objective in scenario.objectives.values() for name in objective.made_of}
    chosen = made_of & set(expected) or set(expected)
    cotangent = {
        name: jnp.full_like(value, name in chosen)
        if jnp.issubdtype(value.dtype, jnp.inexact)
        else np.zeros(value.shape, jax.dtypes.float0)
        for name, value in expected.items()
    }
    (expected_gradient,) = pullback(cotangent)
    # The derivative's program takes the leaves of inputs and cotangents in order, and returns those of the inputs.
    leaves = reloaded.vjp().call(*jax.tree.leaves((params, keys)), *jax.tree.leaves(cotangent))
    found_gradient = jax.tree.unflatten(jax.tree.structure(params), leaves[: len(params)])
    return _relative(expected, reloaded.call(params, keys)), _relative(expected_gradient, found_gradient)


def _relative(expected: Any, found: Any) -> float:
    """Return the largest difference relative to the largest number: quantities of order round-off do not count.

    Counts do not either: the last bit of a force decides whether a relaxation takes one iteration more.
    """
    names = [name for name, value in expected.items() if np.issubdtype(value.dtype, np.floating)]
    a, b = (
        np.concatenate([np.asarray(side[name], np.float64).ravel() for name in names]) for side in (expected, found)
    )
    scale = float(np.max(np.abs(a)))
    return float(np.max(np.abs(a - b))) / scale if scale else float(np.max(np.abs(b)))


def _tolerance(simulation: "Simulation") -> float:
    epsilon = max(float(np.finfo(value.dtype).eps) for value in paths.leaves(simulation.params).values())
    return epsilon**0.5
