"""Elementary and special functions."""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import lax

from simkit.export.onnx.convert import inline
from simkit.export.onnx.graph import Graph
from simkit.export.onnx.nodes import Tensor
from simkit.export.onnx.registry import primitive
from simkit.export.onnx.tracing import Equation


def formula(*names: str, elementwise: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function written with JAX, of real arrays, as the converter of primitives.

    Its keyword-only arguments are parameters of the primitive.

    Args:
        *names: of the primitives.
        elementwise: whether the elements of a broadcast may be computed once, before it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        keywords = inspect.getfullargspec(function).kwonlyargs

        @primitive(*names)
        @functools.wraps(function)
        def convert(graph: Graph, equation: Equation, *tensors: Tensor) -> list[Tensor]:
            small = [tensor.narrow or tensor for tensor in tensors] if elementwise else tensors
            params = {name: equation.params[name] for name in keywords if name in equation.params}
            results = zip(inline(graph, function, *small, **params), equation.outputs, strict=True)
            return [graph.expand(tensor, aval.shape) for tensor, aval in results]

        return function

    return register


for _name, _function in {
    "rsqrt": lambda x: 1 / jnp.sqrt(x),
    "square": lambda x: x * x,
    "exp2": lambda x: jnp.power(jnp.asarray(2, x.dtype), x),
    "log2": lambda x: jnp.log(x) * np.asarray(1 / math.log(2), x.dtype),
    "tan": lambda x: jnp.sin(x) / jnp.cos(x),
    "asin": lambda x: jnp.arctan2(x, jnp.sqrt((1 - x) * (1 + x))),
    "acos": lambda x: 2 * jnp.arctan2(jnp.sqrt(1 - x), jnp.sqrt(1 + x)),
    "atanh": lambda x: jnp.sign(x) * jnp.log1p(2 * jnp.abs(x) / (1 - jnp.abs(x))) / 2,
}.items():
    formula(_name)(_function)


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


def _fitted(function: Callable[[Any], Any], terms: int = 30) -> tuple[float, ...]:
    """Return Chebyshev coefficients of a function on [-1, 1]."""
    nodes = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    return tuple(map(float, np.polynomial.chebyshev.chebfit(nodes, function(nodes), terms)))


def _chebyshev(x: Any, series: tuple[float, ...]) -> Any:
    """Return a Chebyshev series by Clenshaw's recurrence (doi:10.1090/S0025-5718-1955-0071856-0)."""
    later, last = 0.0, 0.0
    for coefficient in reversed(series[1:]):
        later, last = 2 * x * later - last + coefficient, later
    return x * later - last + series[0]


# Of log(erfc(z) exp(z^2) / t) with t = 2 / (2 + z) = (u + 1) / 2, the form of Numerical Recipes, 3rd edition, 6.2.2.
_ERFC = _fitted(lambda u: np.log(scipy.special.erfcx(4 / (u + 1) - 2) / ((u + 1) / 2)))
# Of i1e(x) / x with x = 4 (1 + u), and of i1e(x) sqrt(x) with x = 16 / (1 + u).
_SMALL_I1E = _fitted(lambda u: scipy.special.i1e(4 * (1 + u)) / (4 * (1 + u)))
_LARGE_I1E = _fitted(lambda u: scipy.special.i1e(16 / (1 + u)) * np.sqrt(16 / (1 + u)))


@formula("erfc")
def erfc(x: Any) -> Any:
    """``t exp(-z^2 + series)`` for ``z = |x|``, and ``2 -`` that for negative ``x``."""
    wide = x.astype(jnp.float64)
    z = jnp.abs(wide)
    t = 2 / (2 + jnp.minimum(z, 1e3))
    tail = t * jnp.exp(_chebyshev(2 * t - 1, _ERFC) - z * z)
    return jnp.where(wide < 0, 2 - tail, tail).astype(x.dtype)


@formula("bessel_i1e")
def bessel_i1e(x: Any) -> Any:
    """Chebyshev series of ``i1e(x) / x`` up to 8 and of ``i1e(x) sqrt(x)`` beyond, as in Cephes."""
    wide = x.astype(jnp.float64)
    z = jnp.abs(wide)
    large = jnp.maximum(z, 8)
    far = _chebyshev(16 / large - 1, _LARGE_I1E) / jnp.sqrt(large)
    near = jnp.minimum(z, 8) * _chebyshev(jnp.minimum(z, 8) / 4 - 1, _SMALL_I1E)
    return (jnp.sign(wide) * jnp.where(z > 8, far, near)).astype(x.dtype)


@formula("erf")
def erf(x: Any) -> Any:
    """``2 x exp(-x^2) / sqrt(pi) sum (2 x^2)^n / (2 n + 1)!!`` for ``|x| < 1`` (Abramowitz and Stegun 7.1.6)."""
    wide = x.astype(jnp.float64)
    near = jnp.abs(wide) < 1
    z = jnp.where(near, wide, 0)
    series = 0.0
    for order in reversed(range(20)):
        series = 1 + series * (2 * z * z) / (2 * order + 3)
    inner = 2 / math.sqrt(math.pi) * z * jnp.exp(-z * z) * series
    return jnp.where(near, inner, 1 - lax.erfc(wide)).astype(x.dtype)


@formula("erf_inv")
def erf_inv(x: Any) -> Any:
    """Winitzki's approximation (2008), then three steps of Halley's method, on erfc for ``|x| >= 1/2``.

    There ``1 - |x|`` is exact (Sterbenz), so that its relative error does not limit the result near 1.
    """
    wide = x.astype(jnp.float64)
    size = jnp.abs(wide)
    inside = size < 1
    y = jnp.where(inside, size, 0.5)
    rest = 1 - y
    # log(1 - y^2) as the sum over both factors, without cancellation near y = 1.
    logarithm = jnp.log(rest) + jnp.log1p(y)
    a = 0.147
    b = 2 / (math.pi * a) + logarithm / 2
    z = jnp.sqrt(jnp.maximum(jnp.sqrt(b * b - logarithm / a) - b, 0))
    for _ in range(3):
        error = jnp.where(y < 0.5, lax.erf(z) - y, rest - lax.erfc(z))
        step = error * (math.sqrt(math.pi) / 2) * jnp.exp(z * z)
        z = z - step / (1 + z * step)
    result = jnp.sign(wide) * jnp.where(inside, z, jnp.inf)
    return jnp.where((size > 1) | jnp.isnan(size), jnp.nan, result).astype(x.dtype)


# Lanczos' series for g = 607/128 and 15 terms (Godfrey 2001), relative error below 1e-15 on the right half plane.
_G = 607 / 128
_LANCZOS = (
    0.99999999999999709182,
    57.156235665862923517,
    -59.597960355475491248,
    14.136097974741747174,
    -0.49191381609762019978,
    0.33994649984811888699e-4,
    0.46523628927048575665e-4,
    -0.98374475304879564677e-4,
    0.15808870322491248884e-3,
    -0.21026444172410488319e-3,
    0.21743961811521264320e-3,
    -0.16431810653676389022e-3,
    0.84418223983852743293e-4,
    -0.26190838401581408670e-4,
    0.36899182659531622704e-5,
)


@formula("lgamma")
def lgamma(x: Any) -> Any:
    """Lanczos' series, with Euler's reflection formula for ``x < 1/2``."""
    wide = x.astype(jnp.float64)
    reflected = wide < 0.5
    z = jnp.where(reflected, 1 - wide, wide) - 1
    series = _LANCZOS[0] + sum(c / (z + i) for i, c in enumerate(_LANCZOS[1:], start=1))
    t = z + _G + 0.5
    right = math.log(math.sqrt(2 * math.pi)) + (z + 0.5) * jnp.log(t) - t + jnp.log(series)
    fraction = jnp.abs(wide - jnp.round(wide))
    left = jnp.log(math.pi / jnp.sin(math.pi * jnp.where(reflected, fraction, 0.5))) - right
    result = jnp.where(reflected, left, right)
    return jnp.where(jnp.isinf(wide), jnp.inf, result).astype(x.dtype)


@formula("digamma")
def digamma(x: Any) -> Any:
    """Ten steps of ``psi(x) = psi(x + 1) - 1 / x``, then the asymptotic series (Abramowitz and Stegun 6.3.18)."""
    wide = x.astype(jnp.float64)
    reflected = wide < 0.5
    z = jnp.where(reflected, 1 - wide, wide)
    shift = sum(1 / (z + i) for i in range(10))
    w = z + 10
    inverse = 1 / (w * w)
    series = 0.0
    for term in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = inverse * (term + series)
    right = jnp.log(w) - 0.5 / w - series - shift
    distance = wide - jnp.round(wide)
    pole = reflected & (distance == 0)
    angle = math.pi * jnp.where(reflected & ~pole, distance, 0.25)
    left = right - math.pi * jnp.cos(angle) / jnp.sin(angle)
    return jnp.where(pole, jnp.nan, jnp.where(reflected, left, right)).astype(x.dtype)
