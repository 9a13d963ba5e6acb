"""Bodies that touch nothing: an asymmetric top, a heavy top on a pivot, and a thrown club."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.quaternion import Quaternion, exponential, rotate, unrotate
from simkit.rigid.algebra.quaternion import stacked as quaternions
from simkit.rigid.algebra.vector import Vector, cross, dot, each, norm, select, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import gravity
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.simulate import simulate

ASYMMETRIC_TOP = {
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

    Example:
        >>> run = simkit.run(rigid.asymmetric_top(), steps=500, spin_x=0.0, spin_z=0.0, spin_y=2.0)
        >>> print(f"{float(run['energy'][-1]):.3f} J = I_y omega^2 / 2, spin {float(run['spin_y'][-1]):.3f} rad/s")
        4.000 J = I_y omega^2 / 2, spin 2.000 rad/s
    """
    scene = Scene(
        params=ASYMMETRIC_TOP,
        bodies=_asymmetric_bodies,
        start=_asymmetric_start,
        dynamics=Free(integrator=integrator),
        measures=_asymmetric_measures,
        observe=_asymmetric_observe,
    )
    return simulate(scene)


def _asymmetric_bodies(params: Params) -> Bodies:
    body = box(params["mass"], (1.0, 1.0, 1.0))
    return repeat(with_inertia(body, (params["moment_x"], params["moment_y"], params["moment_z"])), 1)


def _asymmetric_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    still = zeros(bodies.mass)
    return motion_of(
        bodies,
        position=dataclasses.replace(still, z=still.z + params["height"]),
        angular_velocity=still + Vector(params["spin_x"], params["spin_y"], params["spin_z"]),
    )


def _asymmetric_measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    spin = unrotate(motion.orientation, angular_velocity(motion, bodies))[0]
    zero = jnp.zeros_like(bodies.mass)
    axis = rotate(motion.orientation, Vector(zero, zero + 1, zero))[0]
    momentum = motion.angular_momentum[0]
    squared = dot(momentum, momentum)
    rotates = squared > 0
    cosine = dot(axis, momentum) / jnp.sqrt(jnp.where(rotates, squared, 1))
    return {"spin_x": spin.x, "spin_y": spin.y, "spin_z": spin.z, "uprightness": jnp.where(rotates, cosine, 0)}


def _asymmetric_observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    """Return the uniform box that has these moments, ``a^2 / 4 = 3 (I_y + I_z - I_x) / (2 m)``."""
    moments = bodies.inertia
    whole = moments.x + moments.y + moments.z
    least = THINNEST**2 * whole
    squares = (jnp.maximum(whole - 2 * moment, least) for moment in (moments.x, moments.y, moments.z))
    return {"half_lengths": stacked(Vector(*(jnp.sqrt(1.5 * square / bodies.mass) for square in squares)))}


HEAVY_TOP = {
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
TOP_MASS = 0.5
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

    Example:
        >>> run = simkit.run(rigid.heavy_top(), steps=100)
        >>> drift = run["axial_momentum"][-1] - run["axial_momentum"][0]
        >>> print(f"I_3 omega_3 = {float(run['axial_momentum'][0]):.4f} kg m^2/s, drift {abs(float(drift)):.4f}")
        I_3 omega_3 = 0.2667 kg m^2/s, drift 0.0000
    """
    scene = Scene(
        params=HEAVY_TOP,
        bodies=_heavy_bodies,
        start=_heavy_start,
        dynamics=Free(integrator=integrator),
        loads=(Load(wrench=_weight, energy=_potential),),
        measures=_heavy_measures,
        observe=_heavy_observe,
        dimensions={
            "disk": ("body",),
            "trace": ("traced_point", "space"),
            "pivots": ("pivot", "space"),
            "links": ("link", "end", "space"),
        },
    )
    return simulate(scene)


def _heavy_bodies(params: Params) -> Bodies:
    width, thickness = params["width"], params["thickness"]
    plate = box(TOP_MASS, (width, width, thickness))
    offset = TOP_MASS * params["arm"] ** 2
    moments = plate.inertia
    return repeat(with_inertia(plate, (moments.x + offset, moments.y + offset, moments.z)), 1)


def _tilted(params: Params, still: Vector) -> Quaternion:
    return exponential(dataclasses.replace(still, y=still.y + jnp.deg2rad(params["tilt"])))


def _heavy_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    """Return the top tilted towards +x, with its pivot at rest at the origin."""
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
    axis, zero = _axis(motion), zeros(bodies.mass)
    pull = bodies.mass * params["gravity"] * params["arm"]
    return Wrench(force=zero, torque=pull * Vector(-axis.y, axis.x, zero.z))


def _potential(motion: Motion, bodies: Bodies, params: Params) -> jax.Array:
    return jnp.sum(bodies.mass * params["gravity"] * params["arm"] * _axis(motion).z, axis=0)


def _heavy_measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
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


def _heavy_observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    """Return two bodies to draw, a disk and its rod, on a post, and the trace of the end of the rod.

    A disk with the radius width / sqrt(3) has the moments of inertia of the plate.
    """
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


PROJECTILE = {
    "launch_speed": Parameter(8.0, unit="m/s", doc="speed of the center at the start"),
    "launch_angle": Parameter(60.0, unit="deg", doc="direction at the start above the horizontal"),
    "launch_height": Parameter(1.5, unit="m", doc="height of the center at the start"),
    "attitude": Parameter(30.0, unit="deg", doc="angle of the club from the vertical towards +x at the start"),
    "spin": Parameter(
        6.0, unit="rad/s", doc="angular velocity about y at the start; positive turns the head towards +x"
    ),
    "drag": Parameter(0.02, NOT_NEGATIVE, "kg/s", "drag force over velocity"),
    "spin_drag": Parameter(0.0005, NOT_NEGATIVE, "kg m^2/s", "drag torque over angular velocity"),
    "mass": Parameter(0.4, POSITIVE, "kg", "mass of the club, a uniform capsule"),
    "radius": Parameter(0.05, POSITIVE, "m", "radius of the club"),
    "length": Parameter(0.6, POSITIVE, "m", "length of the club between the centers of its round ends"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "target_x": Parameter(5.0, unit="m", doc="position of the target along x"),
    "target_height": Parameter(2.0, unit="m", doc="height of the target"),
    "time_step": Parameter(0.01, POSITIVE, "s", "time step"),
}


@described(
    RIGID,
    height=("m", "height of the center"),
    attitude=("rad", "angle from the vertical"),
    spin=("rad/s", "angular velocity"),
    miss=("m", "distance of the head from the target"),
)
def projectile(*, integrator: str = "runge_kutta") -> Simulation:
    """Return a capsule thrown in the x-z plane, which rotates about y.

    ``m v' = -m g z - c v`` and ``L' = -c_r omega``: linear drag, by which both decay exponentially with the times m / c
    and I / c_r. With c = 0 the center follows a parabola, exactly but for the first-order integrator.

    c is the parameter ``drag`` and c_r ``spin_drag``. There is no ground.

    Args:
        integrator: "runge_kutta", "velocity_verlet" or "semi_implicit_euler"; since drag depends on velocity, only the
            first is of fourth order, the others are of first.

    Returns:
        The simulation; it also diagnoses ``position_x``, ``height`` (of the center), ``speed``, ``attitude`` (rad from
        the vertical, between -pi and pi), ``spin`` and ``miss``, the distance of the head of the club from the target.

    Example:
        >>> run = simkit.run(rigid.projectile(), steps=100, drag=0.0)
        >>> print(f"{float(run['height'][-1]):.3f} m, by hand {1.5 + 8 * np.sin(np.pi / 3) - 9.81 / 2:.3f} m")
        3.523 m, by hand 3.523 m
    """
    scene = Scene(
        params=PROJECTILE,
        bodies=_club_bodies,
        start=_club_start,
        dynamics=Free(integrator=integrator),
        loads=(gravity(), Load(wrench=_club_drag)),
        measures=_club_measures,
        observe=_club_observe,
        dimensions={"target": ("space",)},
    )
    return simulate(scene)


def _club_bodies(params: Params) -> Bodies:
    return repeat(capsule(params["mass"], params["radius"], params["length"]), 1)


def _club_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    still = zeros(bodies.mass)
    angle, lean = jnp.deg2rad(params["launch_angle"]), jnp.deg2rad(params["attitude"])
    speed = params["launch_speed"]
    return motion_of(
        bodies,
        position=dataclasses.replace(still, z=still.z + params["launch_height"]),
        orientation=exponential(dataclasses.replace(still, y=still.y + lean)),
        velocity=Vector(still.x + speed * jnp.cos(angle), still.y, still.z + speed * jnp.sin(angle)),
        angular_velocity=dataclasses.replace(still, y=still.y + params["spin"]),
    )


def _club_drag(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    return Wrench(
        force=-params["drag"] * motion.velocity,
        torque=-params["spin_drag"] * angular_velocity(motion, bodies),
    )


def _club_head(motion: Motion, bodies: Bodies) -> Vector:
    """Return the position of the head, the upper end of the axis of the club."""
    zero = jnp.zeros_like(bodies.radius)
    return (motion.position + rotate(motion.orientation, Vector(zero, zero, bodies.half_lengths.z)))[0]


def _club_target(params: Params) -> Vector:
    return Vector(params["target_x"], jnp.zeros_like(params["target_x"]), params["target_height"])


def _club_measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    orientation = motion.orientation[0]
    return {
        "position_x": motion.position.x[0],
        "height": motion.position.z[0],
        "speed": norm(motion.velocity)[0],
        # A rotation about y by a has q = (cos(a / 2), 0, sin(a / 2), 0); arctan2 of the double angle needs no factor.
        "attitude": jnp.arctan2(
            2 * orientation.w * orientation.v.y, orientation.w * orientation.w - orientation.v.y * orientation.v.y
        ),
        "spin": angular_velocity(motion, bodies).y[0],
        "miss": norm(_club_head(motion, bodies) - _club_target(params)),
    }


def _club_observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    return {"target": stacked(_club_target(params))}
