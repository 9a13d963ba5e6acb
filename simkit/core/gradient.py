"""Derivatives of objectives in reverse and forward mode, and their check by central differences."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.formulation import default_device
from simkit.core.objective import Objective
from simkit.core.pytrees import size_in_bytes
from simkit.core.rollout import SMALL_BYTES
from simkit.core.settings import word
from simkit.core.simulation import Arrays, Params
from simkit.core.status import Status
from simkit.core.tracing import shapes_and_types
from simkit.errors import UserError

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
    quotients: dict[str, Difference] = {}
    leaves = paths.leaves(params)
    chosen = {name: leaves[name] for name in paths.selected(wrt, leaves)}
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
        quotients[name] = Difference(value, error)
    return quotients


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


type Mode = Literal["reverse", "forward", "shortest"]
MODES = ("reverse", "forward", "shortest")
type Function = Callable[[Params, jax.Array], jax.Array]
type Verdict = Literal["agrees", "differs", "uncertain"]
# Safety factor on the estimated error of a difference, and its largest fraction of the largest derivative, above which
# the difference is too inaccurate to decide.
SAFETY, UNCERTAIN = 3.0, 0.1
# Further relative difference allowed, in units of the cube root of the rounding unit.
AGREEMENT = 2.0
# Numbers up to which the shortest mode is forward mode. It costs about one run per number and compiles in a time that
# hardly depends on their count; reverse mode costs about four runs for any count and compiles 2 to 3 times as long.
FORWARD_NUMBERS = 3
# The same for a run whose states take less than `SMALL_BYTES`: a run takes milliseconds, compilation seconds.
FORWARD_NUMBERS_SMALL = 16


def with_derivative(
    objective: Function, wrt: str | Sequence[str], mode: Mode = "shortest"
) -> Callable[[Params, jax.Array], tuple[jax.Array, Arrays]]:
    """Return ``(params, key) -> (value, {path: derivative})`` with respect to the parameters named in ``wrt``.

    `with_status_and_derivative` also returns the status of the run.

    Args:
        objective: ``(params, key) -> scalar``, an `Objective` or any such function.
        wrt: paths of parameters; a branch stands for all below it. Each derivative has the shape of its parameter.
        mode: ``"reverse"`` (cost independent of the number of parameters), ``"forward"`` (no stored states, shorter to
            compile; cost proportional to the number of parameters), or ``"shortest"``: forward for up to three numbers
            (16 in `jitted`, for a run whose states take less than 1.2 MB in all).

    Raises:
        UserError: if the mode is unknown; when called, if a name is not a parameter or not of real numbers.
    """
    derive = with_status_and_derivative(lambda params, key: (objective(params, key), jnp.int32(Status.OK)), wrt, mode)

    def run(params: Params, key: jax.Array) -> tuple[jax.Array, Arrays]:
        value, _, derivative = derive(params, key)
        return value, derivative

    return compiled(run)


def with_status_and_derivative(
    objective: Callable[[Params, jax.Array], tuple[jax.Array, jax.Array]],
    wrt: str | Sequence[str],
    mode: Mode = "shortest",
    forward_numbers: int = FORWARD_NUMBERS,
) -> Callable[[Params, jax.Array], tuple[jax.Array, jax.Array, Arrays]]:
    """Return ``(params, key) -> (value, status, {path: derivative})``; the derivative of a failed run is not valid.

    Args:
        objective: ``(params, key) -> (scalar, code)``, such as `simkit.core.objective.Objective.with_status`.
        wrt: as for `with_derivative`.
        mode: likewise.
        forward_numbers: numbers up to which the shortest mode is forward mode.

    Raises:
        UserError: as `with_derivative`.
    """
    check_mode(mode)

    def run(params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array, Arrays]:
        chosen = chosen_of(params, wrt)

        def function(chosen: Arrays) -> tuple[jax.Array, jax.Array]:
            return objective(paths.replaced(params, chosen), key)

        return value_and_derivative(function, chosen, mode, forward_numbers)

    return compiled(run)


def check_mode(mode: Mode) -> None:
    """Refuse an unknown mode of differentiation.

    Args:
        mode: one of `MODES`.

    Raises:
        UserError: if it is unknown.
    """
    word("of differentiation", tuple(MODES)).check(mode, "mode")


def value_and_derivative[T](
    function: Callable[[Arrays], tuple[jax.Array, T]],
    chosen: Arrays,
    mode: Mode = "shortest",
    forward_numbers: int = FORWARD_NUMBERS,
) -> tuple[jax.Array, T, Arrays]:
    """Return the value of a function of arrays, its auxiliary output, and the derivative of the value.

    Args:
        function: ``arrays -> (scalar, auxiliary output)``.
        chosen: its argument, ``{name: array}``.
        mode: as for `with_derivative`.
        forward_numbers: numbers up to which the shortest mode is forward mode.
    """
    numbers = sum(jnp.size(value) for value in chosen.values())
    if not goes_forward(mode, numbers, forward_numbers):
        (value, other), derivative = jax.value_and_grad(function, has_aux=True)(chosen)
        return value, other, derivative
    if numbers == 1:
        # A plain tangent; `jacfwd` would trace and compile every operation again with an axis of length 1.
        ones = jax.tree.map(jnp.ones_like, chosen)
        value, slope, other = jax.jvp(function, (chosen,), (ones,), has_aux=True)
        return value, other, {name: jnp.reshape(slope, jnp.shape(number)) for name, number in chosen.items()}

    def twice(chosen: Arrays) -> tuple[jax.Array, tuple[jax.Array, T]]:
        value, other = function(chosen)
        return value, (value, other)

    derivative, (value, other) = jax.jacfwd(twice, has_aux=True)(chosen)
    return value, other, derivative


def jitted(objective: Objective, wrt: str | Sequence[str], mode: Mode, params: Params, key: jax.Array) -> Any:
    """Return `with_status_and_derivative`, jitted with compiler options that suit the length of the run, and kept.

    On a CPU, a run whose states take less than 1.2 MB in all takes less time than the optimization of its machine code,
    which is therefore switched off: compiling takes half as long (Newton's cradle: 2.5 s instead of 5.6), running two
    to three times as long (4 ms). The shortest mode of such a run is forward mode for up to 16 numbers.

    Args:
        objective: what to differentiate.
        wrt: as for `with_derivative`.
        mode: as for `with_derivative`.
        params: parameters; only their shapes matter.
        key: random key; only its shape matters. Keys (n,) of n members give each result a leading axis of length n.
    """

    def made() -> Any:
        small = _states_are_small(objective, key)
        options = {"xla_backend_optimization_level": 0} if small and default_device() == "cpu" else None
        forward_numbers = FORWARD_NUMBERS_SMALL if small else FORWARD_NUMBERS
        derive = with_status_and_derivative(alone.with_status, wrt, mode, forward_numbers)
        if jnp.ndim(key):
            derive = jax.vmap(derive, in_axes=(None, 0))
        return jax.jit(derive, compiler_options=options)

    if not isinstance(objective, Objective):  # another one has no simulation to keep its program with
        alone = objective
        return made()
    alone = objective.unshared()
    names = wrt if isinstance(wrt, str) else tuple(wrt)
    about = ("derivative", objective.settings, names, mode, jnp.shape(key), shapes_and_types(params))
    return objective.simulation.programs.cached(about, made)


def is_forward(objective: Objective, wrt: str | Sequence[str], mode: Mode, params: Params, key: jax.Array) -> bool:
    """Return whether `jitted` differentiates in forward mode, which stores no states.

    Args:
        objective: as for `jitted`, and the others.
        wrt: likewise.
        mode: likewise.
        params: likewise.
        key: likewise.

    Raises:
        UserError: if a name is not a parameter.
    """
    numbers = sum(map(jnp.size, chosen_of(params, wrt).values()))
    small = _states_are_small(objective, key)
    return goes_forward(mode, numbers, FORWARD_NUMBERS_SMALL if small else FORWARD_NUMBERS)


def goes_forward(mode: Mode, numbers: int, forward_numbers: int = FORWARD_NUMBERS) -> bool:
    """Return whether a mode is forward mode for some numbers.

    Args:
        mode: as for `with_derivative`.
        numbers: how many are differentiated by.
        forward_numbers: how many the shortest mode differentiates by in forward mode at most.
    """
    return mode == "forward" or (mode == "shortest" and numbers <= forward_numbers)


def _states_are_small(objective: Objective, key: jax.Array) -> bool:
    return not objective.converges and objective.steps * state_bytes(objective, key) <= SMALL_BYTES


def state_bytes(objective: Objective, key: jax.Array) -> int:
    """Return the size in bytes of the states of all members; arguments as for `jitted`."""
    return math.prod(jnp.shape(key)) * size_in_bytes(objective.simulation.shapes.state)


def derivative_with_growth[Derive: Callable](
    objective: Objective,
    wrt: str | Sequence[str],
    mode: Mode,
    params: Params,
    key: jax.Array,
    compiling: Callable[..., Derive] = jitted,
) -> tuple[Derive, Objective, jax.Array, jax.Array, Arrays]:
    """Return `jitted` with buffers large enough for the run, the objective with these buffers, and the call's results.

    The results are value, status and derivative; one overflow compiles a second program.

    Args:
        objective: as for `jitted`, and the others.
        wrt: likewise.
        mode: likewise.
        params: likewise.
        key: likewise.
        compiling: a function with the signature of `jitted`.
    """
    derive = compiling(objective, wrt, mode, params, key)
    results = derive(params, key)
    if (overflowed := np.asarray(results[1]) == Status.BUFFER_OVERFLOW).any():
        for member_key in key[overflowed] if jnp.ndim(key) else [key]:
            objective = objective.with_room(params, member_key)
        derive = compiling(objective, wrt, mode, params, key)
        results = derive(params, key)
    return derive, objective, *results


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """A derivative beside its central difference.

    Attributes:
        value: the objective.
        derivative: by automatic differentiation, ``{path: array}``.
        difference: by central differences, likewise.
        error: estimated errors of the central differences, likewise.
        relative_difference: largest difference between the two over the largest derivative, per name.
        verdict: ``"agrees"``, ``"differs"``, or ``"uncertain"`` if the central difference is too inaccurate, per name.
        status: status of the run, a code of `simkit.core.status.Status`.
    """

    value: float
    derivative: dict[str, np.ndarray]
    difference: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    relative_difference: dict[str, float]
    verdict: dict[str, Verdict]
    status: int


def check_gradient(
    objective: Objective,
    params: Params,
    key: jax.Array,
    wrt: str | Sequence[str],
    mode: Mode = "shortest",
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> GradientCheck:
    """Compare the derivative of an objective with central differences (meaningful in float64).

    Args:
        objective: what to differentiate; one that converges starts again from its own solution for each difference.
        params: parameters at which to differentiate.
        key: random key of the initial state.
        wrt: paths of parameters; a branch stands for all below it.
        mode: see `with_derivative`.
        bounds: ``{path: (low, high)}``, where known; see `simkit.core.gradient.differences`.

    Raises:
        UserError: if a name is not a parameter.

    Example:
        >>> with jax.enable_x64(True):
        ...     ball = rigid.bouncing_ball()
        ...     end = simkit.Objective(ball, "position_x", steps=100, every=100)
        ...     check = simkit.check_gradient(end, ball.params, jax.random.key(0), "launch_speed")
        >>> print(f"{check.derivative['launch_speed']:.4f} s, by differences {check.difference['launch_speed']:.4f} s")
        0.5801 s, by differences 0.5801 s
        >>> check.verdict
        {'launch_speed': 'agrees'}
    """
    _, objective, value, status, derivative = derivative_with_growth(objective, wrt, mode, params, key)
    exact = {name: np.asarray(array) for name, array in derivative.items()}
    quotients = differences(objective.continuation(params, key), params, wrt, bounds)
    return GradientCheck(
        value=float(value),
        derivative=exact,
        difference={name: quotients[name].value for name in exact},
        error={name: quotients[name].error for name in exact},
        relative_difference={name: relative_difference(exact[name], quotients[name].value) for name in exact},
        verdict={name: verdict_of(exact[name], quotients[name]) for name in exact},
        status=int(status),
    )


def verdict_of(derivative: np.ndarray, difference: Difference) -> Verdict:
    """Return whether a derivative agrees with its central difference in every entry.

    It agrees if it differs by less than three times the estimated error plus twice the cube root of the rounding unit
    (relative), and the error is less than a tenth of the largest entry.

    Args:
        derivative: by automatic differentiation.
        difference: central differences of the same entries.
    """
    apart, size = np.abs(derivative - difference.value), np.maximum(np.abs(derivative), np.abs(difference.value))
    margin = SAFETY * difference.error
    allowed = margin + AGREEMENT * float(np.finfo(difference.value.dtype).eps) ** (1 / 3) * size
    if not np.all(apart <= allowed):
        return "uncertain" if np.all(np.isfinite(derivative)) and not np.all(np.isfinite(allowed)) else "differs"
    return "agrees" if np.all(margin <= UNCERTAIN * np.max(size, initial=0)) or not np.any(apart) else "uncertain"


def relative_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return ``max |a - b| / max(|a|, |b|)``, zero if both vanish."""
    scale = max(np.max(np.abs(a)), np.max(np.abs(b)))
    return float(np.max(np.abs(a - b)) / scale) if scale else 0.0


def chosen_of(params: Params, wrt: str | Sequence[str]) -> Arrays:
    """Return the parameters named in ``wrt``, ``{path: array}``.

    Raises:
        UserError: if there is none, or one is not of real numbers.
    """
    leaves = paths.leaves(params)
    return {name: leaves[name] for name in differentiable(wrt, leaves)}


def differentiable(wrt: str | Sequence[str], known: Mapping[str, jax.Array]) -> list[str]:
    """Return the paths of the parameters named in ``wrt``.

    Raises:
        UserError: if there is none, or one is not of real numbers.
    """
    if not (names := paths.selected(wrt, known)):
        raise UserError("wrt names no parameter; name each parameter once")
    for name in names:
        kind = jnp.result_type(known[name])
        if not jnp.issubdtype(kind, jnp.floating):
            raise UserError(
                f"parameter '{name}' is of type {kind}, which has no derivative; give real numbers, such as "
                "jnp.asarray(value, dtype=float)"
            )
    return names
