"""Declaration of shapes of bodies: the keys of a shape, and its volume."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from simkit.core.parameter import POSITIVE
from simkit.core.parts import Declaration
from simkit.core.settings import Setting, formula

# What formulas of a body take besides parameters: its number within its entry, and its place in the grid of the entry.
COPY = ("index", "row", "column", "layer")


@dataclasses.dataclass(frozen=True)
class Solid(Declaration):
    """What a shape declares; as a decorator, ``@solid(values={...}, volume=...)``, it marks the function of the shape.

    The function takes the mass and the declared values, then friction and restitution, and returns one body.

    Attributes:
        volume: function of the declared values, in m^3, by which a density gives the mass.
    """

    volume: Callable[..., jax.Array | float] | None = None


solid: Any = Solid


def size(doc: str, *default: float) -> Setting:
    """Return the setting of a positive length in m, which may differ from copy to copy."""
    return formula(doc, *default, unit="m", bounds=POSITIVE, takes=COPY)
