"""Free asymmetric top: a body with three unequal moments of inertia, and the flip about its intermediate axis."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.quaternion import rotate, unrotate
from simkit.rigid.algebra.vector import Vector, dot, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, box, repeat, with_inertia
from simkit.rigid.bodies.motion import Motion, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "moment_x": Parameter(
        1.0, POSITIVE, "kg m^2", "moment of inertia about the body axis x; each may be at most the sum of the others"
    ),
    "moment_y": Parameter(
        2.0, POSITIVE, "kg m^2", "moment of inertia about the body axis y, the intermediate one by default"
    ),
    "moment_z": Parameter(3.0, POSITIVE, "kg m^2", "moment of inertia about the body axis z"),
    "spin_x": Parameter(0.1, unit="rad/s", doc="angular velocity about x at the start"),
    "spin_y": Parameter(3.0, unit="rad/s", doc="angular velocity about y at the start"),
    "spin_z": Parameter(0.1, unit="rad/s", doc="angular velocity about z at the start"),
    "mass": Parameter(12.0, POSITIVE, "kg", "mass; affects the size of the drawn body, not the rotation"),
    "height": Parameter(1.0, unit="m", doc="height of the center of mass"),
    "time_step": Parameter(0.002, POSITIVE, "s", "time step; the error is proportional to its square"),
}

# Least relative thickness of the drawn plate: a flat body would have no visible edges.
THINNEST = 0.04


@described(
    RIGID,
    spin_x=("rad/s", "angular velocity about the body axis x"),
    spin_y=("rad/s", "angular velocity about the body axis y"),
    spin_z=("rad/s", "angular velocity about the body axis z"),
    uprightness=("1", "cosine of the angle from the body axis y to the angular momentum"),
)
def asymmetric_top(*, integrator: str = "velocity_verlet") -> Simulation:
    """Return a torque-free body with a given angular velocity along its principal axes at the start.

    Euler's equations ``I_x omega_x' = (I_y - I_z) omega_y omega_z`` and so on are solved by Jacobi's elliptic
    functions. Rotation about the axis of the intermediate moment is unstable: within a few turns the axis flips over,
    stays so for a while, and flips back (Landau and Lifshitz, Mechanics, section 37).

    Each moment may be at most the sum of the others; the drawn box has these moments and the ``mass``.

    Args:
        integrator: "velocity_verlet", "runge_kutta" or "semi_implicit_euler"; all conserve the angular momentum to the
            last bit, and the first also the energy without drift.

    Returns:
        The simulation; it also diagnoses ``spin_x``, ``spin_y``, ``spin_z`` along the body axes, and ``uprightness``,
        the cosine of the angle between the body axis y and the angular momentum.
    """
    scene = Scene(
        params=PARAMETERS,
        bodies=_bodies,
        start=_start,
        dynamics=Free(integrator=integrator),
        measures=_measures,
        observe=_observe,
    )
    return simulate(scene)


def _bodies(params: Params) -> Bodies:
    body = box(params["mass"], (1.0, 1.0, 1.0))
    return repeat(with_inertia(body, (params["moment_x"], params["moment_y"], params["moment_z"])), 1)


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
    still = zeros(bodies.mass)
    return motion_of(
        bodies,
        position=dataclasses.replace(still, z=still.z + params["height"]),
        angular_velocity=still + Vector(params["spin_x"], params["spin_y"], params["spin_z"]),
    )


def _measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del time, params
    spin = unrotate(motion.orientation, angular_velocity(motion, bodies))[0]
    zero = jnp.zeros_like(bodies.mass)
    axis = rotate(motion.orientation, Vector(zero, zero + 1, zero))[0]
    momentum = motion.angular_momentum[0]
    squared = dot(momentum, momentum)
    rotates = squared > 0
    cosine = dot(axis, momentum) / jnp.sqrt(jnp.where(rotates, squared, 1))
    return {"spin_x": spin.x, "spin_y": spin.y, "spin_z": spin.z, "uprightness": jnp.where(rotates, cosine, 0)}


def _observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    """Return the uniform box that has these moments, ``a^2 / 4 = 3 (I_y + I_z - I_x) / (2 m)``."""
    del motion, time, params
    moments = bodies.inertia
    whole = moments.x + moments.y + moments.z
    least = THINNEST**2 * whole
    squares = (jnp.maximum(whole - 2 * moment, least) for moment in (moments.x, moments.y, moments.z))
    return {"half_lengths": stacked(Vector(*(jnp.sqrt(1.5 * square / bodies.mass) for square in squares)))}
