"""One table of functions by family of primitives, each with arguments that hit its edges."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

NAN, INF = np.nan, np.inf
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-30, -1e30, INF, -INF, NAN]
OTHERS = [1.0, -0.0, NAN, 2.0, -0.5, 2.5, -3.5, 1e30, 3.0, INF, 1.0, 0.0]
INTEGERS = [0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 100]
DIVISORS = [3, 0, -1, -2, 2, -1, -1, 7]


def floats(dtype):
    return np.asarray(EDGES, dtype), np.asarray(OTHERS, dtype)


def integers(dtype):
    return tuple(np.array(values, np.int64).astype(dtype) for values in (INTEGERS, DIVISORS))


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def numbers(*shape, high=10, dtype=np.int32, seed=0):
    return np.random.default_rng(seed).integers(0, high, shape).astype(dtype)


ARITHMETIC = {
    "binary": lambda x, y: [x + y, x - y, x * y, lax.max(x, y), lax.min(x, y), lax.rem(x, y), lax.div(x, y)],
    "sign": lambda x, y: [-x, abs(x), lax.sign(x), x**2, x**3, x**0],
    "compared": lambda x, y: [x == y, x != y, x < y, x <= y, x > y, x >= y, x.astype(bool)],
    "selected": lambda x, y: [jnp.where(x < y, x, y), lax.clamp(x[3], x, x[4])],
}
FLOATING = {
    "rounded": lambda x, y: [jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.isfinite(x), jnp.isnan(x)],
    "power": lambda x, y: [jnp.power(x, y), x**-2, jnp.sqrt(x), lax.rsqrt(x), jnp.square(x), lax.cbrt(x)],
    "to integers": lambda x, y: [x.astype(kind) for kind in ("int32", "int64", "int8", "uint8", "uint32", "bool")],
    "polynomial": lambda x, y: [jnp.polyval(y[3:7], x)],
}
BITS = {
    "logic": lambda x, y: [x & y, x | y, x ^ y, ~x],
    "shifts": lambda x, y: [
        lax.shift_left(x, abs(y) % 40),
        lax.shift_right_logical(x, abs(y) % 40),
        lax.shift_right_arithmetic(x, abs(y) % 40),
        x << 3,
        x >> 2,
    ],
    "counts": lambda x, y: [lax.population_count(x), lax.clz(x)],
    "remainders": lambda x, y: [x % y, y % x, x % 3, x % y[3], (x[:, None] // y) % (x[:, None] % y + 1)],
    "types": lambda x, y: [x.astype(kind) for kind in ("int8", "uint8", "int16", "uint32", "int64", "float32", "bool")],
}
NEAR_ONE = 1 - 0.5 ** np.arange(20)
SMOOTH = {
    "exponential": lambda x: [jnp.exp(x), jnp.expm1(x), jnp.exp2(x), jnp.tanh(x), lax.logistic(x)],
    "logarithm": lambda x: [jnp.log(abs(x)), jnp.log1p(abs(x)), jnp.log2(abs(x))],
    "trigonometric": lambda x: [jnp.sin(x), jnp.cos(x), jnp.tan(x / 4), jnp.arctan(x), jnp.arctan2(x, x[::-1])],
    "inverse": lambda x: [jnp.arcsin(x / 16), jnp.arccos(x / 16)],
    "hyperbolic": lambda x: [jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arccosh(1 + abs(x)), jnp.arctanh(x / 20)],
    "error function": lambda x: [lax.erf(x), lax.erfc(x), lax.erf_inv(x / 16), lax.erf_inv(0 * x[:20] + NEAR_ONE)],
    "gamma": lambda x: [lax.lgamma(abs(x) + 0.1), lax.lgamma(-abs(x) - 0.3), lax.digamma(abs(x) + 0.1)],
}
SHAPES = {
    "moved": (lambda x: [x.T, x.reshape(4, 6), x[::-1, :, ::-1], jnp.squeeze(x[:1], 0)], (normal(2, 3, 4),)),
    "read in another order": (lambda x: [lax.reshape(x, (4, 6), (2, 0, 1))], (normal(2, 3, 4),)),
    "cut": (lambda x: [x[1:, ::2], x[0, 1], x[..., -1:], jnp.split(x, 3, 1)], (normal(2, 3, 4),)),
    "cut twice": (
        lambda x: [x[:, 1:][:, ::2], x[1:, 1:][:, 1:, ::3], x.T[1:3, ::2], jnp.concatenate([x, 2 * x], 1)[:, 3:5]],
        (normal(2, 3, 9),),
    ),
    "joined": (
        lambda x: [jnp.concatenate([x, x], 1), jnp.stack([x, x], 1), jnp.tile(x, (2, 1, 3))],
        (normal(2, 3, 4),),
    ),
    "padded": (
        lambda x: [lax.pad(x, 7.0, [(1, 2, 0), (-1, 3, 2)]), lax.pad(x, 0.0, [(0, -1, 1), (0, 0, 0)])],
        (normal(3, 4),),
    ),
    "broadcast": (lambda x: [x[:, None] * x, jnp.broadcast_to(x, (2, 3)).sum(0), jnp.full((2, 2), x[0])], (normal(3),)),
    "counted": (lambda x: [jnp.arange(5) * x, jnp.eye(3) + x, lax.broadcasted_iota(np.int32, (2, 3), 1)], (normal(1),)),
    "empty": (lambda x: [x[:0] * 2, jnp.concatenate([x[:0], x]), x[:0].sum(), x[:0].max(initial=3.0)], (normal(3),)),
}
REDUCTIONS = {
    "sums": (lambda x: [x.sum(), x.sum(1), x.prod(0), x.max((0, 1)), x.min(1), x.mean()], (normal(3, 4),)),
    "NaN": (
        lambda x: [x.max(1), x.min(1), jnp.argmax(x, 1), jnp.argmin(x, 1), lax.cummax(x, 1), lax.cummin(x, 1)],
        (np.asarray([[1, NAN, 3, INF], [NAN, 2, -INF, NAN], [4, 4, -0.0, 0.0]]),),
    ),
    "integers": (
        lambda x: [x.sum(0), x.max(1), jnp.argmax(x, 1), jnp.argmin(x), jnp.cumsum(x)],
        (numbers(3, 5, high=4),),
    ),
    "unsigned": (
        lambda x: [x.sum(0), x.max(1), x.min(0), jnp.cumsum(x, 1)],
        (numbers(3, 5, dtype=np.uint32) * 500000000,),
    ),
    "logical": (lambda x: [x.any(1), x.all(0), jnp.argmax(x, 1), x.sum(1)], (numbers(3, 5, high=2).astype(bool),)),
    "bits": (
        lambda x: [lax.reduce_xor(x, (0,)), lax.reduce_and(x, (1,)), lax.reduce_or(x, (0, 1))],
        (numbers(3, 5, high=99),),
    ),
    "cumulative": (
        lambda x: [jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1)],
        (normal(3, 5),),
    ),
}
TIES = np.asarray([3.0, -0.0, NAN, 0.0, 1.0, 3.0, -INF, NAN, 1.0])
SORTING = {
    "stable": (lambda x: [jnp.sort(x), jnp.argsort(x), jnp.argsort(-x)], (TIES,)),
    "several keys": (
        lambda a, b, c: lax.sort((a, b, c), num_keys=2),
        (numbers(9, high=3), normal(9), np.arange(9)),
    ),
    "rows": (lambda x: [jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 2)], (normal(3, 4),)),
    "unsigned": (lambda x: [jnp.sort(x), jnp.argsort(x)], (np.asarray([5, 2**32 - 1, 0, 5], np.uint32),)),
    "search": (lambda x, v: [jnp.searchsorted(x, v), jnp.unique(x, size=4)], (np.asarray([0.0, 1, 1, 2]), normal(5))),
}


def updated(x, i, v):
    """Writes with every combination, some of them outside."""
    return [
        x.at[i].set(v, mode="drop"),
        x.at[i].add(v, mode="drop"),
        x.at[i].mul(v, mode="clip"),
        x.at[i].min(v, mode="drop"),
        x.at[i].max(v),
        x.at[:, 1].set(v[:, 0].sum()),
        x.at[1:3, 2].add(1.0),
    ]


PLACES = np.asarray([0, 2, 9, -1, 2])
INDEXING = {
    "modes": (
        lambda x, i: [x[i], x.at[i].get(mode="clip"), x.at[i].get(mode="fill"), x.at[i].get(mode="fill", fill_value=7)],
        (normal(4, 3), PLACES),
    ),
    "axes": (
        lambda x, i: [x[:, i % 3], x[i % 4, i % 3], jnp.take_along_axis(x, i[:4, None] % 3, 1), x[i % 4][:, i % 3]],
        (normal(4, 3), PLACES),
    ),
    "windows": (
        lambda x, i: [jax.vmap(lambda j: lax.dynamic_slice(x, (j, 1), (2, 2)))(i), x[:, None, i % 3, None]],
        (normal(4, 3), PLACES),
    ),
    "trusted": (
        lambda x, i: [x.at[i].get(mode="promise_in_bounds"), x.at[:, i % 3].get(mode="promise_in_bounds")],
        (normal(4, 3), numbers(5, high=8) - 4),
    ),
    "integers": (lambda x, i: [x.at[i].get(mode="fill"), (x > 3).at[i].get(mode="fill")], (numbers(4, 3), PLACES)),
    "updates": (updated, (normal(4, 3), PLACES, normal(5, 3))),
    "counts": (
        lambda i: [
            jnp.zeros(5, np.int32).at[i].add(1),
            jnp.bincount(i % 5, length=5),
            jnp.zeros(5, bool).at[i].set(True),
        ],
        (PLACES,),
    ),
    "batches": (
        lambda x, i: [jax.vmap(lambda a, j: a.at[j].add(a[j]))(x, i), jax.vmap(lambda a, j: a[j])(x, i)],
        (normal(2, 4, 3), numbers(2, 5, high=4)),
    ),
    "slices": (
        lambda x, j: [
            lax.dynamic_slice(x, (j, 1), (2, 2)),
            lax.dynamic_slice(x, (j - 9, j), (1, 3)),
            lax.dynamic_update_slice(x, x[:2] * 2, (j, 0)),
            lax.dynamic_update_slice(x, x[:2, :2] * 2, (j, j - 1)),
            lax.dynamic_update_index_in_dim(x, x[0], j, 0),
        ],
        (normal(4, 3), np.asarray(5)),
    ),
    "derivative": (jax.grad(lambda x, i: (x[i] ** 2).sum() + x.max()), (normal(4, 3), PLACES)),
}
POSITIVE = normal(4, 4) @ normal(4, 4).T + 4 * np.eye(4)
LINEAR = {
    "products": (
        lambda a, b: [a @ b, a @ b[:, 0], jnp.einsum("ij,kj->ik", a, a), jnp.outer(a[0], b[0]), jnp.vdot(a, a)],
        (normal(3, 4), normal(4, 5)),
    ),
    "batches": (
        lambda a, b: [a @ b, jnp.einsum("bij,bjk->kbi", a, b), jnp.tensordot(a, b, ((0, 2), (0, 1)))],
        (normal(2, 3, 4), normal(2, 4, 5)),
    ),
    "integers": (lambda a: [a @ a.T, a.astype(np.uint32) @ a.T.astype(np.uint32)], (numbers(3, 4),)),
    "triangles": (
        lambda a, b: [
            lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, unit_diagonal=unit)
            for left, lower, transpose, unit in ((1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1))
        ],
        (POSITIVE, normal(4, 4)),
    ),
    "factors": (lambda a: [jnp.linalg.cholesky(a), *lax.linalg.lu(a[::-1]), jnp.linalg.det(a)], (POSITIVE,)),
    "systems": (lambda a, b: [jnp.linalg.solve(a, b), jnp.linalg.inv(a)], (POSITIVE, normal(4))),
    "tridiagonal": (
        lambda d, b: lax.linalg.tridiagonal_solve(d, 4 + d, d[::-1], b),
        (normal(6) * np.asarray([0, 1, 1, 1, 1, 0]), normal(6, 2)),
    ),
}
FOURIER = {
    "complex": (
        lambda x: [jnp.fft.fft(x), jnp.fft.ifft(x), jnp.fft.fft2(x)],
        (normal(3, 6) + 1j * normal(3, 6, seed=1),),
    ),
    "real": (lambda x: [jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), 6), jnp.fft.rfft2(x)], (normal(3, 6),)),
    "odd": (lambda x: [jnp.fft.irfft(jnp.fft.rfft(x), 5), jnp.fft.irfft2(jnp.fft.rfft2(x), s=(3, 5))], (normal(3, 5),)),
    # 128 is 8 times 16, 150 is 10 times 15: two stages.
    "two stages": (
        lambda x, y: [jnp.fft.fft(x), jnp.fft.ifft(x, axis=1), jnp.fft.fft2(x, axes=(1, 2)), jnp.fft.irfft2(y)],
        (normal(2, 128, 150) + 1j * normal(2, 128, 150, seed=1), normal(128, 5) + 1j * normal(128, 5, seed=2)),
    ),
    "two stages of real numbers": (
        lambda x, y: [jnp.fft.rfft2(x), jnp.fft.irfft(y, 128), jnp.fft.irfft(y, 135), jnp.fft.irfft2(y, s=(144, 128))],
        (normal(3, 144, 128), normal(144, 65) + 1j * normal(144, 65, seed=1)),
    ),
    "derivative": (jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(x)[1:3]) ** 2)), (np.arange(6.0),)),
    # Of a power of two: the runtime's kernel for other lengths is a convolution, with errors of 1e-12.
    "long": (lambda x: [jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), 1024)], (normal(1024),)),
}
Z, W = normal(5) + 1j * normal(5, seed=1), normal(5, seed=2) + 1j * normal(5, seed=3)
COMPLEX = {
    "arithmetic": (lambda z, w: [z + w, z - w, z * w, z / w, -z, z**2, z**-3, z * 2.0], (Z, W)),
    "parts": (lambda z, w: [z.real, z.imag, z.conj(), abs(z), z == w, jnp.where(z.real > 0, z, w)], (Z, W)),
    "functions": (lambda z, w: [jnp.exp(z), jnp.log(z), jnp.sqrt(z)], (Z, W)),
    "real factors": (lambda z, w: [z * w.real, w.real * z, z / w.real], (Z, W)),
    "structure": (lambda z, w: [z[::-1], jnp.stack([z, w]).T, z.sum(), jnp.vdot(z, w), z[jnp.asarray([0, 3])]], (Z, W)),
    "loop": (lambda z, w: lax.scan(lambda c, x: (c * x, c), 1 + 0j * z[0], w), (Z, W)),
}


LAST = ("NHWC", "HWIO", "NHWC")


def convolved(x, kernel):
    """Strides, holes, cut edges, gaps, groups, and the other orders of the dimensions."""
    spread = {"lhs_dilation": (2, 1), "rhs_dilation": (1, 2)}
    return [
        lax.conv_general_dilated(x, kernel, (2, 1), [(1, 0), (-1, 2)], **spread),
        lax.conv_general_dilated(x, kernel[:, :2], (1, 2), "VALID", feature_group_count=2),
        lax.conv_general_dilated(x, kernel, (1, 1), "VALID", batch_group_count=2),
        lax.conv_general_dilated(x.transpose(0, 2, 3, 1), kernel.T, (2, 2), "SAME", dimension_numbers=LAST),
        lax.conv(x[..., 0], kernel[..., 0], (1,), "SAME"),
    ]


def grouped(x, kernel):
    return [lax.conv_general_dilated(x, kernel[:, :2], (2, 2), "SAME", feature_group_count=2)]


def pooled(x):
    windows = ((1, 1, 3, 2), (1, 1, 2, 1), ((0, 0), (0, 0), (1, 1), (0, 1)))
    return [lax.reduce_window(x, 0.0, lax.add, *windows), lax.reduce_window(x, -jnp.inf, lax.max, *windows)]


def spread_pool(x):
    spread = {"base_dilation": (2, 1), "window_dilation": (1, 2)}
    return [lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (2, 1), "VALID", **spread)]


def slopes(function):
    """Return the derivatives of a function's results, backward and forward."""

    def derivatives(*arguments):
        places = tuple(range(len(arguments)))
        weighed = lambda *arguments: sum(jnp.sum(jnp.cos(part)) for part in function(*arguments))  # noqa: E731
        return jax.grad(weighed, places)(*arguments), jax.jvp(function, arguments, arguments)[1]

    return derivatives


IMAGES, FILTERS = normal(2, 4, 6, 5), normal(4, 4, 3, 2, seed=1)
WINDOWS = {
    "convolutions": (convolved, (IMAGES, FILTERS)),
    "slopes of convolutions": (slopes(grouped), (IMAGES, FILTERS)),
    "pools": (pooled, (IMAGES[:1, :1],)),
    "a pool between others": (spread_pool, (IMAGES[0, 0],)),
    # Of equal elements the first is the one that counts.
    "slopes of pools": (slopes(lambda x: pooled(jnp.round(x) + 0.1 * x[:, :, :1])), (IMAGES[:1, :1],)),
}
