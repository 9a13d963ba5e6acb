"""Reductions of a series over the frames of a run to one number."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

type Reduce = Literal["final", "mean", "root_mean_square", "maximum", "minimum", "sum"]


def _mean(series: jax.Array, stored: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(stored, series, 0)) / (jnp.sum(stored) * (series.size // len(stored)))


def _root_mean_square(series: jax.Array, stored: jax.Array) -> jax.Array:
    """Return sqrt(mean(x^2)), whose derivative is zero where the whole series is zero."""
    square = _mean(series**2, stored)
    is_positive = square > 0
    return jnp.where(is_positive, jnp.sqrt(jnp.where(is_positive, square, 1)), square)


REDUCTIONS: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "final": lambda series, stored: series[-1],
    "mean": _mean,
    "root_mean_square": _root_mean_square,
    "maximum": lambda series, stored: jnp.max(series, where=stored, initial=-jnp.inf),
    "minimum": lambda series, stored: jnp.min(series, where=stored, initial=jnp.inf),
    "sum": lambda series, stored: jnp.sum(series, where=stored),
}


def reduced(reduce: Reduce, series: jax.Array, stored: jax.Array | None = None) -> jax.Array:
    """Return a series reduced to one number.

    Args:
        reduce: final, mean, root_mean_square, maximum, minimum or sum.
        series: ``(frames, ...)``.
        stored: ``(frames,)`` booleans, False for frames after a stop, which only repeat the last one; ``None`` for a
            run that does not stop.
    """
    counted = jnp.ones(len(series), bool) if stored is None else stored
    return REDUCTIONS[reduce](series, counted.reshape(-1, *[1] * (series.ndim - 1)))
