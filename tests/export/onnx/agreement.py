"""Comparison of onnxruntime's results with those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.runtime import Session, convert


def check(function, *arguments, rtol, atol=0.0):
    """Assert that a function has the same results in onnxruntime and in JAX, and return its model.

    Structure, shapes, types, integers, keys, NaN and infinities must be equal, and numbers within ``atol + rtol |x|``.
    """
    arguments = jax.tree.map(jnp.asarray, arguments)
    converted = convert(function, *arguments)
    found = Session(converted)(jax.tree.leaves(arguments))
    expected, structure = jax.tree.flatten(jax.jit(function)(*arguments))
    assert structure == converted.structure
    for place, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, place
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if np.asarray(a).dtype.kind in "fc":
            np.testing.assert_allclose(b, a, rtol, atol, err_msg=str(place))
        else:
            np.testing.assert_array_equal(b, a, err_msg=str(place))
    return converted


def relative_error(expected, found):
    """Return the largest difference relative to the largest number; keys and integers must be equal."""
    scale = worst = 0.0
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind in "fc":
            finite = np.isfinite(a)
            np.testing.assert_array_equal(np.where(finite, 0, a), np.where(finite, 0, b))
            scale = max(scale, np.max(np.abs(a), where=finite, initial=0))
            worst = max(worst, np.max(np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)), initial=0))
        else:
            np.testing.assert_array_equal(b, a)
    return worst / (scale or 1)
