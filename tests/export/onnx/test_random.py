"""Random keys and numbers in onnxruntime are JAX's, bit for bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from tests.export.onnx.agreement import check


def drawn(key, seed):
    """Keys and bits of every kind."""
    keys = jax.random.split(jax.random.fold_in(key, seed), (2, 3))
    wrapped = jax.random.wrap_key_data(jax.random.key_data(keys[0, 1]))
    return {
        "keys": keys[:, ::2],
        "made": jax.random.key(seed),
        "bits": [jax.random.bits(wrapped, (3,), kind) for kind in ("uint8", "uint16", "uint32")],
        "many": jax.vmap(lambda key: jax.random.bits(key, (2,)))(keys[1]),
        "integers": jax.random.randint(wrapped, (4,), -5, 1000),
        "order": jax.random.permutation(wrapped, 5),
        "uniform": jax.random.uniform(wrapped, (5,)),
    }


def test_keys_and_bits_are_equal():
    check(drawn, jax.random.key(7), jnp.asarray(11), rtol=0)


def test_keys_in_loops_and_branches_are_equal():
    def walk(key, flag):
        def step(key, x):
            key, own = jax.random.split(key)
            return key, jax.random.uniform(own) + x

        key = jax.lax.cond(flag, lambda k: jax.random.fold_in(k, 1), lambda k: k, key)
        return jax.lax.scan(step, key, jnp.arange(3.0))

    check(walk, jax.random.key(2), True, rtol=0)


def test_normal_numbers_agree_to_a_few_roundings(x64):
    def normal(key):
        return [jax.random.normal(key, (20,)), jax.random.normal(key, (20,), np.float32)]

    # JAX's inverse error function is accurate to 1e-6 in single precision, in double to a few roundings.
    check(normal, jax.random.key(1), rtol={"float32": 2e-6, "float64": 1e-12})
