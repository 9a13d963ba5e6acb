"""Solvers whose tables are computed at the first solve, not when the solver is made."""

import functools
from collections.abc import Callable
from typing import Any


def deferred(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function that ``make()`` returns, made when it is first called.

    The tables of a fine grid take seconds. Whether a time step is stable, or frames fit in memory, is known before.

    Args:
        make: computes tables with NumPy only: made while a program is traced, they serve others too.
    """
    made = functools.cache(make)
    return lambda *arguments: made()(*arguments)
