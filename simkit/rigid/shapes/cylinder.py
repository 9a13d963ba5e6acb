"""The solid cylinder."""

import math

import jax.numpy as jnp

from simkit.rigid.bodies.bodies import Bodies, Number, body
from simkit.rigid.shapes.form import Form
from simkit.rigid.shapes.solid import size, solid

ENDS = ((0.0, 0.0, 1.0), (0.0, 0.0, -1.0))
FORM = Form(rows=ENDS, corners=ENDS, round=(1.0, 1.0, 0.0))


@solid(
    values={"radius": size("radius"), "length": size("length along z, its axis")},
    volume=lambda radius, length: math.pi * radius**2 * length,
)
def cylinder(mass: Number, radius: Number, length: Number, friction: Number = 0.0, restitution: Number = 0.0) -> Bodies:
    """Return a solid cylinder about z, ``I_z = m r^2 / 2`` and ``I_x = m (r^2 / 4 + l^2 / 12)``.

    Args:
        mass: m in kg.
        radius: r in m.
        length: l in m.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.

    Example:
        >>> can = rigid.cylinder(0.35, radius=0.033, length=0.12)
        >>> print(f"{1e4 * can.inertia.z:.2f} kg cm^2 about its axis")
        1.91 kg cm^2 about its axis
    """
    mass, radius, length = jnp.asarray(mass), jnp.asarray(radius), jnp.asarray(length)
    across = mass * (radius**2 / 4 + length**2 / 12)
    moments = (across, across, mass * radius**2 / 2)
    return body("cylinder", mass, moments, (radius, radius, length / 2), 0, friction, restitution, FORM)
