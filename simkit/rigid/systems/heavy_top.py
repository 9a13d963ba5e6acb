"""Heavy symmetric top with a fixed point: precession and nutation under gravity."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.quaternion import Quaternion, exponential, rotate, unrotate
from simkit.rigid.algebra.quaternion import stacked as quaternions
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, select, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, box, repeat, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "tilt": Parameter(50.0, unit="deg", doc="angle of the axis from the vertical at the start"),
    "spin": Parameter(80.0, unit="rad/s", doc="angular velocity about the axis, a conserved quantity"),
    "precession_rate": Parameter(
        0.0,
        unit="rad/s",
        doc="rate of precession at the start; at 3.050236 rad/s it is steady for the default parameters",
    ),
    "nutation_rate": Parameter(0.0, unit="rad/s", doc="rate of the tilt at the start"),
    "width": Parameter(0.2, POSITIVE, "m", "width of the square plate"),
    "thickness": Parameter(0.04, POSITIVE, "m", "thickness of the plate"),
    "arm": Parameter(0.15, NOT_NEGATIVE, "m", "distance of the center of the plate from the pivot"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "pivot_height": Parameter(0.3, unit="m", doc="height of the pivot in pictures"),
    "time_step": Parameter(0.002, POSITIVE, "s", "time step; the error is proportional to its square"),
}

# Mass in kg; it sets energy and momenta but cancels from the motion.
MASS = 0.5
# Radius of the drawn rod in m.
ROD_RADIUS = 0.008
# Length of the drawn rod over that of the arm: it extends beyond the disk.
ROD_LENGTH = 1.5


@described(
    RIGID,
    angular_momentum=("kg m^2/s", "length of the angular momentum about the pivot"),
    tilt=("rad", "angle of the axis from the vertical"),
    nutation=("rad", "change of the tilt since the start"),
    precession=("rad", "azimuth of the axis"),
    axial_momentum=("kg m^2/s", "angular momentum about the top's axis"),
    vertical_momentum=("kg m^2/s", "angular momentum about the vertical"),
)
def heavy_top(*, integrator: str = "velocity_verlet") -> Simulation:
    """Return a square plate on a massless rod, whose other end is a fixed pivot.

    The state refers to the pivot: the moments of inertia are ``I_3`` about the axis and ``I_1`` across it through the
    pivot, and gravity gives the torque ``m g l n x z`` with the axis n. Conserved are the energy,
    ``p_phi = L . z`` and ``p_psi = L . n = I_3 omega_3``; the tilt theta moves in the effective potential
    ``(p_phi - p_psi cos theta)^2 / (2 I_1 sin^2 theta) + m g l cos theta``, and ``u = cos theta`` is
    ``u_1 + (u_2 - u_1) sn^2`` (Landau and Lifshitz, Mechanics, section 35).

    omega_3 is the parameter ``spin`` and l ``arm``.

    Good values: steady precession without nutation has ``I_1 cos(tilt) rate^2 - I_3 spin rate + m g l = 0``. A time
    step of 0.1 / spin gives an error of about 1e-3, proportional to its square.

    Args:
        integrator: "velocity_verlet", "runge_kutta" or "semi_implicit_euler".

    Returns:
        The simulation; ``momentum`` is that of the center of mass, ``angular_momentum`` that about the pivot. It also
        diagnoses ``tilt`` (rad), ``nutation`` (rad, change of the tilt since the start), ``precession`` (rad, azimuth
        of the axis, between -pi and pi), ``axial_momentum`` (p_psi) and ``vertical_momentum`` (p_phi).
    """
    scene = Scene(
        params=PARAMETERS,
        bodies=_bodies,
        start=_start,
        dynamics=Free(integrator=integrator),
        loads=(Load(wrench=_weight, energy=_potential),),
        measures=_measures,
        observe=_observe,
        dimensions={
            "disk": ("body",),
            "trace": ("traced_point", "space"),
            "pivots": ("pivot", "space"),
            "links": ("link", "end", "space"),
        },
    )
    return simulate(scene)


def _bodies(params: Params) -> Bodies:
    width, thickness = params["width"], params["thickness"]
    plate = box(MASS, (width, width, thickness))
    offset = MASS * params["arm"] ** 2
    moments = plate.inertia
    return repeat(with_inertia(plate, (moments.x + offset, moments.y + offset, moments.z)), 1)


def _tilted(params: Params, still: Vector) -> Quaternion:
    return exponential(dataclasses.replace(still, y=still.y + jnp.deg2rad(params["tilt"])))


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    """Return the top tilted towards +x, with its pivot at rest at the origin."""
    del key
    still = zeros(bodies.mass)
    orientation = _tilted(params, still)
    # The component of the precession along the axis is part of the given spin.
    precession = dataclasses.replace(still, z=still.z + params["precession_rate"])
    in_body = unrotate(orientation, precession)
    in_body = Vector(in_body.x, in_body.y + params["nutation_rate"], still.z + params["spin"])
    return motion_of(bodies, position=still, orientation=orientation, angular_velocity=rotate(orientation, in_body))


def _axis(motion: Motion) -> Vector:
    zero = jnp.zeros_like(motion.orientation.w)
    return rotate(motion.orientation, Vector(zero, zero, zero + 1))


def _weight(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    del time
    axis, zero = _axis(motion), zeros(bodies.mass)
    pull = bodies.mass * params["gravity"] * params["arm"]
    return Wrench(force=zero, torque=pull * Vector(-axis.y, axis.x, zero.z))


def _potential(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
    return jnp.sum(bodies.mass * params["gravity"] * params["arm"] * _axis(motion).z, axis=0)


def _measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del time
    axis, momentum = _axis(motion)[0], motion.angular_momentum[0]
    velocity = params["arm"] * cross(angular_velocity(motion, bodies)[0], axis)
    aside = norm(dataclasses.replace(axis, z=jnp.zeros_like(axis.z)))
    tilt = jnp.arctan2(aside, axis.z)
    is_upright = aside == 0
    return {
        "momentum": bodies.mass[0] * norm(velocity),
        "tilt": tilt,
        "nutation": tilt - jnp.deg2rad(params["tilt"]),
        # The azimuth of an upright axis is undefined; 0 has finite derivatives.
        "precession": jnp.arctan2(axis.y, jnp.where(is_upright, 1, axis.x)),
        "axial_momentum": dot(momentum, axis),
        "vertical_momentum": momentum.z,
    }


def _observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    """Return two bodies to draw, a disk and its rod, on a post, and the trace of the end of the rod.

    A disk with the radius width / sqrt(3) has the moments of inertia of the plate.
    """
    del time
    # Arrays of two bodies, both from the single body of the simulation.
    two, axis, momentum = jnp.zeros(2, bodies.mass.dtype), _axis(motion), motion.angular_momentum
    across, along = momentum / bodies.inertia.x, (1 / bodies.inertia.z - 1 / bodies.inertia.x) * dot(momentum, axis)
    length = ROD_LENGTH * params["arm"]
    outward = jnp.stack([params["arm"], length / 2])
    pivot = Vector(two, two, two + params["pivot_height"])
    is_rod = jnp.array([False, True])
    rod = Vector(two, two, two + length / 2)
    wide = two + params["width"] / 3**0.5
    top = stacked(pivot)[:1]
    return {
        "position": stacked(pivot + outward * axis),
        "orientation": quaternions(each(lambda part: part + two, motion.orientation)),
        "velocity": stacked(outward * cross(across, axis)),
        "angular_velocity": stacked(across + along * axis + Vector(two, two, two)),
        "half_lengths": stacked(select(is_rod, rod, Vector(wide, wide, two + bodies.half_lengths.z))),
        "radius": jnp.where(is_rod, ROD_RADIUS, bodies.radius),
        "disk": jnp.where(is_rod, two, two + 1),
        "trace": stacked(pivot + length * axis)[:1],
        "pivots": top,
        "links": jnp.stack([top * jnp.array([1, 1, 0], top.dtype), top], axis=1),
    }
