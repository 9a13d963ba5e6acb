"""Newton's cradle: impacts in a row of equal balls on a line."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "speed": Parameter(1.0, unit="m/s", doc="speed of the incoming balls"),
    "distance": Parameter(0.3, NOT_NEGATIVE, "m", "extra gap between the incoming balls and the row at the start"),
    "gap": Parameter(0.0001, unit="m", doc="gap between neighbors in the row"),
    "radius": Parameter(0.05, POSITIVE, "m", "radius of the balls"),
    "mass": Parameter(0.2, POSITIVE, "kg", "mass of each ball; sets energy and momentum, not the motion"),
    "restitution": Parameter(1.0, SHARE, "1", "coefficient of restitution: speed of separation over that of approach"),
    "time_step": Parameter(0.005, POSITIVE, "s", "time step; the motion is exact at any"),
}


@described(
    RIGID,
    first_speed=("m/s", "velocity of the first ball"),
    last_speed=("m/s", "velocity of the last ball"),
    last_position=("m", "last ball along x"),
)
@arguments(balls=whole("number of balls", low=2, high=20), incoming=whole("balls that move at first", low=1))
def newtons_cradle(*, balls: int = 5, incoming: int = 1) -> Simulation:
    """Return equal balls in a row without gravity and friction, hit by the first few of them at equal speed.

    Each impact transfers ``(1 + e) / 2`` of the velocity and leaves ``(1 - e) / 2``. With e = 1 as many balls leave as
    came in; one incoming ball gives the last of n balls the velocity ``v ((1 + e) / 2)^(n - 1)``. Impacts are
    sequential, as small gaps between the balls imply (Hutzler, Delaney, Weaire and MacLeod, American Journal of Physics
    72, 1508 (2004)).

    Good values: a gap of 1e-6 to 1e-2 of the radius, restitution 0.9 (steel) to 1.

    Args:
        balls: number of all balls, 2 to 20.
        incoming: number of incoming balls, 1 to balls - 1.

    Returns:
        The simulation; it also diagnoses ``last_speed`` and ``last_position`` of the last ball, and ``first_speed``.

    Raises:
        UserError: if balls or incoming is out of its range.
    """
    whole("balls that move at first", low=1, high=balls - 1).check(incoming, "incoming")

    def bodies(params: Params) -> Bodies:
        return repeat(sphere(params["mass"], params["radius"], restitution=params["restitution"]), balls)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        zero, index = zeros(bodies.mass), jnp.arange(balls, dtype=bodies.mass.dtype)
        is_incoming = index < incoming
        x = index * (2 * params["radius"] + params["gap"]) - jnp.where(is_incoming, params["distance"], 0)
        position = Vector(x, zero.y, zero.z + params["radius"])
        return motion_of(bodies, position, velocity=Vector(jnp.where(is_incoming, params["speed"], 0), zero.y, zero.z))

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time, params
        velocity = motion.velocity.x
        return {"last_speed": velocity[-1], "last_position": motion.position.x[-1], "first_speed": velocity[0]}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            # Within one step the impact of every incoming ball may cross the whole row, followed by slower ones.
            dynamics=Events(impacts=2 * incoming * (balls - incoming) + 2),
            measures=measures,
        )
    )
