"""The geometry particles live in: which image of a pair counts, and where a particle is drawn."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from simkit.errors import UserError

type Components = tuple[jax.Array, ...]


class Space(NamedTuple):
    """A geometry as functions; the force on a particle needs no more than these.

    Differences of positions are passed as one array per component rather than as one array with a trailing axis of
    two or three: compilers vectorize the former and stumble over the latter.

    Attributes:
        nearest_image: differences of positions, one array per component -> the shortest equivalent differences.
        wrap: positions (N, d) -> the equivalent positions inside the box.
        volume: scalar, length^d.
    """

    nearest_image: Callable[[Components], Components]
    wrap: Callable[[jax.Array], jax.Array]
    volume: jax.Array


def periodic(box: jax.Array) -> Space:
    """Return an orthorhombic box whose opposite faces are joined.

    A difference becomes ``dx - L round(dx / L)`` per component; positions may lie any number of boxes away. Only one
    image of each pair is seen, so an interaction must not reach further than half the shortest side.

    Args:
        box: side lengths, (2,) or (3,); may be traced and differentiated.

    Raises:
        UserError: if ``box`` is not two or three lengths.
    """
    box = jnp.asarray(box)
    if box.shape not in ((2,), (3,)):
        raise UserError(f"box has shape {box.shape}; give the 2 or 3 side lengths of an orthorhombic box")
    inverse = 1 / box

    def nearest_image(difference: Components) -> Components:
        return tuple(d - box[axis] * jnp.round(d * inverse[axis]) for axis, d in enumerate(difference))

    def wrap(position: jax.Array) -> jax.Array:
        wrapped = position - box * jnp.floor(position * inverse)
        # A position just below zero rounds to the far face, which is the near face of the next box.
        return jnp.where(wrapped < box, wrapped, wrapped - box)

    return Space(nearest_image=nearest_image, wrap=wrap, volume=math.prod(jnp.unstack(box)[1:], start=box[0]))


def displacement(space: Space, a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the shortest vector from ``b`` to ``a``.

    Args:
        space: the geometry.
        a: positions, (..., d).
        b: positions, (..., d).

    Returns:
        ``a - b`` by the nearest image, (..., d).
    """
    difference = a - b
    components = tuple(difference[..., axis] for axis in range(difference.shape[-1]))
    return jnp.stack(space.nearest_image(components), axis=-1)
