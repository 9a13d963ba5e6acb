"""Loops and branches, each as one Loop, Scan or If, nested and with closures."""

import jax
import jax.numpy as jnp

from simkit.export.onnx.runtime import Session, convert
from tests.export.onnx.agreement import relative_error
from tests.export.onnx.test_control import nested, operators


def test_one_model_computes_batches_of_any_size(x64):
    """Members have loops of different lengths, complex numbers and random keys."""

    def function(key, x, n):
        drawn = x + jax.random.normal(key, x.shape)
        return jax.random.split(key), nested(drawn, n), jnp.fft.fft(drawn), jnp.arange(2)

    key, x, n = jax.random.key(3), jnp.asarray([0.5, -1.0]), jnp.asarray(5, "int32")
    converted = convert(function, key, x, n, members=True)
    assert operators(converted).count("Scan") == 1
    run, reference = Session(converted), jax.jit(function)
    for count in (1, 3):
        members = (
            jax.random.split(key, count),
            jnp.outer(jnp.arange(count) + 1.0, x),
            jnp.arange(2, count + 2, 1, "int32"),
        )
        alone = [jax.tree.leaves(reference(*(each[member] for each in members))) for member in range(count)]
        assert relative_error([jnp.stack(each) for each in zip(*alone, strict=True)], run(members)) < 1e-13, count
