"""Mass, friction and restitution of a ball, recovered from noisy positions along its way."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.averages import AveragedState
from simkit.core.quantities import described
from simkit.core.ranges import within_ranges
from simkit.core.recording import beside_recording
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.rigid.algebra import quaternion
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import World, simulate

DEFAULTS = {
    "mass": 0.4,
    "friction": 0.02,
    "restitution": 0.7,
    "launch_height": 1.0,
    "force": 1.0,
    "frequency": 1.0,
    "gravity": 9.81,
    "time_step": 0.01,
}
NOISE = 0.01


@described(
    RIGID,
    place=("m", "position of the ball, x and z"),
    recorded_place=("m", "recorded position, x and z, with noise"),
    misfit=("1", "mean squared misfit in units of the noise, so far"),
    distance=("m", "root mean square difference from the recorded ball"),
)
def system_identification(
    *,
    true_mass: float = 0.6,
    true_friction: float = 0.06,
    true_restitution: float = 0.8,
    launch_speed: float = 4.0,
    radius: float = 0.1,
    frame_every: int = 2,
) -> Simulation:
    """Return a bouncing ball beside the recorded positions of another, and how badly it explains them.

    Both are solid spheres thrown over a floor while a known force ``F sin(2 pi f t)`` pushes them along x, which tells
    the mass; the bounces tell restitution, and what they take from the speed along the floor tells friction, as long
    as the ball slips. One step is ``frame_every`` time steps and one recorded position ``(x, z)``, as a camera from
    the side sees it, with normal errors of standard deviation ``noise``; see `simkit.core.recording.beside_recording`
    for the misfit and `simkit.core.recording.standard_errors` for how well it tells the parameters.

    Impacts are events at their exact times: the misfit is a smooth function of all parameters while their number does
    not change, and a continuous one where it does.

    Parameters (all may be swept or differentiated): ``mass`` (kg), ``friction`` and ``restitution``, which are tried;
    ``launch_height`` of the lowest point (m), ``force`` F (N) and its ``frequency`` f (Hz), ``gravity`` (m/s^2),
    ``time_step`` (s) and ``noise`` (m), which are known. Launch speed and radius are none: they shift both balls alike.

    Diagnostics, besides those of every scene: ``misfit``, up to now, and ``distance``, root of the mean square
    difference of the coordinates to the recorded ball now, without the errors, in m.

    Frames hold two balls, the recorded one at its noisy positions first, and a link between them.

    Args:
        true_mass: of the recorded ball in kg.
        true_friction: of the recorded ball.
        true_restitution: of the recorded ball.
        launch_speed: of both along x, in m/s; below 2.9 they grip at the second bounce, which then tells no friction.
        radius: of both, in m.
        frame_every: time steps between recorded positions.

    Raises:
        UserError: if an argument is out of its range.
    """
    ranges = {
        "true_mass": (true_mass, 1e-3, 1e3),
        "true_friction": (true_friction, 0.0, 10.0),
        "true_restitution": (true_restitution, 0.0, 1.0),
        "launch_speed": (launch_speed, -100.0, 100.0),
        "radius": (radius, 1e-3, 1e3),
    }
    for name, (value, low, high) in ranges.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise UserError(f"{name} = {value!r} is not a number in [{low:g}, {high:g}]; choose one within")
    shared = {"launch_speed": launch_speed, "radius": radius}
    scene = Scene(
        params={name: jnp.asarray(value, dtype=float) for name, value in (DEFAULTS | shared).items()},
        bodies=_bodies,
        start=_start,
        dynamics=Events(impacts=4),
        planes=lambda params: floor(),
        loads=(gravity(), Load(wrench=_push)),
    )
    tried = within_ranges(
        simulate(scene),
        positive=("mass", "radius"),
        not_negative=("launch_height", "friction", "gravity"),
        shares=("restitution",),
    )

    def observe(state: World, params: Params) -> dict[str, jax.Array]:
        return tried.observe(state, params) | _measure(state, params)

    pair = beside_recording(
        dataclasses.replace(tried, observe=observe),
        {"mass": true_mass, "friction": true_friction, "restitution": true_restitution},
        _measure,
        every=frame_every,
        noise=NOISE,
        fixed=tuple(shared),
    )

    def observe_both(state: AveragedState, params: Params) -> dict[str, jax.Array]:
        seen = pair.observe(state, params)
        x, z = seen["recorded_place"]
        position = jnp.stack([jnp.stack([x, jnp.zeros_like(x), z]), seen["position"][0]])
        turned = quaternion.stacked(state.current.pair.motion.orientation)[:, 0]
        return {
            "position": position,
            # Of the pair, the tried one comes first.
            "orientation": turned[::-1],
            "radius": jnp.concatenate([seen["radius"]] * 2),
            "links": position[None],
            "place": seen["place"],
            "recorded_place": seen["recorded_place"],
        }

    shown = dataclasses.replace(
        pair,
        observe=observe_both,
        dimensions={
            "position": ("ball", "space"),
            "orientation": ("ball", "quaternion"),
            "radius": ("ball",),
            "links": ("link", "end", "space"),
            "place": ("plane",),
            "recorded_place": ("plane",),
        },
    )
    return within_ranges(shown, positive=("noise",))


def _bodies(params: Params) -> Bodies:
    return repeat(sphere(params["mass"], params["radius"], params["friction"], params["restitution"]), 1)


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
    nothing = zeros(bodies.mass)
    return motion_of(
        bodies,
        dataclasses.replace(nothing, z=nothing.z + params["radius"] + params["launch_height"]),
        velocity=dataclasses.replace(nothing, x=nothing.x + params["launch_speed"]),
    )


def _push(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    del motion
    nothing = zeros(bodies.mass)
    along = params["force"] * jnp.sin(2 * jnp.pi * params["frequency"] * time)
    return Wrench(force=Vector(nothing.x + along, nothing.y, nothing.z), torque=nothing)


def _measure(state: World, params: Params) -> dict[str, jax.Array]:
    del params
    return {"place": jnp.stack([state.motion.position.x[0], state.motion.position.z[0]])}
