"""Identification of mass, friction and restitution of a ball from noisy positions of its trajectory."""

import dataclasses

import jax
import jax.numpy as jnp

from simkit.core.averages import AveragedState
from simkit.core.estimation import beside_recording
from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, number
from simkit.core.simulation import Params, Simulation, described
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

PARAMETERS = {
    "mass": Parameter(0.4, POSITIVE, "kg", "trial mass"),
    "friction": Parameter(0.02, NOT_NEGATIVE, "1", "trial coefficient of Coulomb friction between ball and floor"),
    "restitution": Parameter(0.7, SHARE, "1", "trial coefficient of restitution"),
    "launch_height": Parameter(
        1.0, NOT_NEGATIVE, "m", "height of the ball's lowest point above the floor at the start"
    ),
    "force": Parameter(1.0, unit="N", doc="amplitude of the known force along the floor"),
    "frequency": Parameter(1.0, unit="Hz", doc="frequency of the known force"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(
        0.01, POSITIVE, "s", "time step; the force is integrated to fourth order, impacts are at their exact times"
    ),
}
NOISE = Parameter(0.01, POSITIVE, "m", "standard deviation of the errors of the recorded coordinates")


@described(
    RIGID,
    place=("m", "position of the ball, x and z"),
    recorded_place=("m", "recorded position, x and z, with noise"),
    misfit=("1", "mean squared misfit in units of the noise, so far"),
    distance=("m", "root mean square difference from the recorded ball, without noise"),
)
@arguments(
    true_mass=number("mass of the recorded ball in kg", bounds=(1e-3, 1e3)),
    true_friction=number("its coefficient of friction", bounds=(0, 10)),
    true_restitution=number("its coefficient of restitution", bounds=(0, 1)),
    launch_speed=number("of both balls in m/s", bounds=(-100, 100)),
    radius=number("of both balls in m", bounds=(1e-3, 1e3)),
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
    """Return a bouncing ball with trial parameters beside the noisy recorded positions of another, and their misfit.

    Both are solid spheres thrown over a floor under a known force ``F sin(2 pi f t)`` along x, whose effect determines
    the mass; the bounces determine restitution, and their changes of the horizontal velocity determine friction, as
    long as the ball slips. One step is ``frame_every`` time steps and one recorded position ``(x, z)``, as from a
    camera at the side, with normal errors of standard deviation ``noise``; see
    `simkit.core.estimation.beside_recording` for the misfit and `simkit.core.estimation.standard_errors` for the
    standard errors of the parameters.

    Impacts are events at their exact times: the misfit is a smooth function of all parameters while their number does
    not change, and continuous where it does.

    F is the parameter ``force`` and f ``frequency``. Launch speed and radius are arguments, since they are the same for
    both balls.

    It also diagnoses ``misfit``, up to now, and ``distance``, the root mean square difference of the coordinates from
    the recorded ball now, without noise, in m.

    Frames contain two balls, the recorded one at its noisy positions first, and a link between them.

    Args:
        true_mass: mass of the recorded ball in kg.
        true_friction: coefficient of friction of the recorded ball.
        true_restitution: coefficient of restitution of the recorded ball.
        launch_speed: of both balls along x, in m/s; below 2.9 the second bounce ends the slip and does not determine
            friction.
        radius: of both balls, in m.
        frame_every: time steps between recorded positions.

    Raises:
        UserError: if an argument is out of its range.
    """
    shared = {"launch_speed": Parameter(launch_speed), "radius": Parameter(radius)}
    scene = Scene(
        params=PARAMETERS | shared,
        bodies=_bodies,
        start=_start,
        dynamics=Events(impacts=4),
        planes=lambda params: floor(),
        loads=(gravity(), Load(wrench=_push)),
    )
    trial = simulate(scene)

    def observe(state: World, params: Params) -> dict[str, jax.Array]:
        return trial.observe(state, params) | _measure(state, params)

    pair = beside_recording(
        dataclasses.replace(trial, observe=observe),
        {"mass": true_mass, "friction": true_friction, "restitution": true_restitution},
        _measure,
        every=frame_every,
        noise=NOISE,
        fixed=tuple(shared),
    )

    def observe_both(state: AveragedState, params: Params) -> dict[str, jax.Array]:
        observed = pair.observe(state, params)
        x, z = observed["recorded_place"]
        position = jnp.stack([jnp.stack([x, jnp.zeros_like(x), z]), observed["position"][0]])
        turned = quaternion.stacked(state.current.pair.motion.orientation)[:, 0]
        return {
            "position": position,
            # The pair has the trial ball first, frames have the recorded ball first.
            "orientation": turned[::-1],
            "radius": jnp.concatenate([observed["radius"]] * 2),
            "links": position[None],
            "place": observed["place"],
            "recorded_place": observed["recorded_place"],
        }

    return dataclasses.replace(
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


def _bodies(params: Params) -> Bodies:
    return repeat(sphere(params["mass"], params["radius"], params["friction"], params["restitution"]), 1)


def _start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
    del key
    zero = zeros(bodies.mass)
    return motion_of(
        bodies,
        dataclasses.replace(zero, z=zero.z + params["radius"] + params["launch_height"]),
        velocity=dataclasses.replace(zero, x=zero.x + params["launch_speed"]),
    )


def _push(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> Wrench:
    del motion
    zero = zeros(bodies.mass)
    along = params["force"] * jnp.sin(2 * jnp.pi * params["frequency"] * time)
    return Wrench(force=Vector(zero.x + along, zero.y, zero.z), torque=zero)


def _measure(state: World, params: Params) -> dict[str, jax.Array]:
    del params
    return {"place": jnp.stack([state.motion.position.x[0], state.motion.position.z[0]])}
