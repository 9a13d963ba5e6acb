"""Comparison of onnxruntime's results with those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.export.onnx.runtime import Session, convert

# Kernels of these are accurate to one or two units in the last place.
ROUNDING = {"float32": 1e-6, "float64": 1e-14}


def check(function, *arguments, rtol, atol=0.0, also=()):
    """Assert that a function has the same results in onnxruntime and in JAX, and return its model.

    Structure, shapes, types, integers, keys, NaN and infinities must be equal, and numbers within ``atol + rtol |x|``,
    each of which is a number or ``{type: number}``. The same model computes other arguments of the same shapes, given
    in ``also``.
    """
    given = [jax.tree.map(jnp.asarray, each) for each in (arguments, *also)]
    converted = convert(function, *given[0])
    run, reference = Session(converted), jax.jit(function)
    for each in given:
        found = run(jax.tree.leaves(each))
        expected, structure = jax.tree.flatten_with_path(reference(*each))
        assert structure == converted.structure
        misses = [
            f"{jax.tree_util.keystr(path)}: {miss}"
            for (path, a), b in zip(expected, found, strict=True)
            if (miss := _miss(a, b, rtol, atol))
        ]
        assert not misses, "\n".join(misses)
    return converted


def check_all(cases, rtol, atol=0.0):
    """Assert that the functions of a table have the same results, and return the one model that computes them all.

    Args:
        cases: ``{name: (function, arguments)}``; a name is in the message of its miss.
        rtol: as for `check`.
        atol: as for `check`.
    """
    functions = {name: function for name, (function, _) in cases.items()}

    def run(arguments):
        return {name: function(*arguments[name]) for name, function in functions.items()}

    return check(run, {name: arguments for name, (_, arguments) in cases.items()}, rtol=rtol, atol=atol)


def _miss(a, b, rtol, atol):
    """Return how two arrays differ, or an empty text."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{b.shape} is not {a.dtype}{a.shape}"
    if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fc":
        return "" if np.array_equal(a, b) else f"{b} is not {a}"
    kind = str(a.real.dtype)
    rtol, atol = (bound.get(kind, 0.0) if isinstance(bound, dict) else bound for bound in (rtol, atol))
    return "" if np.allclose(b, a, rtol, atol, equal_nan=True) else f"{b} is not {a} within {rtol}, {atol}"


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
