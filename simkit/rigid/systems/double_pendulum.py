"""Double pendulum: two rods on hinges, one below the other."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.rigid.algebra.quaternion import exponential, rotate
from simkit.rigid.algebra.vector import Vector, cross, stacked
from simkit.rigid.bodies.bodies import Bodies, capsule, gather
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.joints.joint import Joint, attachment, hinge, joint
from simkit.rigid.joints.measures import anchors, hinge_angle
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import gravity
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "upper_length": Parameter(1.0, POSITIVE, "m", "distance of the hinges of the upper rod"),
    "lower_length": Parameter(1.0, POSITIVE, "m", "distance of the tip of the lower rod from its hinge"),
    "upper_mass": Parameter(1.0, POSITIVE, "kg", "mass of the upper rod"),
    "lower_mass": Parameter(1.0, POSITIVE, "kg", "mass of the lower rod"),
    "radius": Parameter(0.04, POSITIVE, "m", "radius of both rods, which are capsules"),
    "upper_angle": Parameter(90.0, unit="deg", doc="angle of the upper rod at the start, from straight down toward +x"),
    "lower_angle": Parameter(90.0, unit="deg", doc="angle of the lower rod at the start, from straight down toward +x"),
    "upper_rate": Parameter(0.0, unit="rad/s", doc="angular velocity of the upper rod at the start"),
    "lower_rate": Parameter(0.0, unit="rad/s", doc="angular velocity of the lower rod at the start"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "target_x": Parameter(-0.5, unit="m", doc="target of the tip along x at the end"),
    "target_z": Parameter(-1.5, unit="m", doc="target height of the tip at the end; the upper hinge is at 0"),
    "time_step": Parameter(0.002, POSITIVE, "s", "time step"),
}
# Axis of the hinges; rotation by a positive angle takes a hanging rod toward +x.
AXIS = (0.0, -1.0, 0.0)


@described(
    RIGID,
    tip=("m", "position of the tip"),
    tip_x=("m", "tip along x"),
    tip_z=("m", "height of the tip"),
    upper_angle=("rad", "angle of the upper rod from straight down"),
    lower_angle=("rad", "angle of the lower rod from straight down"),
    distance_to_target=("m^2", "squared distance of the tip from the target"),
)
def double_pendulum(*, order: int = 4, iterations: int = 8) -> Simulation:
    """Return a planar double pendulum of two rods, which swings in the x-z plane.

    Each rod is a solid capsule; the upper one hangs on a hinge about y at the origin, the lower one on a hinge at the
    end of the upper one.

    Derivatives grow as small differences do, by a factor e in about a third of a second at high energy: beyond a few
    seconds they are exact but of no use.

    Args:
        order: order of the method in time, 2 or 4, see `simkit.rigid.joints.rattle.Jointed`.
        iterations: of the joints in every step.

    Returns:
        The simulation; it also diagnoses ``upper_angle`` and ``lower_angle`` (rad, of each rod from straight down,
        within half a turn), ``tip_x`` and ``tip_z`` (m) and ``distance_to_target`` (m^2, the squared distance).
    """
    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=_bodies,
            start=_start,
            dynamics=Jointed(order=order, iterations=iterations),
            joints=_joints,
            loads=(gravity(),),
            measures=_measures,
            observe=_observe,
            dimensions={"tip": ("space",), "trace": ("traced_point", "space"), "pivots": ("pivot", "space")},
        )
    )


def _bodies(params: Params) -> Bodies:
    radius = params["radius"]
    return gather(
        [
            capsule(params["upper_mass"], radius, params["upper_length"]),
            capsule(params["lower_mass"], radius, params["lower_length"]),
        ]
    )


def _joints(params: Params) -> tuple[Joint, ...]:
    upper, lower = params["upper_length"] / 2, params["lower_length"] / 2
    return (
        hinge(0, anchor=(0, 0, upper), base=(0, 0, 0), axis=AXIS),
        hinge(1, 0, anchor=(0, 0, lower), base=(0, 0, -upper), axis=AXIS),
    )


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
    zero = jnp.zeros_like(bodies.mass)
    angle = jnp.deg2rad(jnp.stack([params["upper_angle"], params["lower_angle"]]))
    spin = Vector(zero, -jnp.stack([params["upper_rate"], params["lower_rate"]]), zero)
    orientation = exponential(Vector(zero, -angle, zero))
    down = rotate(orientation, Vector(zero, zero, -bodies.half_lengths.z))
    position, velocity = _chain(down), _chain(cross(spin, down))
    return motion_of(bodies, position, orientation, velocity, spin)


def _chain(halves: Vector) -> Vector:
    """Return the vectors to the centers of both rods from the vectors from each hinge to the center of its rod."""

    def add(component: jax.Array) -> jax.Array:
        return jnp.stack([component[0], 2 * component[0] + component[1]])

    return Vector(add(halves.x), add(halves.y), add(halves.z))


def _tip(motion: Motion, params: Params) -> Vector:
    end = attachment(1, anchor=(0, 0, -params["lower_length"] / 2))
    return anchors(motion, end)[0]


def _measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
    del bodies, time
    tip = _tip(motion, params)
    upper, lower = (hinge_angle(motion, joint("attachment", rod, axis=AXIS)) for rod in (0, 1))
    return {
        "upper_angle": upper,
        "lower_angle": lower,
        "tip_x": tip.x,
        "tip_z": tip.z,
        "distance_to_target": (tip.x - params["target_x"]) ** 2 + (tip.z - params["target_z"]) ** 2,
    }


def _observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Arrays:
    del bodies, time
    tip = stacked(_tip(motion, params))
    return {"tip": tip, "trace": tip[None], "pivots": jnp.zeros((1, 3), tip.dtype)}
