"""Elementary functions: by the runtime's kernels where these are accurate, else by formulas built on them."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.convert import inline
from simkit.export.onnx.equations import Equation
from simkit.export.onnx.graph import Graph, Tensor
from simkit.export.onnx.registry import primitive

_KERNELS = {"exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tanh": "Tanh"}


@primitive(*_KERNELS)
def kernel(graph: Graph, equation: Equation, x: Tensor) -> Tensor:
    """``exp(x)`` and the like."""
    return graph.elementwise(_KERNELS[equation.name], x)


def formula(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function written with JAX, of real arrays, as the converter of primitives.

    Args:
        *names: of the primitives.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @primitive(*names)
        @functools.wraps(function)
        def convert(graph: Graph, equation: Equation, *tensors: Tensor) -> Tensor:
            # The elements of a broadcast are computed once, before it.
            small = [tensor.narrow or tensor for tensor in tensors]
            return graph.expand(inline(graph, function, *small)[0], equation.out.shape)

        return function

    return register


@formula("exp2")
def exp2(x: Any) -> Any:
    """``2^x``."""
    return jnp.power(jnp.asarray(2, x.dtype), x)


@formula("log2")
def log2(x: Any) -> Any:
    """``log(x) / log(2)``."""
    return jnp.log(x) * np.asarray(1 / math.log(2), x.dtype)


@formula("log1p")
def log1p(x: Any) -> Any:
    """``log(u) x / (u - 1)`` with the rounded ``u = 1 + x`` (Kahan; Higham, Accuracy and Stability, section 1.14.1)."""
    u = 1 + x
    exact = (u == 1) | jnp.isinf(u) | (u <= 0)
    return jnp.where(exact, jnp.where(u == 1, x, jnp.log(u)), jnp.log(u) * (x / jnp.where(exact, 1, u - 1)))


@formula("expm1")
def expm1(x: Any) -> Any:
    """``(u - 1) x / log(u)`` with the rounded ``u = exp(x)`` (Kahan; Higham, section 1.14.1)."""
    u = jnp.exp(x)
    plain = (u == 1) | jnp.isinf(u) | (u < 0.1) | (u > 10)
    between = (u - 1) * (x / jnp.log(jnp.where(plain, 2, u)))
    return jnp.where(plain, jnp.where(u == 1, x, u - 1), between)


@formula("logistic")
def logistic(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    return 1 / (1 + jnp.exp(-x))


@formula("tan")
def tan(x: Any) -> Any:
    """``sin(x) / cos(x)``."""
    return jnp.sin(x) / jnp.cos(x)


@formula("sinh")
def sinh(x: Any) -> Any:
    """``(m + m / (m + 1)) / 2`` with ``m = expm1(|x|)``; for large x ``exp(x / 2)^2 / 2``, which overflows later."""
    size = jnp.abs(x)
    m = jnp.expm1(jnp.minimum(size, 40))
    half = jnp.exp(size / 2)
    return jnp.sign(x) * jnp.where(size > 40, half * (half / 2), (m + m / (m + 1)) / 2)


@formula("cosh")
def cosh(x: Any) -> Any:
    """``(exp(x) + exp(-x)) / 2``, by ``exp(x / 2)``, which overflows later."""
    half = jnp.exp(jnp.abs(x) / 2)
    return half * (half / 2) + 0.5 / (half * half)


@formula("asinh")
def asinh(x: Any) -> Any:
    """``sign(x) log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))``."""
    size = jnp.abs(x)
    large = size > 1e8
    inner = jnp.where(large, 1, size)
    near = jnp.log1p(inner + inner * inner / (1 + jnp.sqrt(1 + inner * inner)))
    return jnp.sign(x) * jnp.where(large, jnp.log(size) + math.log(2), near)


@formula("acosh")
def acosh(x: Any) -> Any:
    """``log1p(t + sqrt(2 t + t^2))`` with ``t = x - 1``."""
    large = x > 1e8
    t = jnp.where(large, 1, x) - 1
    return jnp.where(large, jnp.log(x) + math.log(2), jnp.log1p(t + jnp.sqrt(2 * t + t * t)))


@formula("atanh")
def atanh(x: Any) -> Any:
    """``sign(x) log1p(2 |x| / (1 - |x|)) / 2``."""
    size = jnp.abs(x)
    return jnp.sign(x) * jnp.log1p(2 * size / (1 - size)) / 2


@formula("cbrt")
def cbrt(x: Any) -> Any:
    """``sign(x) |x|^(1/3)``, corrected by one step of Newton's method."""
    size = jnp.abs(x)
    plain = (size == 0) | ~jnp.isfinite(size)
    safe = jnp.where(plain, 1, size)
    root = jnp.power(safe, np.asarray(1 / 3, x.dtype))
    root = root - (root - safe / (root * root)) / 3
    return jnp.where(plain, x, jnp.sign(x) * root)


@formula("atan")
def atan(x: Any) -> Any:
    """The power series after three halvings of the angle, ``tan(a / 2) = tan(a) / (1 + sqrt(1 + tan(a)^2))``.

    For ``|x| > 1``, ``pi / 2 - atan(1 / x)``. The argument of the series is then at most ``tan(pi / 32)``, and the
    terms after the first 9 are below 1e-17 of the result.
    """
    size = jnp.abs(x)
    beyond = size > 1
    t = jnp.where(beyond, 1 / jnp.where(beyond, size, 1), size)
    for _ in range(3):
        t = t / (1 + jnp.sqrt(1 + t * t))
    square, series = t * t, 0.0
    for order in reversed(range(9)):
        series = series * square + (-1) ** order / (2 * order + 1)
    angle = 8 * t * series
    return jnp.sign(x) * jnp.where(beyond, math.pi / 2 - angle, angle)


@formula("atan2")
def atan2(y: Any, x: Any) -> Any:
    """The angle of a point, in the quadrant of the signs of x and y, those of zeros and infinities included."""
    size, other = jnp.abs(x), jnp.abs(y)
    both = (size == other) & ((size == 0) | jnp.isinf(size))
    ratio = other / jnp.where(both, 1, size)
    ratio = jnp.where(both, jnp.where(size == 0, 0, 1), ratio)
    angle = jnp.arctan(ratio)
    # The sign of a zero is read from its inverse, an infinity.
    left = (x < 0) | ((x == 0) & (1 / x < 0))
    below = (y < 0) | ((y == 0) & (1 / y < 0))
    angle = jnp.where(left, math.pi - angle, angle)
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jnp.where(below, -angle, angle))


@formula("asin")
def asin(x: Any) -> Any:
    """``atan2(x, sqrt((1 - x)(1 + x)))``."""
    return jnp.arctan2(x, jnp.sqrt((1 - x) * (1 + x)))


@formula("acos")
def acos(x: Any) -> Any:
    """``2 atan2(sqrt(1 - x), sqrt(1 + x))``."""
    return 2 * jnp.arctan2(jnp.sqrt(1 - x), jnp.sqrt(1 + x))
