"""Checks at the entrance of the functions that users call in Python, such as `simkit.run`."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from simkit.core.compilation import use_compilation_cache
from simkit.errors import UserError
from simkit.scenario import checks


def enter(name: str, *arguments: Any, **flags: Any) -> None:
    """Check a call, and turn on the compilation cache.

    Args:
        name: of the function, such as ``"run"``.
        *arguments: those that may hold arrays.
        **flags: arguments that must be True or False.

    Raises:
        UserError: if a flag is something else, or the call is made under a transformation of JAX.
    """
    for key, value in flags.items():
        if not isinstance(checks.unwrapped(value), bool):
            raise UserError(f"{key} = {checks.show(value)} is {checks.kind(value)}; give True or False")
    if _is_traced(arguments):
        raise UserError(
            f"simkit.{name} is called under jax.jit, jax.grad or another transformation of JAX, which cannot trace its "
            "loop on the host; call simkit.trajectory or simkit.Objective there, or simkit.value_and_grad outside"
        )
    use_compilation_cache()


def _is_traced(arguments: tuple[Any, ...]) -> bool:
    """Return whether arguments are traced, or new arrays would be."""
    # A simulation made in Python holds its parameters.
    given = [getattr(argument, "params", argument) for argument in arguments]
    return any(isinstance(leaf, Tracer) for leaf in (*jax.tree.leaves(given), jnp.zeros(())))
