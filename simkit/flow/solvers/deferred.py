"""Solvers whose tables are computed at the first solve, not when the solver is made."""

import functools
from collections.abc import Callable
from typing import Any


def deferred(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Return the function that ``make()`` returns, made when it is first called.

    The tables of a fine grid take seconds to compute; checks of stability and memory come first and may raise.

    Args:
        make: computes tables with NumPy only, so that tables made while one program is traced can be used by others.
    """
    made = functools.cache(make)
    return lambda *arguments: made()(*arguments)
