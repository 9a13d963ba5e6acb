"""Roots of equations, with the derivatives of any order that the implicit function theorem gives them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def root_change[T](gap: Callable[[jax.Array, T], jax.Array], rate: jax.Array, surroundings: T) -> jax.Array:
    """Return z, zero, with the derivatives of the root of ``gap(z, surroundings) = 0`` by the surroundings.

    A root t of g(t) is found by any search, without derivatives, and t + z then has them, with ``gap(z) = g(t + z)``.
    A program without derivatives computes neither the gap nor its rate, one with first derivatives only the gap's.

        dz = -dgap / gap'(z), where z has its derivatives in turn

    Args:
        gap: elementwise; zero at z = 0 but for rounding.
        rate: gap'(0) as the search found it, which may be sharper than computed again; zero where there shall be no
            derivative, such as where a gap only grazes zero.
        surroundings: a tree of all arrays that the gap depends on.
    """

    @jax.custom_jvp
    def change(rate: jax.Array, surroundings: T) -> jax.Array:
        return jnp.zeros_like(rate)

    @change.defjvp
    def derivative(values: tuple[jax.Array, T], tangents: tuple[jax.Array, T]) -> tuple[jax.Array, jax.Array]:
        rate, surroundings = values
        z = change(rate, surroundings)
        _, moved = jax.jvp(lambda around: gap(z, around), (surroundings,), (tangents[1],))
        _, slope = jax.jvp(lambda z: gap(z, surroundings), (z,), (jnp.ones_like(z),))
        slope = jnp.where(rate != 0, rate, 1) + _change_of(slope)
        return z, jnp.where(rate != 0, -moved / slope, 0)

    return change(jax.lax.stop_gradient(rate), surroundings)


@jax.custom_jvp
def _change_of(value: jax.Array) -> jax.Array:
    """Return zero, with the derivatives of a value."""
    return jnp.zeros_like(value)


_change_of.defjvp(lambda values, tangents: (_change_of(values[0]), tangents[0]))
