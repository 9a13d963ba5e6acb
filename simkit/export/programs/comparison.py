"""Comparison of another runtime with JAX: errors of outputs, and their limits."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from simkit.errors import UserError

if TYPE_CHECKING:
    pass


# Largest error that passes. In single precision the pressure of a flow around a moving cylinder differs by 3e-4, in
# double precision the joint forces of a double pendulum by 2e-10; round-off grows along a run.
TOLERANCES = {"float32": 1e-3, "float64": 1e-8}
# Smallest scale of an output, as a share of the largest number of all outputs: an output that is nothing but round-off,
# such as the divergence of a projected flow, agrees in no digit of its own. With the tolerances, 840 and 4,500 units in
# the last place of that largest number are allowed.
SMALLEST_SCALES = {"float32": 0.1, "float64": 1e-4}
# Largest tolerance with which a comparison means anything.
LARGEST_TOLERANCE = 0.1
# Largest error that is allowed of an output that rounding decides.
LARGEST_ALLOWED = 1.0
type Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Difference:
    """Difference of one output of a runtime from the reference.

    Attributes:
        output: its name.
        error: largest difference relative to the scale of the output; for integers and booleans the fraction that
            differs; infinite where one is finite and the other is not.
        allowed: largest error that passes, 0 for integers and booleans.
    """

    output: str
    error: float
    allowed: float

    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        return self.error <= self.allowed


def differences(
    names: Sequence[str], expected: Arrays, actual: Arrays, tolerance: float, allowed: Mapping[str, float] = {}
) -> list[Difference]:
    """Return the difference of each output from the reference.

    Args:
        names: of the outputs.
        expected: results of JAX.
        actual: results of another runtime, of the same shapes.
        tolerance: largest error of numbers that passes.
        allowed: of outputs that rounding decides, by name, in place of the tolerance.
    """
    largest = max(map(largest_of, expected), default=0.0)
    return [
        Difference(name, error_of(a, b, largest), allowed.get(name, tolerance) if a.dtype.kind == "f" else 0.0)
        for name, a, b in zip(names, expected, actual, strict=True)
    ]


def error_of(expected: np.ndarray, actual: np.ndarray, largest: float = 0.0) -> float:
    """Return the error of an output, see `Difference`.

    Args:
        expected: result of JAX.
        actual: result of another runtime, of the same shape.
        largest: largest number of all outputs.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != actual)) if expected.size else 0.0
    proper = _is_proper(expected)
    if not np.array_equal(proper, _is_proper(actual)) or not np.array_equal(
        expected[~proper], actual[~proper], equal_nan=True
    ):
        return np.inf
    least = SMALLEST_SCALES.get(expected.dtype.name, SMALLEST_SCALES["float32"])
    scale = max(largest_of(expected), least * largest)
    difference = expected[proper].astype(np.float64) - actual[proper]
    return float(np.max(np.abs(difference), initial=0.0)) / (scale or 1.0)


def largest_of(array: np.ndarray) -> float:
    """Return the largest absolute value of numbers, without NaN, infinities and their stand-ins; 0 of integers."""
    if array.dtype.kind != "f":
        return 0.0
    return float(np.max(np.abs(array), where=_is_proper(array), initial=0.0))


def worst_of(differences: Sequence[Difference]) -> Difference | None:
    """Return the output whose error is largest relative to what is allowed.

    Args:
        differences: of any number of outputs; ``None`` is returned for none.
    """
    return max(
        differences,
        key=lambda difference: (not difference.passed, difference.error / (difference.allowed or 1.0)),
        default=None,
    )


def _is_proper(array: np.ndarray) -> np.ndarray:
    """Return which elements are neither NaN, nor infinite, nor so large that they stand for infinity."""
    return np.abs(array) < float(np.finfo(array.dtype).max) ** 0.5


def check_finite(what: str, *arrays: np.ndarray) -> None:
    """Refuse results with which nothing can be compared.

    Args:
        what: scenario and name of the results.
        *arrays: the results.

    Raises:
        UserError: if one is not finite.
    """
    if not all(np.isfinite(array).all() for array in arrays):
        raise UserError(
            f"{what} is not finite, so that nothing can be compared: the run fails or does not converge; change its "
            "parameters or give it more steps"
        )
