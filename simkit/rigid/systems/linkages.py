"""Rods on hinges in a plane: a four-bar linkage driven by a motor."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.errors import UserError
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector, stacked
from simkit.rigid.bodies.bodies import Bodies, gather, with_inertia
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.joints.joint import Joint, anchors, attachment, hinge, hinge_angle, hinge_rate, joint
from simkit.rigid.joints.loads import speed_motor
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.simulate import simulate

# Axis of the hinges; rotation by a positive angle takes +x to +z, and a hanging rod toward +x.
AXIS = (0.0, -1.0, 0.0)

FOUR_BAR_LINKAGE = {
    "ground_length": Parameter(0.4, POSITIVE, "m", "distance of the two fixed pivots"),
    "crank_length": Parameter(0.2, POSITIVE, "m", "distance of the hinges of the crank"),
    "coupler_length": Parameter(
        0.46, POSITIVE, "m", "distance of the hinges of the coupler; 0.5 draws the straightest line"
    ),
    "rocker_length": Parameter(0.5, POSITIVE, "m", "distance of the hinges of the rocker"),
    "point_distance": Parameter(
        1.0, POSITIVE, "m", "distance of the coupler point from the end of the crank, the length of the coupler rod"
    ),
    "mass_per_length": Parameter(1.0, POSITIVE, "kg/m", "mass per length of all rods"),
    "radius": Parameter(0.02, POSITIVE, "m", "radius of all rods, which are capsules"),
    "crank_angle": Parameter(120.0, unit="deg", doc="angle of the crank at the start, from +x toward +z"),
    "crank_speed": Parameter(
        3.0, unit="rad/s", doc="angular velocity of the crank at the start, and set point of the motor"
    ),
    "flywheel_inertia": Parameter(0.05, NOT_NEGATIVE, "kg m^2", "moment of inertia of a flywheel on the crank"),
    "motor_damping": Parameter(
        10.0, NOT_NEGATIVE, "N m s/rad", "torque of the motor per rad/s of deviation from its set point"
    ),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "line_height": Parameter(0.8, unit="m", doc="height of the straight target line of the coupler point"),
    "time_step": Parameter(0.001, POSITIVE, "s", "time step"),
}


@described(
    RIGID,
    point=("m", "position of the coupler point"),
    point_x=("m", "coupler point along x"),
    point_z=("m", "height of the coupler point"),
    crank_angle=("rad", "angle of the crank"),
    rocker_angle=("rad", "angle of the rocker"),
    crank_rate=("rad/s", "angular velocity of the crank"),
    curve_error=("m", "largest deviation along x or z of the coupler point from the exact curve"),
    freudenstein=("1", "residual of Freudenstein's equation"),
    line_error=("m^2", "squared distance of the point from the line, weighted by the crank angle"),
)
def four_bar_linkage(*, order: int = 2, iterations: int = 8) -> Simulation:
    """Return a planar linkage of a motor-driven crank, a coupler and a rocker, in the x-z plane.

    Hinges about y: crank and ground at the origin, rocker and ground at x = g, the coupler on the end of the crank and,
    at the distance b, on the end of the rocker. The coupler extends to the coupler point, whose path is the coupler
    curve. With the lengths a, b, c of crank, coupler and rocker, the angles theta of the crank and phi of the rocker
    obey Freudenstein's equation ``cos(theta - phi) = g/a cos(phi) - g/c cos(theta) + (a^2 - b^2 + c^2 + g^2) / (2 a
    c)``.

    Four hinges in space constrain a planar loop with three redundant rows, which the solver drops.

    g is the parameter ``ground_length``, a ``crank_length``, b ``coupler_length`` and c ``rocker_length``.

    Good values: the crank the shortest bar and a + b at most g + c, so that it can make full turns. Hoecken's
    proportions a = 1, g = 2, b = c = 2.5, point at 5, give a curve with a nearly straight side at height 4. The motor
    is explicit in time: its damping times the time step must stay below the moment of inertia that it turns.

    Args:
        order: order of the method in time, 2 or 4, see `simkit.rigid.joints.rattle.Jointed`.
        iterations: of the joints in every step.

    Returns:
        The simulation; it also diagnoses ``crank_angle`` and ``rocker_angle`` (rad, within half a turn), ``crank_rate``
        (rad/s), ``point_x`` and ``point_z`` (m), ``curve_error`` (m, largest deviation along x or z of the coupler
        point from the position analysis at the same crank angle), ``freudenstein`` (residual of that equation) and
        ``line_error`` (m^2, squared distance of the coupler point from the target line, times max(-cos theta, 0)^2).

    Example:
        >>> run = simkit.run(rigid.four_bar_linkage(), steps=50, every=50)
        >>> print(f"Freudenstein's equation holds: {abs(float(run['freudenstein'][-1])):.3f}")
        Freudenstein's equation holds: 0.000
    """
    simulation = simulate(
        Scene(
            params=FOUR_BAR_LINKAGE,
            bodies=_linkage_bodies,
            start=_linkage_start,
            dynamics=Jointed(order=order, iterations=iterations),
            joints=_linkage_joints,
            loads=(gravity(), speed_motor(lambda params: _linkage_joints(params)[0], "crank_speed", "motor_damping")),
            measures=_linkage_measures,
            observe=_linkage_observe,
            dimensions={
                "point": ("space",),
                "trace": ("traced_point", "space"),
                "pivots": ("pivot", "space"),
                "links": ("link", "end", "space"),
            },
        )
    )

    def check(params: Params, key: jax.Array) -> None:
        _check_closed(params)
        if simulation.check is not None:
            simulation.check(params, key)

    return dataclasses.replace(simulation, check=check)


def position_analysis(params: Params, crank_angle: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the angles in rad of coupler and rocker at an angle of the crank, all from +x, in closed form.

    The diagonal from the end of the crank to the pivot of the rocker divides the loop into two triangles.

    Args:
        params: of the linkage, of which the four lengths are used.
        crank_angle: theta in rad.
    """
    ground, crank = params["ground_length"], params["crank_length"]
    coupler, rocker = params["coupler_length"], params["rocker_length"]
    x, z = ground - crank * jnp.cos(crank_angle), -crank * jnp.sin(crank_angle)
    squared = x**2 + z**2
    # Scalar product of coupler and diagonal, and twice the area of the triangle that they span with the rocker.
    along = (squared + coupler**2 - rocker**2) / 2
    area = jnp.sqrt(squared * coupler**2 - along**2)
    coupler_angle = jnp.arctan2(z, x) + jnp.arctan2(area, along)
    up, over = coupler * jnp.sin(coupler_angle) - z, coupler * jnp.cos(coupler_angle) - x
    return coupler_angle, jnp.arctan2(up, over)


def _check_closed(params: Params) -> None:
    """Refuse bars that do not close the loop at the start, or only within rounding; on the host.

    Raises:
        UserError: with the range of coupler lengths that close it.
    """
    ground, crank, coupler, rocker, angle = (
        float(params[name])
        for name in ("ground_length", "crank_length", "coupler_length", "rocker_length", "crank_angle")
    )
    diagonal = math.hypot(ground - crank * math.cos(math.radians(angle)), crank * math.sin(math.radians(angle)))
    least, most = abs(diagonal - rocker), diagonal + rocker
    # Where coupler, rocker and diagonal are collinear, the angular velocity of the rocker is infinite.
    margin = float(jnp.finfo(params["crank_angle"].dtype).eps) ** 0.5 * most
    if not least + margin < coupler < most - margin:
        remedy = (
            f"coupler_length between {least:.4g} and {most:.4g} (|diagonal - rocker_length| and diagonal + "
            "rocker_length), or other lengths"
        )
        raise UserError(
            f"coupler_length = {coupler:g} m and rocker_length = {rocker:g} m do not close the loop at crank_angle = "
            f"{angle:g} degrees, where the end of the crank is {diagonal:.4g} m from the pivot of the rocker; choose "
            + (remedy if least + margin < most - margin else "another crank_angle or ground_length")
        )


def _linkage_bodies(params: Params) -> Bodies:
    lengths = (params["crank_length"], params["point_distance"], params["rocker_length"])
    rods = [capsule(params["mass_per_length"] * length, params["radius"], length) for length in lengths]
    # A flat flywheel about y, whose moments about x and z are half of that about y.
    flywheel = params["flywheel_inertia"]
    crank = rods[0].inertia
    rods[0] = with_inertia(rods[0], (crank.x + flywheel / 2, crank.y + flywheel, crank.z + flywheel / 2))
    return gather(rods)


def _linkage_joints(params: Params) -> tuple[Joint, ...]:
    crank, coupler, rocker = params["crank_length"] / 2, params["point_distance"] / 2, params["rocker_length"] / 2
    end = (0, 0, params["coupler_length"] - coupler)
    return (
        hinge(0, anchor=(0, 0, -crank), base=(0, 0, 0), axis=AXIS),
        hinge(1, 0, anchor=(0, 0, -coupler), base=(0, 0, crank), axis=AXIS),
        hinge(2, 1, anchor=(0, 0, rocker), base=end, axis=AXIS),
        hinge(2, anchor=(0, 0, -rocker), base=(params["ground_length"], 0, 0), axis=AXIS),
    )


def _linkage_start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    zero = jnp.zeros_like(bodies.mass)

    def pose(crank_angle: jax.Array) -> tuple[Vector, jax.Array]:
        coupler_angle, rocker_angle = position_analysis(params, crank_angle)
        angles = jnp.stack([crank_angle, coupler_angle, rocker_angle])
        x, z = bodies.half_lengths.z * jnp.cos(angles), bodies.half_lengths.z * jnp.sin(angles)
        # The coupler starts at the end of the crank and the rocker at its pivot.
        position = Vector(
            jnp.stack([x[0], 2 * x[0] + x[1], params["ground_length"] + x[2]]),
            zero,
            jnp.stack([z[0], 2 * z[0] + z[1], z[2]]),
        )
        return position, angles

    start = jnp.deg2rad(params["crank_angle"])
    (position, angles), (velocity, rates) = jax.jvp(pose, (start,), (params["crank_speed"],))
    # A rod is at angle zero when its axis z points along +x.
    orientation = exponential(Vector(zero, jnp.pi / 2 - angles, zero))
    return motion_of(bodies, position, orientation, velocity, Vector(zero, -rates, zero))


def _coupler_point(motion: Motion, params: Params) -> Vector:
    return anchors(motion, attachment(1, anchor=(0, 0, params["point_distance"] / 2)))[0]


def _linkage_measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
    crank, rocker = (
        jnp.pi / 2 + hinge_angle(motion, joint("attachment", rod, axis=AXIS), near=-jnp.pi / 2) for rod in (0, 2)
    )
    point = _coupler_point(motion, params)
    coupler_angle, _ = position_analysis(params, crank)
    a, c, g = params["crank_length"], params["rocker_length"], params["ground_length"]
    x = a * jnp.cos(crank) + params["point_distance"] * jnp.cos(coupler_angle)
    z = a * jnp.sin(crank) + params["point_distance"] * jnp.sin(coupler_angle)
    constant = (a**2 - params["coupler_length"] ** 2 + c**2 + g**2) / (2 * a * c)
    # The coupler point runs along the straight side of its curve while the crank points toward -x.
    weight = jnp.maximum(-jnp.cos(crank), 0) ** 2
    return {
        "crank_angle": crank,
        "rocker_angle": rocker,
        "crank_rate": hinge_rate(motion, bodies, _linkage_joints(params)[0]),
        "point_x": point.x,
        "point_z": point.z,
        "curve_error": jnp.maximum(jnp.abs(point.x - x), jnp.abs(point.z - z)),
        "freudenstein": g / a * jnp.cos(rocker) - g / c * jnp.cos(crank) + constant - jnp.cos(crank - rocker),
        "line_error": weight * (point.z - params["line_height"]) ** 2,
    }


def _linkage_observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
    point = stacked(_coupler_point(motion, params))
    zero = jnp.zeros_like(params["ground_length"])
    ground = jnp.stack([jnp.zeros(3, zero.dtype), jnp.stack([params["ground_length"], zero, zero])])
    # Drawn beside the rods: the coupler point, the two pivots, and the fourth bar, the ground, between them.
    return {"point": point, "trace": point[None], "pivots": ground, "links": ground[None]}
