"""Pool break: a cue ball hits fifteen balls in a triangle, on cloth between four cushions."""

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, SHARE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector, norm, zeros
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor, gather_planes, plane
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Planes, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "speed": Parameter(7.0, unit="m/s", doc="speed of the cue ball at the start"),
    "angle": Parameter(0.5, unit="deg", doc="angle of its velocity from the long axis of the table"),
    "offset": Parameter(0.0, unit="m", doc="offset of its start from the long axis, along y"),
    "spin": Parameter(0.0, unit="rad/s", doc="spin of the cue ball at the start; positive is top spin"),
    "gap": Parameter(0.001, unit="m", doc="gap between neighbors in the rack"),
    "radius": Parameter(0.028575, POSITIVE, "m", "radius of the balls"),
    "mass": Parameter(0.17, POSITIVE, "kg", "mass of each ball; sets energy and momentum, not the motion"),
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
    "length": Parameter(2.54, POSITIVE, "m", "length of the table, along x"),
    "width": Parameter(1.27, POSITIVE, "m", "width of the table, along y"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.005, POSITIVE, "s", "time step; impacts are at their exact times within it"),
}


@described(
    RIGID,
    cue_x=("m", "cue ball along x"),
    cue_y=("m", "cue ball along y"),
    apex_x=("m", "apex ball of the rack along x"),
    fastest=("m/s", "largest speed"),
)
@arguments(rows=whole("rows of the rack", low=1, high=5))
def billiards_break(*, rows: int = 5, impacts: int = 32) -> Simulation:
    """Return the break of a rack: solid spheres that slide and roll on cloth, and hit each other and four cushions.

    The table extends from x = 0 to ``length`` and from y = 0 to ``width``. The cue ball starts a quarter of the length
    from one end, the apex of the triangle is a quarter from the other. Impacts are hard and sequential (the gap between
    the balls of the rack determines their order); cushions are vertical planes, so a ball may hop.

    A break is chaotic: every impact multiplies small differences by about the distance between impacts over the radius,
    so derivatives grow from impact to impact, and hold for ever smaller changes.

    Good values: restitution 0.92 to 0.98, friction between balls 0.03 to 0.08, on cloth 0.15 to 0.4.

    Args:
        rows: number of rows of the triangle, 1 to 5.
        impacts: budget of events per step.

    Returns:
        The simulation; it also diagnoses ``cue_x``, ``cue_y``, ``apex_x`` (of the apex ball) and ``fastest``, the
        largest speed.

    Raises:
        UserError: if rows is outside [1, 5].
    """
    # Positions in the triangle, in units of the distance of neighbors, the apex first.
    row, column = np.array([(row, column) for row in range(rows) for column in range(row + 1)], float).T
    along, across = np.sqrt(3) / 2 * row, column - row / 2
    # Points on the edge of the table, in units of its sides: it is drawn in short pieces, each with its own shadow.
    corners, pieces = np.arange(5), np.arange(0, 4, 1 / 16)
    edge_along, edge_across = np.interp(pieces, corners, [0, 1, 1, 0, 0]), np.interp(pieces, corners, [0, 0, 1, 1, 0])

    def bodies(params: Params) -> Bodies:
        ball = sphere(params["mass"], params["radius"], params["ball_friction"], params["restitution"])
        return repeat(ball, 1 + len(row))

    def planes(params: Params) -> Planes:
        friction = params["cushion_friction"]
        return gather_planes(
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

        def all_balls(cue: jax.Array, rack: jax.Array) -> jax.Array:
            return jnp.concatenate([cue[None], rack])

        position = Vector(
            all_balls(length / 4, 3 / 4 * length + spacing * jnp.asarray(along, still.dtype)),
            all_balls(middle + params["offset"], middle + spacing * jnp.asarray(across, still.dtype)),
            zero.z + params["radius"],
        )
        velocity = Vector(all_balls(params["speed"] * ahead, still), all_balls(params["speed"] * aside, still), zero.z)
        spin = Vector(all_balls(-params["spin"] * aside, still), all_balls(params["spin"] * ahead, still), zero.z)
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
