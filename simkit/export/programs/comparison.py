"""Largest relative difference of each output of another runtime from that of JAX, and its limit."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# Relative to the largest number of an output. One step is a few hundred roundings; round-off grows along a run.
OF_A_STEP = {"float32": 1e-5, "float64": 1e-10}
OF_A_RUN = {"float32": 3e-4, "float64": 1e-8}
# An output may differ by as much as this many roundings of the inputs change it: a program rounds in each operation.
ROUNDINGS = 100.0
PERTURBATIONS = 3
# Outputs smaller than this many roundings of the largest number of all outputs are nothing but round-off.
ROUND_OFF = 16.0
# An output that may differ by more than this share of its largest number is not compared: it may be anything.
LARGEST_ALLOWED = 0.1
# What is that small beside the other outputs (a divergence that is zero but for rounding) must stay so.
LARGEST_BESIDE_OTHERS = 1e-3

type Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How one output of a runtime compares with the reference.

    Attributes:
        output: its name.
        error: largest difference relative to the largest number of the reference; of integers and truth values the
            share of those that differ; infinite where one is not finite and the other is.
        allowed: the largest error that is not a miss; ``None`` where it is not compared, because rounding the inputs
            changes integers, or numbers by more than `LARGEST_ALLOWED`.
        beside_others: whether both are relative to the largest number of all outputs, beside which it is round-off.
    """

    output: str
    error: float
    allowed: float | None
    beside_others: bool = False

    @property
    def compared(self) -> bool:
        """Whether an error can be too large."""
        return self.allowed is not None

    @property
    def passed(self) -> bool:
        """Whether the error is allowed."""
        return self.allowed is None or self.error <= self.allowed


def usual_tolerance(form: str, precision: str) -> float:
    """Return the tolerance that a program is held to, relative to the largest number of each output.

    Args:
        form: of the program.
        precision: ``"float32"`` or ``"float64"``.
    """
    return (OF_A_STEP if form in ("step", "advance", "show") else OF_A_RUN)[precision]


def error_of(expected: np.ndarray, found: np.ndarray) -> float:
    """Return how far an output is from the reference, see `Difference`.

    Args:
        expected: of JAX.
        found: of the same shape.
    """
    if expected.dtype.kind != "f":
        return float(np.mean(expected != found)) if expected.size else 0.0
    usual = _is_usual(expected)
    if not np.array_equal(usual, _is_usual(found)) or not np.array_equal(
        expected[~usual], found[~usual], equal_nan=True
    ):
        return np.inf
    scale = largest_of(expected)
    difference = np.subtract(expected, found, where=usual, out=np.zeros(expected.shape), dtype=np.float64)
    largest = float(np.max(np.abs(difference), initial=0.0))
    return largest / scale if scale else largest


def largest_of(array: np.ndarray) -> float:
    """Return the largest number of an array without its sign, of those that mean one."""
    return float(np.max(np.abs(array), where=_is_usual(array), initial=0.0))


def _is_usual(array: np.ndarray) -> np.ndarray:
    """Tell which numbers mean one: neither infinite nor near the largest of their type, which stands for infinity."""
    return np.abs(array) < float(np.finfo(array.dtype).max) ** 0.5


def allowed_errors(
    run: Callable[[Arrays], Arrays],
    inputs: Arrays,
    expected: Arrays,
    tolerance: float,
    times: int,
    scales: Mapping[int, Any] = {},
) -> list[float | None]:
    """Return the largest error of each output that is not a miss.

    That is the tolerance, and what rounding does: the inputs are changed by one unit in their last place, at random,
    and the program is run again. What is left of a cancellation (a divergence that is zero but for rounding), and what
    a chaotic motion multiplies, cannot agree more closely in any two runtimes. Once more the state is changed by a unit
    in the last place of the largest number that it has then or afterwards: a fluid at rest has no rounding of its own.
    An output that is round-off beside the others must stay round-off.

    Args:
        run: the program in JAX.
        inputs: of the program.
        expected: its outputs.
        tolerance: relative to the largest number of an output.
        times: how often the inputs are changed.
        scales: the largest number of a state, by its place among the inputs.
    """
    worst = [0.0] * len(expected)
    for time in range(times):
        found = run([_rounded(array, time) for array in inputs])
        worst = [max(change, error_of(a, b)) for change, a, b in zip(worst, expected, found, strict=True)]
    if scales:
        given = [a.ravel() for i, a in enumerate(inputs) if i not in scales and a.dtype.kind == "f"]
        kept = np.concatenate(given) if given else np.zeros(0)
        found = run([_shaken(array, scales.get(i), kept[kept != 0]) for i, array in enumerate(inputs)])
        # Of integers, and of what is no longer finite, this says too much.
        for place, (a, b) in enumerate(zip(expected, found, strict=True)):
            if a.dtype.kind == "f" and np.isfinite(change := error_of(a, b)):
                worst[place] = max(worst[place], change)
    largest = max((largest_of(array) for array in expected if array.dtype.kind == "f"), default=0.0)
    return [
        tolerance + ROUNDINGS * change + _round_off(array, largest)
        if array.dtype.kind == "f"
        else 0.0
        if change == 0
        else None
        for array, change in zip(expected, worst, strict=True)
    ]


def _round_off(array: np.ndarray, largest: float) -> float:
    """Return the error that an output may have because it is round-off; 0 for others."""
    scale, level = largest_of(array), ROUND_OFF * float(np.finfo(array.dtype).eps) * largest
    return 0.0 if scale > level else level / scale if scale else level


def differences(names: Sequence[str], expected: Arrays, found: Arrays, allowed: Sequence[float | None]) -> list[Any]:
    """Return how outputs compare, one `Difference` each.

    Args:
        names: of the outputs.
        expected: of JAX.
        found: of another runtime.
        allowed: of `allowed_errors`.
    """
    largest = max((largest_of(array) for array in expected if array.dtype.kind == "f"), default=0.0)
    return [
        _difference(name, largest_of(a) / largest if largest and a.dtype.kind == "f" else 0.0, error_of(a, b), most)
        for name, a, b, most in zip(names, expected, found, allowed, strict=True)
    ]


def _difference(name: str, share: float, error: float, allowed: float | None) -> Difference:
    """Return how an output compares, of which its largest number is that share of the largest of all."""
    if allowed is None or allowed <= LARGEST_ALLOWED:
        return Difference(name, error, allowed)
    if 0 < share * allowed <= LARGEST_BESIDE_OTHERS:
        return Difference(name, share * error, share * allowed, beside_others=True)
    # What may not even become infinite where the reference is finite is asked for, always.
    return Difference(name, error, None if np.isfinite(error) else allowed)


def worst_of(found: Sequence[Difference]) -> Difference:
    """Return the output that comes nearest to a miss, or misses most; one that is compared, if there is any.

    Args:
        found: at least one.
    """
    return max(found, key=lambda one: (one.compared, one.error / one.allowed if one.allowed else one.error))


def not_compared(found: Sequence[Difference]) -> list[str]:
    """Return the names of outputs that were not compared, each once.

    Args:
        found: of any number of cases.
    """
    return list(dict.fromkeys(one.output for one in found if not one.compared))


def _rounded(array: np.ndarray, time: int) -> np.ndarray:
    """Return numbers, each one unit in the last place up or down, equal ones likewise; half precision as it is.

    A state may hold parameters, and compare them with those that it is given. A simulation that keeps a setting in half
    precision (jax-md's FIRE its time step) computes with the rest in another.

    Args:
        array: any.
        time: which of several such changes.
    """
    if not _is_rounded(array):
        return array
    # A multiplicative hash of the bits: what it says of a number is as good as random.
    bits = array.view(f"u{array.dtype.itemsize}").astype(np.uint64)
    with np.errstate(over="ignore"):
        up = (bits + np.uint64(time)) * np.uint64(0x9E3779B97F4A7C15) >= np.uint64(2**63)
        moved = np.nextafter(array, np.where(up, np.inf, -np.inf).astype(array.dtype))
    return np.where((array == 0) | ~_is_usual(array), array, moved)


def _is_rounded(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and array.dtype.itemsize > 2


def _shaken(array: np.ndarray, scale: Any, kept: np.ndarray) -> np.ndarray:
    """Return numbers, each changed by up to one unit in the last place of a scale, if there is one.

    Args:
        array: any.
        scale: the largest number that it is compared with, one or one for each; ``None`` for what is not of the state.
        kept: numbers that stay, wherever the state holds them.
    """
    if scale is None or not _is_rounded(array):
        return array
    unit = np.finfo(array.dtype).eps * scale
    moved = array + unit * np.random.default_rng(0).uniform(-1, 1, array.shape)
    return np.where(np.isin(array, kept) | ~_is_usual(array), array, moved).astype(array.dtype)
