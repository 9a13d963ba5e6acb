"""Check of the derivative in a StableHLO program against that of JAX."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from simkit.errors import UserError
from simkit.export.programs.comparison import Difference, error_of
from simkit.export.programs.functions import Program

if TYPE_CHECKING:
    from simkit.scenario.scenario import Scenario

NAME = "vector-Jacobian product"


def check_derivative(
    program: Program, scenario: "Scenario", data: bytes | None, inputs: list[np.ndarray]
) -> Difference | None:
    """Return the difference of the vector-Jacobian product of a program of the form ``"final"`` from that of JAX.

    The cotangent is 1 for outputs that an objective uses and 0 for the others: the derivative of a residual that is
    round-off is noise.

    Args:
        program: the exported one.
        scenario: for its objectives.
        data: the serialized program, ``None`` if there is none.
        inputs: at which to differentiate.

    Returns:
        ``None`` for other forms, or without a serialized program.

    Raises:
        UserError: if the derivative is not finite.
    """
    if data is None or program.form != "final":
        return None

    is_batched = inputs[0].ndim > len(program.inputs[0].shape)
    function = jax.jit(jax.vmap(program.function) if is_batched else program.function)
    expected, pullback = jax.vjp(function, *inputs)
    made_of = {f"diagnostic.{name}" for objective in scenario.objectives.values() for name in objective.made_of}
    names = {port.name for port in program.outputs}
    chosen = made_of & names or names
    cotangents = tuple(
        jnp.full_like(value, port.name in chosen)
        if jnp.issubdtype(value.dtype, jnp.inexact)
        else np.zeros(value.shape, jax.dtypes.float0)
        for port, value in zip(program.outputs, expected, strict=True)
    )
    pulled = pullback(cotangents), export.deserialize(bytearray(data)).vjp().call(*inputs, *cotangents)
    expected, found = (
        np.concatenate([np.asarray(a).ravel() for a, x in zip(side, inputs, strict=False) if x.dtype.kind == "f"])
        for side in pulled
    )
    if not np.isfinite([expected, found]).all():
        raise UserError(
            f"{scenario.name}: its derivative is not finite, so that nothing can be compared: the run fails or does "
            "not converge; change its parameters or give it more steps"
        )
    # The same program, compiled separately: its round-off grows along a run, but stays below sqrt(eps).
    return Difference(NAME, error_of(expected, found), float(np.finfo(expected.dtype).eps) ** 0.5)
