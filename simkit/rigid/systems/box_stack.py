"""Standing tower of boxes on a floor."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import MAX_BODIES, Bodies, box, repeat
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "length": Parameter(0.2, POSITIVE, "m", "edge length of the boxes"),
    "shift": Parameter(0.02, unit="m", doc="shift of every second box along x"),
    "drop": Parameter(0.0, NOT_NEGATIVE, "m", "gap below each box at the start"),
    "push": Parameter(0.0, unit="m/s", doc="velocity of the lowest box along x at the start"),
    "friction": Parameter(0.5, NOT_NEGATIVE, "1", "coefficient of Coulomb friction"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.004, POSITIVE, "s", "time step"),
}
# Mass in kg; it sets energies and forces but cancels from the motion.
MASS = 1.0


@described(
    RIGID,
    top=("m", "height of the center of the top box"),
    lean=("m", "displacement of the center of the top box along x since the start"),
    distance=("m", "center of the lowest box along x"),
)
@arguments(boxes=whole("number of boxes", low=1, high=MAX_BODIES))
def box_stack(*, boxes: int = 4, sweeps: int = 8) -> Simulation:
    """Return a tower of cubes on a level floor, every second one shifted.

    The tower stands while ``shift`` is below half a length.

    Good values: friction above 0.3; time steps of 1 to 5 ms; more sweeps for a taller tower.

    Args:
        boxes: number of boxes, at least 1.
        sweeps: over all contacts in each step.

    Returns:
        The simulation; it also diagnoses ``top`` (m, height of the center of the top box), ``lean`` (m, displacement of
        that center along x since the start) and ``distance`` (m along x, of the lowest box).

    Raises:
        UserError: if boxes is outside [1, `MAX_BODIES`].
    """

    def bodies(params: Params) -> Bodies:
        return repeat(box(MASS, (params["length"],) * 3, params["friction"]), boxes)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        index = jnp.arange(boxes, dtype=bodies.mass.dtype)
        zero = jnp.zeros_like(index)
        height = params["length"] * (index + 0.5) + params["drop"] * (index + 1)
        return motion_of(
            bodies,
            Vector(params["shift"] * (index % 2), zero, height),
            velocity=Vector(jnp.where(index == 0, params["push"], zero), zero, zero),
        )

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time
        x = motion.position.x
        x_at_start = params["shift"] * ((boxes - 1) % 2)
        return {"top": motion.position.z[-1], "lean": x[-1] - x_at_start, "distance": x[0]}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            dynamics=Impulses(sweeps=sweeps),
            planes=lambda params: floor(),
            loads=(gravity(),),
            measures=measures,
        )
    )
