"""`staged` adds barriers to derivatives only, and changes no values."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad

from simkit.rigid.algebra.stages import staged, with_tangents


def curve(x):
    return jnp.sin(staged({"turn": jnp.cos(x)})["turn"]) * x


def barriers(function, *arguments):
    return jax.jit(function).lower(*arguments).as_text().count("optimization_barrier")


def test_a_loop_that_starts_with_tangents_is_differentiated_once(x64, monkeypatch):
    rule, times = ad.primitive_jvps[jax.lax.sin_p], []
    monkeypatch.setitem(ad.primitive_jvps, jax.lax.sin_p, lambda *args, **kw: times.append(1) or rule(*args, **kw))

    def run(x, mark):
        # One after the other the four numbers come to depend on x, as those of a body that is pushed do.
        def body(carry, _):
            a, b, c, d, count = carry
            return (jnp.sin(a), b + a * a, c + b, d + c, count + 1), None

        start = mark((x, *(jnp.full_like(x, number) for number in (1, 2, 3)), jnp.int32(0)))
        return jax.lax.scan(body, start, None, length=5)[0][3]

    x, found, counts = jnp.float64(0.7), [], []
    for mark in (with_tangents, lambda tree: tree):
        times.clear()
        value, slope = jax.jvp(lambda x, mark=mark: run(x, mark), (x,), (jnp.ones_like(x),))
        counts.append(len(times))
        found.append((value, slope, jax.grad(run)(x, mark)))
    np.testing.assert_array_equal(found[0][:2], found[1][:2])
    np.testing.assert_allclose(found[0][2], found[1][1:], rtol=1e-15)
    assert counts == [1, 4]
