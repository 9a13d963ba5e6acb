"""Physical ranges of parameters, checked on the host before a run."""

from collections.abc import Callable

import jax
import numpy as np

from simkit.core.simulation import Params
from simkit.errors import UserError


def check_positive(params: Params, *names: str) -> None:
    """Refuse parameters that are not above zero.

    Args:
        params: parameters.
        *names: which of them.

    Raises:
        UserError: that names the first one.
    """
    _check(params, names, lambda values: values > 0, "is not positive; choose a value above 0")


def check_not_negative(params: Params, *names: str) -> None:
    """Refuse parameters below zero; arguments as for `check_positive`.

    Raises:
        UserError: that names the first one.
    """
    _check(params, names, lambda values: values >= 0, "is negative; choose 0 or a value above")


def _check(params: Params, names: tuple[str, ...], allowed: Callable[[np.ndarray], np.ndarray], problem: str) -> None:
    for name in names:
        values = np.ravel(jax.device_get(params[name]))
        if (wrong := values[~allowed(values)]).size:
            raise UserError(f"{name} = {wrong[0]:g} {problem}")
