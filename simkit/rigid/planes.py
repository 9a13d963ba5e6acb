"""The floor and other fixed planes, as scenes name them."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.scene import Planes


def plane(
    normal: Sequence[jax.Array | float],
    offset: jax.Array | float = 0.0,
    friction: jax.Array | float = 0.0,
    restitution: jax.Array | float = 0.0,
) -> Planes:
    """Return one plane ``n . x = d`` that bodies stay in front of.

    Args:
        normal: n, a unit vector towards the bodies, three numbers.
        offset: d in m.
        friction: coefficient; in a contact the larger of the two counts, so zero leaves it to the body.
        restitution: coefficient; likewise.
    """
    x, y, z = (jnp.asarray(component, dtype=float) for component in normal)
    numbers = [jnp.asarray(number, dtype=float) for number in (offset, friction, restitution)]
    alike = Planes(normal=Vector(x, y, z), offset=numbers[0], friction=numbers[1], restitution=numbers[2])
    return each(lambda value: value[None], alike)


def floor(friction: jax.Array | float = 0.0, restitution: jax.Array | float = 0.0) -> Planes:
    """Return the plane z = 0, which bodies stay above.

    Args:
        friction: coefficient; in a contact the larger of the two counts, so zero leaves it to the body.
        restitution: coefficient; likewise.
    """
    return plane((0.0, 0.0, 1.0), 0.0, friction, restitution)


def together(planes: Sequence[Planes]) -> Planes:
    """Return several planes as one collection."""
    return each(lambda *values: jnp.concatenate(values), *planes)


def no_planes() -> Planes:
    """Return a collection without any."""
    nothing = jnp.zeros(0)
    return Planes(normal=Vector(nothing, nothing, nothing), offset=nothing, friction=nothing, restitution=nothing)
