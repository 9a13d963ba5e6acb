"""Constants of balls for impacts and rolling, computed once per step."""

import jax

from simkit.core.pytrees import pytree
from simkit.rigid.bodies.bodies import Bodies


@pytree
class Balls:
    """Constants of spheres or disks, arrays (balls, ...).

    Attributes:
        inverse_mass: 1/m in 1/kg.
        inverse_moment: 1/I in 1/(kg m^2), the same about every axis that a ball turns about.
        radius: r in m.
        lever: r/I in 1/(kg m), speed of the surface per angular momentum.
        mobility: 1/m + r^2/I in 1/kg, the slip that a unit of tangential impulse adds at the surface.
        friction: coefficient of Coulomb friction.
        restitution: coefficient of restitution.
    """

    inverse_mass: jax.Array
    inverse_moment: jax.Array
    radius: jax.Array
    lever: jax.Array
    mobility: jax.Array
    friction: jax.Array
    restitution: jax.Array


def balls_of(bodies: Bodies) -> Balls:
    """Return the constants of spheres or disks for contact.

    Args:
        bodies: constants of the spheres or disks.
    """
    inverse_mass, inverse_moment = 1 / bodies.mass, 1 / bodies.inertia.y
    lever = bodies.radius * inverse_moment
    return Balls(
        inverse_mass=inverse_mass,
        inverse_moment=inverse_moment,
        radius=bodies.radius,
        lever=lever,
        mobility=inverse_mass + bodies.radius * lever,
        friction=bodies.friction,
        restitution=bodies.restitution,
    )
