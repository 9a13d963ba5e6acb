"""Equations of a traced program: primitive, parameters, and shapes and types of arguments and results."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Aval:
    """Shape and type of a value.

    Attributes:
        shape: its size in each dimension.
        dtype: NumPy's type of its elements; for random keys uint32.
        key: the random number generator of random keys, ``None`` for other arrays.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    key: Any = None


@dataclasses.dataclass(frozen=True)
class Equation:
    """One application of a primitive.

    Attributes:
        name: of the primitive.
        params: its static parameters.
        inputs: shape and type of each argument.
        outputs: shape and type of each result.
        where: source line of the user's program, ``"file.py:12"``, or empty.
        raw: the equation of the jaxpr.
    """

    name: str
    params: dict[str, Any]
    inputs: tuple[Aval, ...]
    outputs: tuple[Aval, ...]
    where: str
    raw: Any

    @property
    def out(self) -> Aval:
        """The first result."""
        return self.outputs[0]
