"""Projectile: a rotating club thrown at a target, with or without linear drag."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.quaternion import exponential, rotate
from simkit.rigid.algebra.vector import Vector, norm, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, capsule, repeat
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import gravity
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
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
    """
    scene = Scene(
        params=PARAMETERS,
        bodies=_bodies,
        start=_start,
        dynamics=Free(integrator=integrator),
        loads=(gravity(), Load(wrench=_drag)),
        measures=_measures,
        observe=_observe,
        dimensions={"target": ("space",)},
    )
    return simulate(scene)


def _bodies(params: Params) -> Bodies:
    return repeat(capsule(params["mass"], params["radius"], params["length"]), 1)


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
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


def _drag(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    del time
    return Wrench(
        force=-params["drag"] * motion.velocity,
        torque=-params["spin_drag"] * angular_velocity(motion, bodies),
    )


def _head(motion: Motion, bodies: Bodies) -> Vector:
    """Return the position of the head, the upper end of the axis of the club."""
    zero = jnp.zeros_like(bodies.radius)
    return (motion.position + rotate(motion.orientation, Vector(zero, zero, bodies.half_lengths.z)))[0]


def _target(params: Params) -> Vector:
    return Vector(params["target_x"], jnp.zeros_like(params["target_x"]), params["target_height"])


def _measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del time
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
        "miss": norm(_head(motion, bodies) - _target(params)),
    }


def _observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del motion, bodies, time
    return {"target": stacked(_target(params))}
