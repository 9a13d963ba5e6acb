"""Central differences with an estimate of their own error, for comparison with derivatives."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.simulation import Params

# Scale of a parameter as a fraction of the distance of its bounds.
SHARE_OF_BOUNDS = 0.01
# Estimated error, relative to the difference, below which no other step is tried.
GOOD = 1e-6
# Factors on the step, tried in this order.
STEP_FACTORS = (1.0, 1 / 32, 32.0)


class Difference(NamedTuple):
    """A derivative by finite differences, entry by entry.

    Attributes:
        value: the derivative.
        error: its estimated error, from two step sizes and the round-off of the function.
    """

    value: np.ndarray
    error: np.ndarray


def differences(
    function: Callable[[Params], jax.Array],
    params: Params,
    wrt: str | Sequence[str],
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> dict[str, Difference]:
    """Differentiate by central differences of two steps, one number at a time, and estimate their error.

        D(h) = (f(p + h) - f(p - h)) / 2h,   value = (4 D(h) - D(2h)) / 3,   error = |D(h) - D(2h)| / 3 + noise / h

    The noise is the change of the function between neighboring floating-point numbers, or its rounding unit if larger.
    The step h is the fourth root of the rounding unit times the scale of the parameter: the largest magnitude in its
    array or a hundredth of the distance of its bounds, whichever is larger (1 where both are zero or unknown), the same
    for small and large entries. Where the error is above 1e-6 of the value, steps 32 times as short and as long are
    tried and the best is returned. Next to a bound, differences are one-sided.

    Args:
        function: ``params -> scalar``.
        params: where to differentiate.
        wrt: paths of parameters; a branch stands for all below it.
        bounds: ``{path: (low, high)}``, within which the function may be evaluated.

    Reference: Richardson, Phil. Trans. R. Soc. A 210, 307 (1911), doi:10.1098/rsta.1911.0009.
    """
    found: dict[str, Difference] = {}
    known = paths.leaves(params)
    chosen = {name: known[name] for name in paths.selected(wrt, known)}
    compiled = jax.jit(lambda chosen: function(paths.replaced(params, chosen)))
    for name, array in chosen.items():
        exact = np.asarray(array)
        low, high = (bounds or {}).get(name, (-np.inf, np.inf))
        value, error = np.empty(exact.shape, exact.dtype), np.empty(exact.shape, exact.dtype)
        for index in np.ndindex(exact.shape):

            def along(x: float, name: str = name, exact: np.ndarray = exact, index: tuple = index) -> float:
                moved = exact.copy()
                moved[index] = x
                return float(compiled({**chosen, name: jnp.asarray(moved)}))

            value[index], error[index] = _of_one(
                along, float(exact[index]), exact.dtype, _scale(exact, low, high), low, high
            )
        found[name] = Difference(value, error)
    return found


def _scale(array: np.ndarray, low: float, high: float) -> float:
    of_bounds = SHARE_OF_BOUNDS * (high - low) if np.isfinite(high - low) else 0.0
    return max(float(np.max(np.abs(array), initial=0)), of_bounds) or 1.0


def _of_one(
    function: Callable[[float], float], at: float, dtype: np.dtype, scale: float, low: float, high: float
) -> tuple[float, float]:
    """Return the derivative of a function of one number and its error, by the best of several step sizes."""
    rounding = float(np.finfo(dtype).eps)
    best = (np.nan, np.inf)
    noise = _noise(function, at, dtype, low, high)
    for factor in STEP_FACTORS:
        value, error = _quotient(function, at, dtype, factor * rounding**0.25 * scale, low, high, noise)
        if error < best[1]:
            best = value, error
        if best[1] <= GOOD * abs(best[0]):
            break
    return best


def _noise(function: Callable[[float], float], at: float, dtype: np.dtype, low: float, high: float) -> float:
    """Return the spread of a function over neighboring floating-point numbers within the bounds.

    Cancellation inside the function makes it larger than the round-off of the function's value.
    """
    spacing = float(np.spacing(dtype.type(abs(at) or 1)))
    values = [function(number) for k in range(-2, 3) if low <= (number := at + k * spacing) <= high]
    return float(np.ptp(values)) if values else 0.0


def _quotient(
    function: Callable[[float], float],
    at: float,
    dtype: np.dtype,
    step: float,
    low: float,
    high: float,
    noise: float,
) -> tuple[float, float]:
    """Return a central difference, one-sided next to a bound, and its error."""
    sided = min(high - at, at - low) < 2 * step
    if sided:
        step = min(step, max(high - at, at - low) / 4) * (1 if high - at >= at - low else -1)

    def quotient(step: float) -> tuple[float, float]:
        # The steps actually taken, after rounding.
        ends = [float(dtype.type(at + k * step)) for k in ((0, 1, 2) if sided else (-1, 1))]
        values = [function(end) for end in ends]
        largest = max(abs(value) for value in values)
        if not sided:
            return (values[1] - values[0]) / (ends[1] - ends[0]), largest
        near, far = ends[1] - ends[0], ends[2] - ends[0]
        slope_near, slope_far = (values[1] - values[0]) / near, (values[2] - values[0]) / far
        return (slope_near * far - slope_far * near) / (far - near), largest

    (fine, largest), (coarse, _) = quotient(step), quotient(2 * step)
    rounding = max(float(np.finfo(dtype).eps) * largest, noise) / abs(step)
    error = abs(fine - coarse) / 3 + rounding
    return (4 * fine - coarse) / 3, error if np.isfinite(error) else np.inf
