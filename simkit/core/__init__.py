"""The simulation record and its transformations, independent of physics and files.

Names are imported when they are first used, since some modules of this package are read where JAX is not needed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit.core.buffers import Buffer
    from simkit.core.converge import converge_with_growth
    from simkit.core.estimation import controlled, standard_errors
    from simkit.core.parts import part
    from simkit.core.pytrees import pytree
    from simkit.core.second import hessian_vector_product
    from simkit.core.settings import branch, flag, formula, number, whole, word
    from simkit.core.simulation import described
    from simkit.core.status import at_frames

_HOMES = {
    "Buffer": "buffers",
    "at_frames": "status",
    "controlled": "estimation",
    "converge_with_growth": "converge",
    "described": "simulation",
    "branch": "settings",
    "flag": "settings",
    "formula": "settings",
    "hessian_vector_product": "second",
    "number": "settings",
    "part": "parts",
    "pytree": "pytrees",
    "standard_errors": "estimation",
    "whole": "settings",
    "word": "settings",
}

__all__ = [
    "Buffer",
    "at_frames",
    "branch",
    "controlled",
    "converge_with_growth",
    "described",
    "flag",
    "formula",
    "hessian_vector_product",
    "number",
    "part",
    "pytree",
    "standard_errors",
    "whole",
    "word",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"simkit.core.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'simkit.core' has no attribute '{name}'")
