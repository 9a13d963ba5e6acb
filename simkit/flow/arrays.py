"""Array helpers: constants in the precision of an array, and its first and last layers along an axis."""

import jax
import jax.numpy as jnp

type Velocity = tuple[jax.Array, ...]


def end(f: jax.Array, axis: int, side: int) -> jax.Array:
    """Return the first (side 0) or last (side 1) layer of an array along an axis."""
    size = f.shape[axis]
    return jax.lax.slice_in_dim(f, size - 1 if side else 0, size if side else 1, axis=axis)


def with_end(f: jax.Array, layer: jax.Array, axis: int, side: int) -> jax.Array:
    """Return an array whose first (side 0) or last (side 1) layer along an axis is replaced."""
    return jax.lax.dynamic_update_slice_in_dim(f, layer, f.shape[axis] - 1 if side else 0, axis=axis)


def like(f: jax.Array, values) -> jax.Array:
    """Return constants in the working precision of ``f``."""
    return jnp.asarray(values, dtype=f.dtype)
