"""Sliding ball that friction brings to rolling."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, angular_velocity, motion_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "speed": Parameter(3.5, unit="m/s", doc="speed at the start"),
    "back_spin": Parameter(10.0, unit="rad/s", doc="spin at the start; positive is that of a ball rolling backwards"),
    "friction": Parameter(0.2, NOT_NEGATIVE, "1", "coefficient of Coulomb friction between ball and floor"),
    "radius": Parameter(0.1, POSITIVE, "m", "radius of the ball"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.005, POSITIVE, "s", "time step"),
}
# Mass in kg; it sets energies and forces but cancels from the motion.
MASS = 1.0


@described(
    RIGID,
    distance=("m", "displacement along x"),
    speed=("m/s", "velocity along x"),
    slip=("m/s", "slip, the velocity of the lowest point along x"),
)
def rolling_ball() -> Simulation:
    """Return a solid sphere that slides on a level floor at the start.

    Friction slows it by ``mu g`` and changes its spin until, after the time ``2 (v + r w) / (7 mu g)``, it rolls at the
    constant speed ``(5 v - 2 r w) / 7``, which does not depend on friction, gravity or mass.

    v is the parameter ``speed``, w ``back_spin``, mu ``friction`` and r ``radius``.

    Good values: time steps of 1 to 10 ms.

    Returns:
        The simulation; it also diagnoses ``distance`` (m) and ``speed`` (m/s) along x, and ``slip`` (m/s), the velocity
        of the lowest point.
    """

    def bodies(params: Params) -> Bodies:
        return repeat(sphere(MASS, params["radius"], params["friction"]), 1)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        zero = jnp.zeros_like(bodies.mass)
        return motion_of(
            bodies,
            Vector(zero, zero, bodies.radius),
            velocity=Vector(zero + params["speed"], zero, zero),
            angular_velocity=Vector(zero, zero - params["back_spin"], zero),
        )

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del time
        spin = angular_velocity(motion, bodies).y[0]
        speed = motion.velocity.x[0]
        return {"distance": motion.position.x[0], "speed": speed, "slip": speed - params["radius"] * spin}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            dynamics=Impulses(sweeps=2),
            planes=lambda params: floor(),
            loads=(gravity(),),
            measures=measures,
        )
    )
