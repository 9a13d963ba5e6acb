"""Balls dropped from different heights with compliant contact: restitution falls with the speed of impact."""

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Params, Simulation, described
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

PARAMETERS = {
    "height": Parameter(
        1.0, NOT_NEGATIVE, "m", "height of the lowest point of the last ball, the highest of all, at the start"
    ),
    "spacing": Parameter(0.35, unit="m", doc="distance of the centers of neighbors"),
    "stiffness": Parameter(2000000.0, POSITIVE, "N/m^(3/2)", "force of a contact over the power 3/2 of its overlap"),
    "dissipation": Parameter(
        0.1, NOT_NEGATIVE, "s/m", "relative loss of speed of a slow ball in an impact, per m/s of its speed"
    ),
    "radius": Parameter(0.1, POSITIVE, "m", "radius of the balls"),
    "mass": Parameter(1.0, POSITIVE, "kg", "mass of each ball"),
    "gravity": Parameter(9.81, NOT_NEGATIVE, "m/s^2", "acceleration of free fall"),
    "time_step": Parameter(0.004, POSITIVE, "s", "time step, of several substeps; a contact should last 30 substeps"),
}


@described(
    RIGID,
    height=("m", "height of the last ball's lowest point"),
    upward=("m/s", "upward velocity of the last ball"),
    apex=("m", "apex height of the present flight of the last ball"),
    shortest_contact=("1", "substeps of the shortest contact that has ended"),
)
@arguments(balls=whole("number of balls", low=1, high=100))
def compliant_bounce(*, balls: int = 5, substeps: int = 32, integrator: str = "velocity_verlet") -> Simulation:
    """Return balls side by side, each dropped from twice the height of the one before.

    Contact is that of Hunt and Crossley, see `simkit.rigid.contact.compliant.Compliant`: a ball that hits at speed v
    leaves with about ``1 - a v`` of it, so that slow balls have a larger restitution.

    k is the parameter ``stiffness`` and a ``dissipation``.

    It also diagnoses ``height``, of the lowest point of the last ball, ``upward``, its vertical velocity, ``apex``, the
    apex height of its present flight, and ``shortest_contact``, in substeps.

    Args:
        balls: number of balls, 1 to 100.
        substeps: number per time step.
        integrator: as for `simkit.rigid.free.Free`.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Hunt and Crossley, J. Appl. Mech. 42, 440 (1975), doi:10.1115/1.3423596.
    """

    def bodies(params: Params) -> Bodies:
        return repeat(sphere(params["mass"], params["radius"]), balls)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        index = jnp.arange(balls, dtype=params["height"].dtype) - (balls - 1)
        zero = jnp.zeros_like(index)
        across = params["spacing"] * (index + (balls - 1) / 2)
        return motion_of(bodies, Vector(across, zero, params["radius"] + params["height"] * 2**index))

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time
        height, upward = motion.position.z[-1] - params["radius"], motion.velocity.z[-1]
        return {"height": height, "upward": upward, "apex": height + upward**2 / (2 * params["gravity"])}

    return simulate(
        Scene(
            params=PARAMETERS,
            bodies=bodies,
            start=start,
            dynamics=Compliant(substeps=substeps, integrator=integrator),
            planes=lambda params: floor(),
            loads=(gravity(),),
            measures=measures,
        )
    )
