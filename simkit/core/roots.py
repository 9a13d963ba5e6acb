"""Roots of equations, with the derivatives of any order that the implicit function theorem gives them."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def root_change[T](gap: Callable[[jax.Array, T], jax.Array], rate: jax.Array, surroundings: T) -> jax.Array:
    """Return z, zero, with the derivatives of the root of ``gap(z, surroundings) = 0`` by the surroundings.

    A root t of g(t) is found by any search, without derivatives, and t + z then has them, with ``gap(z) = g(t + z)``.
    A program without derivatives computes neither the gap nor its rate, one with first derivatives only the gap's.

        dz = -dgap / gap'(z), where z has its derivatives in turn

    Args:
        gap: elementwise; zero at z = 0 but for rounding. It depends on no other arrays than its arguments.
        rate: gap'(0) as the search found it, which may be sharper than computed again; zero where there shall be no
            derivative, such as where a gap only grazes zero.
        surroundings: a tree of all arrays that the gap depends on.
    """
    arrays, tree = jax.tree.flatten(surroundings)
    return _change().bind(rate, *arrays, gap=lambda z, *arrays: gap(z, jax.tree.unflatten(tree, arrays)))


@functools.cache
def _change() -> Any:
    """Return the primitive; `jax.custom_jvp` mixes up a z that is not batched with derivatives that are (JAX 0.12)."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    def nothing(rate: jax.Array, *arrays: jax.Array, gap: Any) -> jax.Array:
        return jnp.zeros_like(rate)

    def differentiate(primals: Any, tangents: Any, *, gap: Any) -> tuple[jax.Array, jax.Array]:
        rate, *arrays = primals
        z = change.bind(rate, *arrays, gap=gap)
        moving = {n: tangent for n, tangent in enumerate(tangents[1:]) if not isinstance(tangent, ad.Zero)}

        def around(moved: list[jax.Array]) -> jax.Array:
            replaced = dict(zip(moving, moved, strict=True))
            return gap(z, *(replaced.get(n, array) for n, array in enumerate(arrays)))

        _, moved = jax.jvp(around, ([arrays[n] for n in moving],), (list(moving.values()),))
        _, slope = jax.jvp(lambda z: gap(z, *arrays), (z,), (jnp.ones_like(z),))
        slope = jnp.where(rate != 0, rate, 1) + _change_of(slope)
        return z, jnp.where(rate != 0, -moved / slope, 0)

    def batch(values: Any, axes: Any, *, gap: Any) -> tuple[jax.Array, int]:
        count = next(value.shape[axis] for value, axis in zip(values, axes, strict=True) if axis is not None)
        rate, *arrays = (
            value if axis is None else jnp.moveaxis(value, axis, 0) for value, axis in zip(values, axes, strict=True)
        )
        if axes[0] is None:
            rate = jnp.broadcast_to(rate, (count, *rate.shape))
        over = jax.vmap(gap, (0, *(None if axis is None else 0 for axis in axes[1:])))
        return change.bind(rate, *arrays, gap=over), 0

    change = Primitive("root_change")
    change.def_impl(nothing)
    change.def_abstract_eval(lambda rate, *arrays, gap: rate)
    mlir.register_lowering(change, mlir.lower_fun(nothing, multiple_results=False))
    ad.primitive_jvps[change] = differentiate
    batching.primitive_batchers[change] = batch
    return change


@jax.custom_jvp
def _change_of(value: jax.Array) -> jax.Array:
    """Return zero, with the derivatives of a value."""
    # Of many values there are many zeros: a batch of derivatives with a single zero is mixed up (JAX 0.12).
    return jnp.where(value == 0, 0, jnp.zeros_like(value))


_change_of.defjvp(lambda values, tangents: (_change_of(values[0]), tangents[0]))
