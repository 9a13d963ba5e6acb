"""Block sliding down a slope with Coulomb friction."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.quaternion import exponential
from simkit.rigid.algebra.vector import Vector, dot
from simkit.rigid.bodies.bodies import Bodies, box, repeat
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import plane
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Planes, Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "speed": Parameter(2.0, unit="m/s", doc="speed down the slope at the start"),
    "slope": Parameter(15.0, unit="deg", doc="slope of the ground"),
    "friction": Parameter(0.6, NOT_NEGATIVE, "1", "coefficient of Coulomb friction between block and ground"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.00025, POSITIVE, "s", "time step"),
}
# Mass in kg; it sets energies and forces but cancels from the motion.
MASS = 1.0


@described(
    RIGID,
    distance=("m", "distance down the slope"),
    speed=("m/s", "velocity down the slope"),
)
def sliding_block(*, lengths: tuple[float, float, float] = (0.3, 0.2, 0.1), sweeps: int = 16) -> Simulation:
    """Return a block that starts to slide down a slope at a given speed.

    It slides with the acceleration ``g (sin a - mu cos a)`` down the slope. If that is negative the block comes to rest
    after the distance ``v^2 / (2 g (mu cos a - sin a))`` and stays there.

    v is the parameter ``speed``, a ``slope`` and mu ``friction``.

    Good values: a flat block, which does not tip over; friction 0.2 to 0.8; time steps up to 5 ms, where the error of
    the distance is about 1e-5 m. Derivatives need shorter ones: their relative error is up to two steps over the time
    of sliding.

    Args:
        lengths: of the block along the slope, across it, and normal to it, in m.
        sweeps: over the four corners in each step.

    Returns:
        The simulation; it also diagnoses ``distance`` (m) and ``speed`` (m/s) down the slope.
    """

    def slope_of(params: Params) -> tuple[Vector, Vector]:
        angle = jnp.deg2rad(params["slope"])
        zero = jnp.zeros_like(angle)
        return Vector(jnp.cos(angle), zero, -jnp.sin(angle)), Vector(jnp.sin(angle), zero, jnp.cos(angle))

    def bodies(params: Params) -> Bodies:
        return repeat(box(MASS, lengths, params["friction"]), 1)

    def planes(params: Params) -> Planes:
        _, normal = slope_of(params)
        return plane((normal.x, normal.y, normal.z))

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        down, normal = slope_of(params)
        zero = jnp.zeros_like(bodies.mass)
        tilted = exponential(Vector(zero, zero + jnp.deg2rad(params["slope"]), zero))
        return motion_of(bodies, lengths[2] / 2 * normal, tilted, params["speed"] * down)

    def observe(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del motion, bodies, time
        _, normal = slope_of(params)
        return {"planes": jnp.stack([normal.x, normal.y, normal.z, jnp.zeros_like(normal.x)])[None]}

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time
        down, _ = slope_of(params)
        return {"distance": dot(motion.position, down)[0], "speed": dot(motion.velocity, down)[0]}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            dynamics=Impulses(sweeps=sweeps),
            planes=planes,
            loads=(gravity(),),
            measures=measures,
            observe=observe,
            dimensions={"planes": ("plane", "normal_and_offset")},
        )
    )
