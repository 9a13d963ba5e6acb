"""Keywords common to all methods of molecular dynamics, and checks of parameters and schedules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.simulation import Arrays, Params, as_arrays
from simkit.errors import UserError
from simkit.molecular.dynamics.protocol import DynamicsState
from simkit.molecular.spaces import Cell

type Measure = Callable[[DynamicsState, Cell, Params], Arrays]
type Schedule = Callable[[Params, jax.Array], jax.Array]
"""``(params, time) -> number``, such as the decreasing temperature of a bath."""


class Options(TypedDict, total=False):
    """Keywords of all methods of dynamics; see `motion`."""

    cell: Callable[[Params], jax.Array] | None
    mass: Callable[[Params], jax.Array] | None
    velocity: Callable[[Params, jax.Array], jax.Array] | None
    frozen: Sequence[bool] | np.ndarray | None
    observe: Measure | None
    measure: Measure | None
    dimensions: Mapping[str, tuple[str, ...]] | None


def check_given(params: Mapping[str, object], names: Iterable[str]) -> None:
    """Refuse params without a required parameter.

    Args:
        params: by name.
        names: of the required parameters.

    Raises:
        UserError: if one is missing.
    """
    for name in names:
        if name not in params:
            raise UserError(f"params lack '{name}'; there are {', '.join(sorted(params)) or 'none'}")


def scheduled(name: str, schedule: Schedule | None, params: Mapping[str, object]) -> Schedule:
    """Return the given schedule, or the constant schedule of the parameter of that name.

    Args:
        name: ``"temperature"`` or ``"pressure"``.
        schedule: ``(params, time) -> number``, or ``None``.
        params: the default parameters.

    Raises:
        UserError: if there is neither, or the schedule returns no number or reads a parameter that does not exist.
    """
    if schedule is None:
        check_given(params, [name])
        return lambda params, time: params[name]
    try:
        found = jax.eval_shape(lambda given: schedule(given, jnp.zeros(())), as_arrays(params))
    except KeyError as missing:
        raise UserError(
            f"the schedule {name}= reads {missing}; params have {', '.join(sorted(params)) or 'none'}"
        ) from None
    if not hasattr(found, "shape") or found.shape != ():
        shape = getattr(found, "shape", type(found).__name__)
        raise UserError(f"the schedule {name}= returns {shape}; return one number of (params, time)")
    return schedule
