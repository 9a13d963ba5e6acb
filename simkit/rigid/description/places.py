"""Random places of bodies in boxes without overlap."""

import jax
import jax.numpy as jnp

from simkit.core.formulation import computed_once
from simkit.rigid.algebra.vector import Vector, dot, each

# Places that are tried for each body.
TRIES = 256


def random_places(key: jax.Array, radius: jax.Array, low: Vector, high: Vector) -> Vector:
    """Return random places of spheres in boxes, one after the other, each the first of a number that is free.

    Random sequential addition, which fills up to 0.38 of the volume (Torquato, Uche and Stillinger, Physical Review E
    74, 061308 (2006), doi:10.1103/PhysRevE.74.061308); where no place is free, it is the one with the least overlap.
    Places move with the box and the radius, so that derivatives are those of a fixed arrangement.

    Args:
        key: of the random numbers.
        radius: of the spheres in m, (n,).
        low: lower corners of the boxes, (n,); the spheres are inside.
        high: upper corners, (n,).
    """
    count = len(radius)
    shares = jax.random.uniform(key, (3, count, TRIES), radius.dtype)
    margin = radius[:, None]
    lowest, widths = (
        each(lambda a: a[:, None] + margin, low),
        each(lambda a, b: (b - a)[:, None] - 2 * margin, low, high),
    )
    tried = computed_once(
        Vector(
            *(
                a + share * w
                for a, share, w in zip(
                    (lowest.x, lowest.y, lowest.z), shares, (widths.x, widths.y, widths.z), strict=True
                )
            )
        )
    )

    def one(placed: Vector, index: jax.Array) -> tuple[Vector, None]:
        candidates = tried[index]
        apart = each(lambda a, b: a[:, None] - b[None, :], candidates, placed)
        # Squared distances are compared, which have derivatives everywhere.
        free = jax.lax.stop_gradient(dot(apart, apart) - (radius[index] + radius) ** 2)
        free = jnp.min(jnp.where(jnp.arange(count) < index, free, jnp.inf), axis=1)
        chosen = jnp.where(jnp.any(free > 0), jnp.argmax(free > 0), jnp.argmax(free))
        return each(lambda all_, new: all_.at[index].set(new[chosen]), placed, candidates), None

    return jax.lax.scan(one, each(jnp.zeros_like, low), jnp.arange(count))[0]


def clearance_of(position: Vector, radius: jax.Array) -> jax.Array:
    """Return the least difference of squared distances and squared sums of radii of spheres, in m^2.

    Args:
        position: of the centers, (n,).
        radius: in m, (n,).
    """
    apart = each(lambda a: a[:, None] - a[None, :], position)
    free = dot(apart, apart) - (radius[:, None] + radius) ** 2
    return jnp.min(jnp.where(jnp.eye(len(radius), dtype=bool), jnp.inf, free))
