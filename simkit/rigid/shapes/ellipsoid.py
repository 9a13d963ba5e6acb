"""The solid ellipsoid."""

import math
from collections.abc import Sequence

import jax.numpy as jnp

from simkit.core.arguments import check_shape
from simkit.core.settings import several
from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.form import Form
from simkit.rigid.shapes.solid import size, solid

FORM = Form(rows=(), corners=((0.0, 0.0, 0.0),), round=(1.0, 1.0, 1.0))


@solid(
    values={"half_axes": several(size("a half axis"), "half axes along x, y and z", (3,))},
    volume=lambda half_axes: 4 / 3 * math.pi * half_axes[0] * half_axes[1] * half_axes[2],
)
def ellipsoid(mass: Number, half_axes: Sequence[Number], friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid ellipsoid, ``I_x = m (b^2 + c^2) / 5`` and so on.

    Args:
        mass: m in kg.
        half_axes: a, b, c along its axes in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Raises:
        UserError: if there are not three half axes.

    Example:
        >>> egg = rigid.ellipsoid(0.06, (0.02, 0.02, 0.03))
        >>> print(f"{1e6 * egg.inertia.x:.1f} and {1e6 * egg.inertia.z:.1f} kg cm^2 / 100")
        15.6 and 9.6 kg cm^2 / 100
    """
    check_shape("half_axes", half_axes, "three, along x, y and z", (3,))
    a, b, c = (jnp.asarray(length) ** 2 for length in half_axes)
    fifth = jnp.asarray(mass) / 5
    moments = (fifth * (b + c), fifth * (c + a), fifth * (a + b))
    return body("ellipsoid", mass, moments, half_axes, 0, friction, restitution, FORM)
