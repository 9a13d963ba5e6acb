"""The break at pool: fifteen balls in a triangle, hit by the cue ball, on cloth between four cushions."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector, norm, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor, plane, together
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Planes, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "speed": Parameter(7.0, unit="m/s", doc="of the cue ball at the start"),
    "angle": Parameter(0.5, unit="deg", doc="of its way from the long axis of the table"),
    "offset": Parameter(0.0, unit="m", doc="of its start sideways from the long axis"),
    "spin": Parameter(0.0, unit="rad/s", doc="of the cue ball at the start; positive is top spin"),
    "gap": Parameter(0.001, unit="m", doc="between neighbors in the rack"),
    "radius": Parameter(0.028575, POSITIVE, "m", "of the balls"),
    "mass": Parameter(0.17, POSITIVE, "kg", "of each ball; sets energy and momentum, not the motion"),
    "restitution": Parameter(
        0.95, SHARE, "1", "coefficient of restitution of balls, between each other and on cushions and cloth"
    ),
    "ball_friction": Parameter(0.05, NOT_NEGATIVE, "1", "coefficient of friction between balls"),
    "cloth_friction": Parameter(
        0.2, NOT_NEGATIVE, "1", "coefficient of friction on the cloth, if larger than that between balls"
    ),
    "cushion_friction": Parameter(
        0.15, NOT_NEGATIVE, "1", "coefficient of friction on the cushions, if larger than that between balls"
    ),
    "length": Parameter(2.54, POSITIVE, "m", "of the table, along x"),
    "width": Parameter(1.27, POSITIVE, "m", "of the table, along y"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(
        0.005, POSITIVE, "s", "time step; between two frames, as impacts are found at their exact times"
    ),
}


@described(
    RIGID,
    cue_x=("m", "cue ball along x"),
    cue_y=("m", "cue ball along y"),
    apex_x=("m", "ball that is hit first, along x"),
    fastest=("m/s", "largest speed"),
)
def billiards_break(*, rows: int = 5, impacts: int = 32) -> Simulation:
    """Return the break of a rack: solid spheres that slide and roll on cloth, hit each other and four cushions.

    The table lies between x = 0 and ``length`` and y = 0 and ``width``. The cue ball starts a quarter of the length
    from one end, the apex of the triangle a quarter from the other. Impacts are hard and one after the other (the gap
    between the balls of the rack gives their order); cushions are upright planes without a nose, so a ball may hop.

    A break is chaotic: every impact multiplies small differences by about the way between impacts over the radius, so
    derivatives grow from one to the next, and hold for ever smaller changes.

    Good values: restitution 0.92 to 0.98, friction between balls 0.03 to 0.08, on cloth 0.15 to 0.4.

    Args:
        rows: of the triangle, 1 to 5.
        impacts: events that one step may hold.

    Returns:
        The simulation; it also diagnoses ``cue_x``, ``cue_y``, ``apex_x`` (of the ball that is hit first) and
        ``fastest``, the largest speed.

    Raises:
        UserError: for a triangle that does not exist.
    """
    if not 1 <= rows <= 5:
        raise UserError(f"rows = {rows} is outside [1, 5]; choose 5 for the full rack")
    # Places in the triangle, in units of the distance of neighbors, the apex first.
    row, place = np.array([(row, place) for row in range(rows) for place in range(row + 1)], float).T
    along, across = np.sqrt(3) / 2 * row, place - row / 2
    # Places around the edge of the table, in units of its sides: in pieces, so that each casts its shadow where it is.
    corners, pieces = np.arange(5), np.arange(0, 4, 1 / 16)
    edge_along, edge_across = np.interp(pieces, corners, [0, 1, 1, 0, 0]), np.interp(pieces, corners, [0, 0, 1, 1, 0])

    def bodies(params: Params) -> Bodies:
        ball = sphere(params["mass"], params["radius"], params["ball_friction"], params["restitution"])
        return repeat(ball, 1 + len(row))

    def planes(params: Params) -> Planes:
        friction = params["cushion_friction"]
        return together(
            [
                floor(params["cloth_friction"]),
                plane((1, 0, 0), 0.0, friction),
                plane((-1, 0, 0), -params["length"], friction),
                plane((0, 1, 0), 0.0, friction),
                plane((0, -1, 0), -params["width"], friction),
            ]
        )

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        zero, still = zeros(bodies.mass), jnp.zeros(len(row), bodies.mass.dtype)
        spacing, length, middle = 2 * params["radius"] + params["gap"], params["length"], params["width"] / 2
        angle = jnp.deg2rad(params["angle"])
        ahead, aside = jnp.cos(angle), jnp.sin(angle)

        def first_then(cue: jax.Array, rest: jax.Array) -> jax.Array:
            return jnp.concatenate([cue[None], rest])

        position = Vector(
            first_then(length / 4, 3 / 4 * length + spacing * jnp.asarray(along, still.dtype)),
            first_then(middle + params["offset"], middle + spacing * jnp.asarray(across, still.dtype)),
            zero.z + params["radius"],
        )
        velocity = Vector(
            first_then(params["speed"] * ahead, still), first_then(params["speed"] * aside, still), zero.z
        )
        spin = Vector(first_then(-params["spin"] * aside, still), first_then(params["spin"] * ahead, still), zero.z)
        return motion_of(bodies, position, velocity=velocity, angular_velocity=spin)

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time, params
        x, y = motion.position.x, motion.position.y
        return {"cue_x": x[0], "cue_y": y[0], "apex_x": x[1], "fastest": jnp.max(norm(motion.velocity), axis=0)}

    def observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del motion, time
        along, across = (jnp.asarray(part, bodies.mass.dtype) for part in (edge_along, edge_across))
        height = jnp.broadcast_to(bodies.radius[0], along.shape)
        ends = jnp.stack([params["length"] * along, params["width"] * across, height], axis=-1)
        return {"links": jnp.stack([ends, jnp.roll(ends, -1, axis=0)], axis=1)}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            dynamics=Events(impacts=impacts),
            planes=planes,
            loads=(gravity(),),
            measures=measures,
            observe=observe,
            dimensions={"links": ("cushion_piece", "end", "space")},
        )
    )
