"""Derivatives of objectives: reverse and forward mode, and central differences to check them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core import paths
from simkit.core.compilation import compiled
from simkit.core.differences import Difference, differences
from simkit.core.objective import Objective
from simkit.core.pytree import size_in_bytes
from simkit.core.rematerialization import LITTLE
from simkit.core.simulation import Arrays, Params
from simkit.core.status import Status
from simkit.errors import UserError

type Mode = Literal["reverse", "forward", "shortest"]

MODES = ("reverse", "forward", "shortest")

type Function = Callable[[Params, jax.Array], jax.Array]

type Verdict = Literal["agrees", "differs", "uncertain"]

# How many times the estimated error of a difference counts, and how much of the largest derivative it may be.
SAFETY, UNCERTAIN = 3.0, 0.1
# What else a right derivative may differ by, relatively, in units of the cube root of the rounding unit.
AGREEMENT = 2.0

# Forward mode costs about a run per number, reverse mode about four of any number, and two or three times the
# compilation, which in forward mode hardly grows with the numbers.
FEW = 3
# So many runs take less time than that compilation where all states are little together: a few ms each, and seconds.
FEW_OF_LITTLE = 16


def with_derivative(
    objective: Function, wrt: str | Sequence[str], mode: Mode = "shortest"
) -> Callable[[Params, jax.Array], tuple[jax.Array, Arrays]]:
    """Return ``(params, key) -> (value, {path: derivative})`` with respect to the parameters named in ``wrt``.

    `with_status_and_derivative` also tells what the derivative is worth.

    Args:
        objective: ``(params, key) -> scalar``, an `Objective` or any such function.
        wrt: paths of parameters; a branch stands for all below it, and each derivative has its parameter's shape.
        mode: ``"reverse"`` (cost independent of the number of parameters), ``"forward"`` (no stored states, shorter to
            compile; cost proportional to the number of parameters), or ``"shortest"``: forward for up to three numbers
            (16 in `jitted`, for a run whose states are little together).

    Raises:
        UserError: if a name is not a parameter, or one is not of real numbers (when called).
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
    few: int = FEW,
) -> Callable[[Params, jax.Array], tuple[jax.Array, jax.Array, Arrays]]:
    """Return ``(params, key) -> (value, status, {path: derivative})``: of a run that failed, no derivative is right.

    Args:
        objective: ``(params, key) -> (scalar, code)``, such as `simkit.core.objective.Objective.with_status`.
        wrt: as for `with_derivative`.
        mode: likewise.
        few: up to how many numbers the shortest mode is forward mode.

    Raises:
        UserError: if a name is not a parameter (when called).
    """
    if mode not in MODES:
        raise UserError(f"mode = {mode!r} is unknown; choose one of {', '.join(MODES)}")

    def run(params: Params, key: jax.Array) -> tuple[jax.Array, jax.Array, Arrays]:
        known = paths.leaves(params)
        chosen = {name: known[name] for name in differentiable(wrt, known)}
        return derived(lambda chosen: objective(paths.replaced(params, chosen), key), chosen, mode, few)

    return compiled(run)


def derived[T](
    function: Callable[[Arrays], tuple[jax.Array, T]], chosen: Arrays, mode: Mode = "shortest", few: int = FEW
) -> tuple[jax.Array, T, Arrays]:
    """Return the value of a function of arrays, what else it returns, and the derivative of the value.

    Args:
        function: ``arrays -> (scalar, anything)``.
        chosen: where, ``{name: array}``.
        mode: as for `with_derivative`.
        few: up to how many numbers the shortest mode is forward mode.
    """
    numbers = sum(jnp.size(value) for value in chosen.values())
    if not _is_forward(mode, numbers, few):
        (value, other), derivative = jax.value_and_grad(function, has_aux=True)(chosen)
        return value, other, derivative
    if numbers == 1:
        # A plain tangent; `jacfwd` would trace and compile every operation once more, over an axis of length 1.
        ones = jax.tree.map(jnp.ones_like, chosen)
        value, slope, other = jax.jvp(function, (chosen,), (ones,), has_aux=True)
        return value, other, {name: jnp.reshape(slope, jnp.shape(number)) for name, number in chosen.items()}

    def twice(chosen: Arrays) -> tuple[jax.Array, tuple[jax.Array, T]]:
        value, other = function(chosen)
        return value, (value, other)

    derivative, (value, other) = jax.jacfwd(twice, has_aux=True)(chosen)
    return value, other, derivative


def jitted(objective: Objective, wrt: str | Sequence[str], mode: Mode, params: Params, key: jax.Array) -> Any:
    """Return `with_status_and_derivative`, jitted, to be compiled in the time that suits the run.

    On a processor, a run whose states are little together takes less time than optimizing its machine code, which is
    left out: compiling takes half as long (the cradle: 2.5 s for 5.6), running two or three times as long (4 ms). The
    shortest mode of such a run is forward mode for more numbers.

    Args:
        objective: what to differentiate.
        wrt: as for `with_derivative`.
        mode: as for `with_derivative`.
        params: of which only the shapes count.
        key: likewise.
    """
    little = _states_are_little(objective, params, key)
    options = {"xla_backend_optimization_level": 0} if little and jax.default_backend() == "cpu" else None
    derive = with_status_and_derivative(objective.with_status, wrt, mode, FEW_OF_LITTLE if little else FEW)
    return jax.jit(derive, compiler_options=options)


def is_forward(objective: Objective, wrt: str | Sequence[str], mode: Mode, params: Params, key: jax.Array) -> bool:
    """Return whether `jitted` differentiates in forward mode, which holds no states.

    Args:
        objective: as for `jitted`, and the others.
        wrt: likewise.
        mode: likewise.
        params: likewise.
        key: likewise.

    Raises:
        UserError: if a name is not a parameter.
    """
    known = paths.leaves(params)
    numbers = sum(jnp.size(known[name]) for name in differentiable(wrt, known))
    return _is_forward(mode, numbers, FEW_OF_LITTLE if _states_are_little(objective, params, key) else FEW)


def _is_forward(mode: Mode, numbers: int, few: int) -> bool:
    return mode == "forward" or (mode == "shortest" and numbers <= few)


def _states_are_little(objective: Objective, params: Params, key: jax.Array) -> bool:
    if objective.converges:
        return False
    state = jax.eval_shape(objective.simulation.init, params, key)
    return objective.steps * size_in_bytes(state) <= LITTLE


def roomy[Derive: Callable](
    objective: Objective,
    wrt: str | Sequence[str],
    mode: Mode,
    params: Params,
    key: jax.Array,
    compiling: Callable[..., Derive] = jitted,
) -> tuple[Derive, Objective, jax.Array, jax.Array, Arrays]:
    """Return what `jitted` returns with the buffers that the run needed, its objective, and what comes of the call.

    Args:
        objective: as for `jitted`, and the others.
        wrt: likewise.
        mode: likewise.
        params: likewise.
        key: likewise.
        compiling: called like `jitted`.
    """
    derive = compiling(objective, wrt, mode, params, key)
    found = derive(params, key)
    if int(found[1]) == Status.BUFFER_OVERFLOW:
        objective = objective.with_room(params, key)
        derive = compiling(objective, wrt, mode, params, key)
        found = derive(params, key)
    return derive, objective, *found


@dataclasses.dataclass(frozen=True)
class GradientCheck:
    """A derivative beside its central difference.

    Attributes:
        value: the objective.
        derivative: by automatic differentiation, ``{path: array}``.
        difference: by central differences, likewise.
        error: estimated errors of the central differences, likewise.
        relative_difference: largest difference between the two over the largest derivative, per name.
        verdict: ``"agrees"``, ``"differs"``, or ``"uncertain"`` where the difference is too inaccurate, per name.
        status: of the run, a code of `simkit.core.status.Status`.
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
        objective: what to differentiate; one that converges is converged again from its own solution.
        params: where.
        key: random key of the initial state.
        wrt: paths of parameters; a branch stands for all below it.
        mode: see `with_derivative`.
        bounds: ``{path: (low, high)}``, where known; see `simkit.core.differences.differences`.

    Raises:
        UserError: if a name is not a parameter.
    """
    _, objective, value, status, derivative = roomy(objective, wrt, mode, params, key)
    exact = {name: np.asarray(array) for name, array in derivative.items()}
    found = differences(objective.near(params, key), params, wrt, bounds)
    return GradientCheck(
        value=float(value),
        derivative=exact,
        difference={name: found[name].value for name in exact},
        error={name: found[name].error for name in exact},
        relative_difference={name: relative_difference(exact[name], found[name].value) for name in exact},
        verdict={name: verdict_of(exact[name], found[name]) for name in exact},
        status=int(status),
    )


def verdict_of(derivative: np.ndarray, difference: Difference) -> Verdict:
    """Return whether a derivative is right, as far as its difference can tell, entry by entry.

    They agree if they are no further apart than three times the difference's error and a few steps' worth of rounding,
    and that is far less than the derivative.

    Args:
        derivative: by automatic differentiation.
        difference: of the same entries.
    """
    apart, size = np.abs(derivative - difference.value), np.maximum(np.abs(derivative), np.abs(difference.value))
    margin = SAFETY * difference.error
    allowed = margin + AGREEMENT * float(np.finfo(difference.value.dtype).eps) ** (1 / 3) * size
    if not np.all(apart <= allowed):
        return "uncertain" if np.all(np.isfinite(derivative)) and not np.all(np.isfinite(allowed)) else "differs"
    return "agrees" if np.all(margin <= UNCERTAIN * np.max(size, initial=0)) or not np.any(apart) else "uncertain"


def relative_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return ``max |a - b| / max(|a|, |b|)``, zero where both vanish."""
    scale = max(np.max(np.abs(a)), np.max(np.abs(b)))
    return float(np.max(np.abs(a - b)) / scale) if scale else 0.0


def differentiable(wrt: str | Sequence[str], known: Mapping[str, jax.Array]) -> list[str]:
    """Return the paths of the parameters that are named, all of real numbers."""
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
