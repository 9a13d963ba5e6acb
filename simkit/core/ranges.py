"""Check of parameters against their declared bounds, on the host before a run."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from simkit.core.parameter import Parameter, out_of_bounds
from simkit.errors import UserError


def check_bounds(declared: Mapping[str, Parameter], params: Mapping[str, Any]) -> None:
    """Refuse parameters that are out of their declared bounds or NaN.

    Args:
        declared: parameters by path; those without bounds are not checked.
        params: values by path, of any shape.

    Raises:
        UserError: that names the first such parameter.
    """
    for name, parameter in declared.items():
        low, high = parameter.bounds
        if np.isinf(low) and np.isinf(high):
            continue
        values = np.ravel(jax.device_get(params[name]))
        wrong = values[~((values >= low) & (values <= high))]
        if wrong.size:
            raise UserError(f"{name} = {wrong[0]:g} {out_of_bounds(parameter.bounds)}")
