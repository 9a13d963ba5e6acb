"""Physical ranges of parameters, checked on the host before a run."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np

from simkit.core.simulation import Params, Simulation
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


def check_shares(params: Params, *names: str) -> None:
    """Refuse parameters outside [0, 1]; arguments as for `check_positive`.

    Raises:
        UserError: that names the first one.
    """
    _check(params, names, lambda values: (values >= 0) & (values <= 1), "is outside [0, 1]; choose one within")


def within_ranges(
    simulation: Simulation,
    *,
    positive: tuple[str, ...] = (),
    not_negative: tuple[str, ...] = (),
    shares: tuple[str, ...] = (),
) -> Simulation:
    """Return a simulation whose ``check`` refuses parameters out of their physical range before all else.

    Args:
        simulation: any.
        positive: names of parameters above 0.
        not_negative: names of parameters of 0 or more.
        shares: names of parameters in [0, 1].
    """

    def check(params: Params, key: jax.Array) -> None:
        check_positive(params, *positive)
        check_not_negative(params, *not_negative)
        check_shares(params, *shares)
        if simulation.check is not None:
            simulation.check(params, key)

    return dataclasses.replace(simulation, check=check)


def _check(params: Params, names: tuple[str, ...], allowed: Callable[[np.ndarray], np.ndarray], problem: str) -> None:
    for name in names:
        values = np.ravel(jax.device_get(params[name]))
        if (wrong := values[~allowed(values)]).size:
            raise UserError(f"{name} = {wrong[0]:g} {problem}")
