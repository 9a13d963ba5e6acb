"""Implicit derivatives of any order of the root of a scalar equation."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def root_change[T](gap: Callable[[jax.Array, T], jax.Array], rate: jax.Array, surroundings: T) -> jax.Array:
    """Return z = 0 with the derivatives of the root of ``gap(z, surroundings) = 0`` with respect to ``surroundings``.

    A root t of g(t) = 0 is found by any search, without derivatives; t + z has its derivatives if
    ``gap(z) = g(t + z)``. A program without derivatives evaluates neither ``gap`` nor its rate.

        dz = -dgap / gap'(z), where z has its derivatives in turn

    Args:
        gap: elementwise; zero at z = 0 up to round-off. It depends on no other arrays than its arguments.
        rate: gap'(0) from the search, which may be more accurate than evaluating it again; zero where the derivative
            shall be zero, such as at a double root.
        surroundings: pytree of all arrays that ``gap`` depends on.
    """
    arrays, tree = jax.tree.flatten(surroundings)
    return _change().bind(rate, *arrays, gap=lambda z, *arrays: gap(z, jax.tree.unflatten(tree, arrays)))


@functools.cache
def _change() -> Any:
    """Return the JAX primitive; `jax.custom_jvp` fails for an unbatched z with batched derivatives (JAX 0.12)."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    def zero(rate: jax.Array, *arrays: jax.Array, gap: Any) -> jax.Array:
        return jnp.zeros_like(rate)

    def differentiate(primals: Any, tangents: Any, *, gap: Any) -> tuple[jax.Array, jax.Array]:
        rate, *arrays = primals
        z = change.bind(rate, *arrays, gap=gap)
        varying = {n: tangent for n, tangent in enumerate(tangents[1:]) if not isinstance(tangent, ad.Zero)}

        def gap_of(values: list[jax.Array]) -> jax.Array:
            replaced = dict(zip(varying, values, strict=True))
            return gap(z, *(replaced.get(n, array) for n, array in enumerate(arrays)))

        _, gap_tangent = jax.jvp(gap_of, ([arrays[n] for n in varying],), (list(varying.values()),))
        _, slope = jax.jvp(lambda z: gap(z, *arrays), (z,), (jnp.ones_like(z),))
        slope = jnp.where(rate != 0, rate, 1) + _zero_with_derivatives(slope)
        return z, jnp.where(rate != 0, -gap_tangent / slope, 0)

    def batch(values: Any, axes: Any, *, gap: Any) -> tuple[jax.Array, int]:
        count = next(value.shape[axis] for value, axis in zip(values, axes, strict=True) if axis is not None)
        rate, *arrays = (
            value if axis is None else jnp.moveaxis(value, axis, 0) for value, axis in zip(values, axes, strict=True)
        )
        if axes[0] is None:
            rate = jnp.broadcast_to(rate, (count, *rate.shape))
        gap_of_batch = jax.vmap(gap, (0, *(None if axis is None else 0 for axis in axes[1:])))
        return change.bind(rate, *arrays, gap=gap_of_batch), 0

    change = Primitive("root_change")
    change.def_impl(zero)
    change.def_abstract_eval(lambda rate, *arrays, gap: rate)
    mlir.register_lowering(change, mlir.lower_fun(zero, multiple_results=False))
    ad.primitive_jvps[change] = differentiate
    batching.primitive_batchers[change] = batch
    return change


@jax.custom_jvp
def _zero_with_derivatives(value: jax.Array) -> jax.Array:
    """Return zero, with the derivatives of a value."""
    # The zeros depend on the value so that they are batched with it: batched derivatives of an unbatched zero fail
    # (JAX 0.12).
    return jnp.where(value == 0, 0, jnp.zeros_like(value))


_zero_with_derivatives.defjvp(lambda values, tangents: (_zero_with_derivatives(values[0]), tangents[0]))
