"""Constructors of fixed planes: the floor, single planes and collections."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from simkit.core.arguments import check_shape
from simkit.core.parts import part
from simkit.core.settings import formula, several
from simkit.rigid.algebra.vector import Vector, each
from simkit.rigid.scene import Planes

FIXED = (
    *("count", "mass", "density", "inertia", "motion", "position", "grid", "random"),
    *("orientation", "velocity", "angular_velocity", "scatter"),
)


@part(
    values={
        "normal": several(formula("a component"), "unit vector towards the bodies", (3,), [0, 0, 1]),
        "offset": formula("distance from the origin along the normal", 0.0, unit="m"),
    },
    excludes=dict.fromkeys(FIXED, "which is fixed at normal and offset"),
)
def plane(
    normal: Sequence[jax.Array | float],
    offset: jax.Array | float = 0.0,
    friction: jax.Array | float = 0.0,
    restitution: jax.Array | float = 0.0,
) -> Planes:
    """Return one plane ``n . x = d``, as a collection; bodies stay on the side of its normal.

    Args:
        normal: n, a unit vector towards the bodies, three numbers.
        offset: d in m.
        friction: coefficient of Coulomb friction; a contact uses the larger of the plane's and the body's.
        restitution: coefficient of restitution; likewise.

    Raises:
        UserError: for an offset or a coefficient that is not one number.

    Example:
        >>> wall = rigid.plane((-1.0, 0.0, 0.0), offset=-2.0, restitution=0.9)
        >>> wall.normal.x.tolist(), wall.offset.tolist()
        ([-1.0], [-2.0])
    """
    x, y, z = (jnp.asarray(component, dtype=float) for component in normal)
    for name, value in (("offset", offset), ("friction", friction), ("restitution", restitution)):
        check_shape(f"plane: {name}", value, "one number; join several planes with `gather_planes`", ())
    numbers = [jnp.asarray(number, dtype=float) for number in (offset, friction, restitution)]
    single = Planes(normal=Vector(x, y, z), offset=numbers[0], friction=numbers[1], restitution=numbers[2])
    return each(lambda value: value[None], single)


def floor(friction: jax.Array | float = 0.0, restitution: jax.Array | float = 0.0) -> Planes:
    """Return the plane z = 0, which bodies stay above.

    Args:
        friction: coefficient of Coulomb friction; a contact uses the larger of the plane's and the body's.
        restitution: coefficient of restitution; likewise.

    Example:
        >>> ground = rigid.floor(friction=0.5)
        >>> ground.normal.z.tolist(), ground.friction.tolist()
        ([1.0], [0.5])
    """
    return plane((0.0, 0.0, 1.0), 0.0, friction, restitution)


def gather_planes(planes: Sequence[Planes]) -> Planes:
    """Return several collections of planes as one.

    Args:
        planes: such as those of `floor` and `plane`.

    Example:
        >>> corner = rigid.gather_planes([rigid.floor(), rigid.plane((-1.0, 0.0, 0.0), offset=-2.0)])
        >>> corner.offset.tolist()
        [0.0, -2.0]
    """
    return each(lambda *values: jnp.concatenate(values), *planes)
