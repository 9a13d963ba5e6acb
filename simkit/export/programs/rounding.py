"""Stochastic arithmetic: programs with perturbed roundings, to estimate how closely two runtimes can agree."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from simkit.export.onnx import tracing
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.tracing import Program

# Elementary and special functions, which libraries compute with different errors of some units in the last place.
_ROUNDED = (
    "acos acosh asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt cos cosh cumprod digamma erf erf_inv erfc exp "
    "exp2 expm1 igamma igamma_grad_a igammac lgamma log log1p logistic polygamma polynomial pow random_gamma_grad "
    "reduce_prod regularized_incomplete_beta rsqrt sin sinh tan tanh zeta"
)
# Sums of many terms, whose rounding error scales with the largest term: the terms are perturbed, not the result.
_SUMS = (
    "cholesky conv_general_dilated cumlogsumexp cumsum dot_general eigh fft householder_product lu qr reduce_sum "
    "reduce_window_sum scatter_add scatter_sub svd tridiagonal_solve triangular_solve"
)


def perturbed(function: Callable[..., Any], *shapes: Any) -> Callable[..., list[Any]]:
    """Return a function with perturbed roundings, as another runtime may compute it: ``(sample, *arrays) -> arrays``.

    Numbers are moved by one unit in their last place, up or down, pseudo-randomly (Parker 1997, Monte Carlo
    arithmetic): arguments, terms of sums, results of elementary functions, and entries of a loop's state that an
    iteration changed. Products and sums of two terms are not moved: all runtimes round them alike, and there would be
    too many to compile. Numbers whose lower half of mantissa bits is zero stay (counts, masks, powers of two), since
    they, their sums and their products are exact. Equal numbers are moved alike, so that a comparison of a state with
    the parameters that it holds has the same outcome.

    Args:
        function: of arrays, returning arrays; traced as for a runtime that computes array by array.
        *shapes: shapes and types of its arguments.

    Returns:
        The function; sample 0 perturbs nothing, every other sample differently.
    """
    program, _ = tracing.trace(function, *shapes)

    def run(sample: Any, *arrays: Any) -> list[Any]:
        return _run(program, [_moved(array, sample) for array in arrays], sample)

    return run


def _run(program: Program, arguments: Sequence[Any], sample: Any) -> list[Any]:
    known: dict[Any, Any] = dict(zip(program.inputs, arguments, strict=True))
    known |= dict(program.constants)

    def read(variable: Any) -> Any:
        value = tracing.literal(variable)
        return known[variable] if value is None else value

    for equation, inputs, outputs in program.equations():
        results = _apply(equation, [read(variable) for variable in inputs], sample)
        known.update(zip(outputs, results, strict=True))
    return [read(variable) for variable in program.outputs]


def _apply(equation: Equation, values: list[Any], sample: Any) -> list[Any]:
    import jax

    if equation.name == "scan":
        return _scan(tracing.scan(equation), values, sample)
    if equation.name == "while":
        return _while(tracing.while_loop(equation), values, sample)
    if equation.name == "cond":
        bodies = [lambda *given, body=body: _run(body, given, sample) for body in tracing.branches(equation)]
        return jax.lax.switch(values[0], bodies, *values[1:])
    if equation.name == "custom_linear_solve":
        solver, first, end = tracing.linear_solve(equation)
        sides = values[sum(equation.params["const_lengths"]) :]
        return _run(solver, [*values[first:end], *sides], sample)
    if (inner := tracing.called(equation)) is not None:
        return _run(inner, values, sample)
    name = equation.name.replace("-", "_")
    if name in _SUMS.split():
        values = [_moved(value, sample) for value in values]
    if name == "dynamic_slice":
        # XLA for CPUs fails to compile some fusions of slices with the arithmetic of their places.
        values = jax.lax.optimization_barrier(values)
    results = tracing.evaluated(equation, values)
    return [_moved(result, sample) for result in results] if name in _ROUNDED.split() else results


def _scan(parts: tracing.Scan, values: list[Any], sample: Any) -> list[Any]:
    import jax

    constants, rest = values[: parts.constants], values[parts.constants :]

    def iteration(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        results = _run(parts.body, [*constants, *carry, *row], sample)
        return _next(carry, results[: parts.carry], sample), results[parts.carry :]

    start, rows = rest[: parts.carry], rest[parts.carry :]
    carry, stacked = jax.lax.scan(iteration, start, rows, length=parts.length, reverse=parts.reverse)
    return [*carry, *stacked]


def _while(parts: tracing.While, values: list[Any], sample: Any) -> list[Any]:
    import jax
    import jax.numpy as jnp

    count = parts.test_constants + parts.body_constants
    of_test, of_body = values[: parts.test_constants], values[parts.test_constants : count]

    def condition(state: list[Any]) -> Any:
        return _run(parts.test, [*of_test, *state], sample)[0]

    def iteration(state: list[Any]) -> list[Any]:
        after = _next(state, _run(parts.body, [*of_body, *state], sample), sample)
        active = condition(state)
        if not active.shape:
            return after
        # A batch: members whose condition is false keep their state.
        return [
            jnp.where(active.reshape(active.shape + (1,) * (new.ndim - active.ndim)), new, old)
            for new, old in zip(after, state, strict=True)
        ]

    return jax.lax.while_loop(lambda state: condition(state).any(), iteration, values[count:])


def _next(before: Sequence[Any], after: Sequence[Any], sample: Any) -> list[Any]:
    """Return the state after an iteration of a loop, moved where the iteration changed it."""
    import jax.numpy as jnp

    return [
        jnp.where(new != old, _moved(new, sample), new) if jnp.issubdtype(new.dtype, jnp.inexact) else new
        for old, new in zip(before, after, strict=True)
    ]


def _moved(value: Any, sample: Any) -> Any:
    """Return numbers, each moved by one unit in its last place, up or down.

    Args:
        value: an array; types other than float32, float64 and complex ones of these are returned unchanged.
        sample: index of the perturbation; 0 for none.
    """
    import jax.numpy as jnp
    from jax import lax

    dtype = jnp.result_type(value)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return lax.complex(_moved(jnp.real(value), sample), _moved(jnp.imag(value), sample))
    if dtype not in (jnp.float32, jnp.float64):
        return value
    size = 8 * dtype.itemsize
    word = jnp.dtype(f"uint{size}")
    bits = lax.bitcast_convert_type(jnp.asarray(value), word)
    # The low bits of a rounded number are nearly random. The sign bit, mixed in, moves x and -x by different amounts.
    up = ((bits >> jnp.asarray(sample, word)) ^ (bits >> (size - 2))) & 2
    low = np.array(2 ** ((jnp.finfo(dtype).nmant + 1) // 2) - 1, word)
    # Numbers beyond the square root of the largest one stand for infinity.
    is_rounded = (bits & low != 0) & (jnp.abs(value) < jnp.finfo(dtype).max ** 0.5)
    return lax.bitcast_convert_type(jnp.where(is_rounded & (sample != 0), bits + up - 1, bits), dtype)
