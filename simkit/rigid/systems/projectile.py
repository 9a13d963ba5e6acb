"""A club thrown end over end at a target, with or without the drag of the air."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.quantities import described
from simkit.core.ranges import within_ranges
from simkit.core.simulation import Params, Simulation
from simkit.rigid.algebra.quaternion import exponential, rotate
from simkit.rigid.algebra.vector import Vector, norm, stacked, zeros
from simkit.rigid.bodies.bodies import Bodies, capsule, repeat
from simkit.rigid.bodies.motion import Motion, Wrench, angular_velocity, motion_of
from simkit.rigid.free import Free
from simkit.rigid.loads import gravity
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate

DEFAULTS = {
    "launch_speed": 8.0,
    "launch_angle": 60.0,
    "launch_height": 1.5,
    "attitude": 30.0,
    "spin": 6.0,
    "drag": 0.02,
    "spin_drag": 0.0005,
    "mass": 0.4,
    "radius": 0.05,
    "length": 0.6,
    "gravity": 9.81,
    "target_x": 5.0,
    "target_height": 2.0,
    "time_step": 0.01,
}


@described(
    RIGID,
    height=("m", "height of the center"),
    attitude=("rad", "angle from upright"),
    spin=("rad/s", "angular velocity"),
    miss=("m", "distance of the head from the target"),
)
def projectile(*, integrator: str = "runge_kutta") -> Simulation:
    """Return a capsule thrown in the x-z plane, which turns about y as it flies.

    ``m v' = -m g z - c v`` and ``L' = -c_r omega``: in a viscous medium both fall off exponentially, over m / c and
    I / c_r. With c = 0 the center follows the parabola that every integrator but the first-order one has exactly.

    The parameters, all of which may be swept and differentiated: ``launch_speed`` (m/s), ``launch_angle`` (degrees
    above the horizontal), ``launch_height`` (m, of the center), ``attitude`` (degrees that the club leans from
    upright towards +x at the start), ``spin`` (rad/s about y, which turns its head towards +x), ``drag`` (c in kg/s),
    ``spin_drag`` (c_r in kg m^2/s), ``mass`` (kg), ``radius`` and ``length`` (m, of a capsule), ``gravity`` (m/s^2),
    ``target_x`` and ``target_height`` (m) and ``time_step`` (s). Nothing stops the club at the ground.

    Args:
        integrator: "runge_kutta", "velocity_verlet" or "semi_implicit_euler"; drag depends on velocity, which only
            the first follows to fourth order.

    Returns:
        The simulation; beside what every scene diagnoses: ``position_x``, ``height`` (of the center), ``speed``,
        ``attitude`` (radians from upright, between -pi and pi), ``spin`` and ``miss``, the distance of the club's
        head from the target.
    """
    scene = Scene(
        params={name: jnp.asarray(value, dtype=float) for name, value in DEFAULTS.items()},
        bodies=_bodies,
        start=_start,
        dynamics=Free(integrator=integrator),
        loads=(gravity(), Load(wrench=_drag)),
        measures=_measures,
        observe=_observe,
        dimensions={"target": ("space",)},
    )
    return within_ranges(
        simulate(scene),
        positive=(
            "mass",
            "radius",
            "length",
        ),
        not_negative=(
            "drag",
            "spin_drag",
            "gravity",
        ),
    )


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
    """Return where the far end of the first body's axis is."""
    nothing = jnp.zeros_like(bodies.radius)
    return (motion.position + rotate(motion.orientation, Vector(nothing, nothing, bodies.half_lengths.z)))[0]


def _target(params: Params) -> Vector:
    return Vector(params["target_x"], jnp.zeros_like(params["target_x"]), params["target_height"])


def _measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del time
    orientation = motion.orientation[0]
    return {
        "position_x": motion.position.x[0],
        "height": motion.position.z[0],
        "speed": norm(motion.velocity)[0],
        # A turn about y alone has q = (cos(a / 2), 0, sin(a / 2), 0), whose double angle needs no half.
        "attitude": jnp.arctan2(
            2 * orientation.w * orientation.v.y, orientation.w * orientation.w - orientation.v.y * orientation.v.y
        ),
        "spin": angular_velocity(motion, bodies).y[0],
        "miss": norm(_head(motion, bodies) - _target(params)),
    }


def _observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
    del motion, bodies, time
    return {"target": stacked(_target(params))}
