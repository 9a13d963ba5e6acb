"""Arithmetic of expressions with derivatives that are finite where the mathematical derivative is.

Reverse mode multiplies slopes by cotangents. In the branch of ``where(r > 0, 1/r, 0)`` that is not chosen, the
cotangent is zero and the slope may be infinite. Their product is NaN in plain arithmetic and zero here; so is that of a
zero slope and an infinite cotangent, as of ``sqrt(x**2 + y**2)`` at the origin.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

type Unary = Callable[[jax.Array], jax.Array]


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a * b``; zero where either factor is zero, even if the other is infinite or NaN."""
    a, b = jnp.broadcast_arrays(a, b)
    dtype = jnp.result_type(a, b)
    return _primitive().bind(a.astype(dtype), b.astype(dtype))


@functools.cache
def _primitive() -> Any:
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    def plain(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.where((a == 0) | (b == 0), jnp.zeros_like(a), a * b)

    def batched(factors: Any, axes: Any) -> Any:
        size = next(factor.shape[axis] for factor, axis in zip(factors, axes, strict=True) if axis is not None)
        with_batch = [
            jnp.broadcast_to(factor, (size, *factor.shape)) if axis is None else jnp.moveaxis(factor, axis, 0)
            for factor, axis in zip(factors, axes, strict=True)
        ]
        return primitive.bind(*with_batch), 0

    primitive = Primitive("product_or_zero")
    primitive.def_impl(jax.jit(plain))
    primitive.def_abstract_eval(lambda a, b: a)
    mlir.register_lowering(primitive, mlir.lower_fun(plain, multiple_results=False))
    batching.primitive_batchers[primitive] = batched
    ad.defbilinear(
        primitive,
        lambda cotangent, a, b: primitive.bind(cotangent, b),
        lambda cotangent, a, b: primitive.bind(a, cotangent),
    )
    return primitive


@jax.custom_jvp
def multiply(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a * b``."""
    return a * b


@multiply.defjvp
def _(values: Any, tangents: Any) -> Any:
    (a, b), (da, db) = map(jnp.asarray, values), tangents
    return a * b, product(da, b) + product(a, db)


@jax.custom_jvp
def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return ``a / b``."""
    return a / b


@divide.defjvp
def _(values: Any, tangents: Any) -> Any:
    (a, b), (da, db) = map(jnp.asarray, values), tangents
    quotient, inverse = a / b, 1 / b
    # quotient * inverse instead of a / b**2 saves a division, which costs as much as the rest of a pair energy.
    return quotient, product(inverse, da) - product(quotient * inverse, db)


@jax.custom_jvp
def power(x: jax.Array, exponent: jax.Array) -> jax.Array:
    """Return ``x ** exponent``."""
    return x**exponent


@power.defjvp
def _(values: Any, tangents: Any) -> Any:
    (x, exponent), (dx, dexponent) = map(jnp.asarray, values), tangents
    slope = product(exponent, x ** (exponent - 1))
    return x**exponent, product(slope, dx) + product(product(x**exponent, jnp.log(x)), dexponent)


@jax.custom_jvp
def angle(y: jax.Array, x: jax.Array) -> jax.Array:
    """Return the angle of the point ``(x, y)``."""
    return jnp.arctan2(y, x)


@angle.defjvp
def _(values: Any, tangents: Any) -> Any:
    (y, x), (dy, dx) = map(jnp.asarray, values), tangents
    return jnp.arctan2(y, x), product(x / (x**2 + y**2), dy) - product(y / (x**2 + y**2), dx)


@functools.cache
def integer_power(exponent: int) -> Unary:
    """Return ``x -> x ** exponent`` for an integer that is known when the program is compiled."""
    return _with_slope(
        lambda x: x**exponent, lambda x: exponent * x ** (exponent - 1) if exponent else jnp.zeros_like(x)
    )


def _with_slope(function: Unary, slope: Unary) -> Unary:
    wrapped = jax.custom_jvp(function)
    wrapped.defjvp(lambda values, tangents: (wrapped(*values), product(slope(jnp.asarray(values[0])), tangents[0])))
    return wrapped


UNARY: dict[str, Unary] = {
    "abs": _with_slope(jnp.abs, jnp.sign),
    "sign": _with_slope(jnp.sign, jnp.zeros_like),
    "sqrt": _with_slope(jnp.sqrt, lambda x: 0.5 / jnp.sqrt(x)),
    "exp": _with_slope(jnp.exp, jnp.exp),
    "log": _with_slope(jnp.log, lambda x: 1 / x),
    "log10": _with_slope(jnp.log10, lambda x: 1 / (x * math.log(10))),
    "sin": _with_slope(jnp.sin, jnp.cos),
    "cos": _with_slope(jnp.cos, lambda x: -jnp.sin(x)),
    "tan": _with_slope(jnp.tan, lambda x: 1 + jnp.tan(x) ** 2),
    "asin": _with_slope(jnp.arcsin, lambda x: 1 / jnp.sqrt(1 - x**2)),
    "acos": _with_slope(jnp.arccos, lambda x: -1 / jnp.sqrt(1 - x**2)),
    "atan": _with_slope(jnp.arctan, lambda x: 1 / (1 + x**2)),
    "sinh": _with_slope(jnp.sinh, jnp.cosh),
    "cosh": _with_slope(jnp.cosh, jnp.sinh),
    "tanh": _with_slope(jnp.tanh, lambda x: 1 - jnp.tanh(x) ** 2),
    "erf": _with_slope(jax.scipy.special.erf, lambda x: 2 / math.sqrt(math.pi) * jnp.exp(-(x**2))),
}
square = integer_power(2)
