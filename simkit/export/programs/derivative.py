"""The derivative that a StableHLO program carries, compared with that of JAX."""

from typing import TYPE_CHECKING

import numpy as np

from simkit.errors import UserError
from simkit.export.programs.comparison import Difference, error_of
from simkit.export.programs.functions import Program

if TYPE_CHECKING:
    from simkit.scenario.scenario import Scenario

NAME = "vector-Jacobian product"


def check_derivative(
    program: Program, scenario: "Scenario", data: bytes | None, inputs: list[np.ndarray]
) -> Difference | None:
    """Return how the vector-Jacobian product of a program of the form ``"final"`` compares with that of JAX.

    Only outputs that objectives are made of count: the derivative of a residual that is round-off is noise.

    Args:
        program: what was exported.
        scenario: for its objectives.
        data: the serialized program; ``None`` if there is none.
        inputs: where.

    Raises:
        UserError: if the derivative is not finite.
    """
    if data is None or program.form != "final":
        return None
    import jax
    import jax.numpy as jnp
    from jax import export

    batch = inputs[0].ndim > len(program.inputs[0].shape)
    function = jax.jit(jax.vmap(program.function) if batch else program.function)
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
    wanted = pullback(cotangents)
    found = export.deserialize(bytearray(data)).vjp().call(*inputs, *cotangents)
    sides = [
        np.concatenate([np.asarray(array).ravel() for array, given in zip(side, inputs, strict=False) if _real(given)])
        for side in (wanted, found)
    ]
    if not np.isfinite(sides).all():
        raise UserError(
            f"{scenario.name}: its derivative is not finite, so that nothing can be compared: the run fails or does "
            "not converge; change its parameters or give it more steps"
        )
    # The same program, compiled apart: round-off grows along a run, but not to the root of its precision.
    return Difference(NAME, error_of(*sides), float(np.finfo(sides[0].dtype).eps) ** 0.5)


def _real(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"
