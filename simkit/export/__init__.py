"""Programs for other runtimes, pictures, and files of other formats.

The functions are imported when they are first used, since pictures need none of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simkit.export.weights import load_weights, save_weights
    from simkit.export.writing import data_file, program, verify, web_page

__all__ = ["data_file", "load_weights", "program", "save_weights", "verify", "web_page"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in __all__:
        home = "weights" if name.endswith("weights") else "writing"
        return getattr(importlib.import_module(f"simkit.export.{home}"), name)
    raise AttributeError(f"module 'simkit.export' has no attribute '{name}'")
