"""Viscosity of a flow: one number, or a field that depends on the velocity."""

import inspect
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_shape
from simkit.core.settings import word
from simkit.core.simulation import Params
from simkit.errors import UserError
from simkit.flow.grid import Velocity

type Uniform = float | str | Callable[[Params], jax.Array]
type Viscosity = Uniform | Callable[[Velocity, Params], jax.Array] | Callable[[Velocity, Params, Any, Any], jax.Array]

REMEDY = "give a number, the name of a parameter, params -> number, or (velocity, params) -> array"
# Numbers of arguments of a field: velocity and parameters; or also scalar and time.
ARGUMENTS = (2, 4)


def is_field(viscosity: Viscosity) -> bool:
    """Return whether a viscosity is a field, a function of two or four arguments.

    Args:
        viscosity: a number, the name of a parameter, ``params -> number``, ``(velocity, params) -> array``, or
            ``(velocity, params, scalar, time) -> array``.

    Raises:
        UserError: if it is none of these.
    """
    if isinstance(viscosity, int | float | str) and not isinstance(viscosity, bool):
        return False
    count = number_of_arguments(viscosity) if callable(viscosity) else None
    if count not in (1, *ARGUMENTS):
        what = f"= {viscosity!r} is no viscosity" if count is None else f"is a function of {count} arguments"
        raise UserError(f"viscosity {what}; {REMEDY}")
    return count in ARGUMENTS


def number_of_arguments(function: Callable[..., Any]) -> int:
    """Return how many arguments a function needs."""
    arguments = inspect.signature(function).parameters.values()
    return sum(a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.default is a.empty for a in arguments)


def uniform(viscosity: Viscosity, params: Params, what: str = "this part") -> Any:
    """Return a viscosity that is one number.

    Args:
        viscosity: as for `is_field`.
        params: parameters.
        what: the part that needs a uniform viscosity, for the message.

    Raises:
        UserError: if it is a field, or its name is not that of a parameter.
    """
    if isinstance(viscosity, str):
        return params[word("of a parameter", tuple(params)).check(viscosity, "viscosity")]
    if is_field(viscosity):
        raise UserError(f"{what} needs a uniform viscosity, not a field; give a number, a name or params -> number")
    return cast(Callable[[Params], jax.Array], viscosity)(params) if callable(viscosity) else viscosity


def field_at_centers(
    viscosity: Viscosity,
    velocity: Velocity,
    params: Params,
    cells: tuple[int, ...],
    carried: tuple[Any, Any],
) -> jax.Array:
    """Return a viscosity that is a field, at the cell centers.

    Args:
        viscosity: ``(velocity, params) -> array``, or ``(velocity, params, scalar, time) -> array``.
        velocity: components on their faces.
        params: parameters.
        cells: number of cells along each axis.
        carried: the scalar and the time.

    Raises:
        UserError: if the array has another shape than the cells.
    """
    field = cast(Callable[..., jax.Array], viscosity)
    more = carried if number_of_arguments(field) == max(ARGUMENTS) else ()
    values = jnp.asarray(field(velocity, params, *more), velocity[0].dtype)
    check_shape("viscosity", values, f"one number for each cell, {cells}", (), cells)
    return jnp.broadcast_to(values, cells)
