"""Balls dropped from different heights onto a floor that they dent: the harder the impact, the more is lost."""

import jax
import jax.numpy as jnp

from simkit.core.quantities import described
from simkit.core.ranges import within_ranges
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.rigid.algebra.vector import Vector
from simkit.rigid.bodies.bodies import Bodies, repeat, sphere
from simkit.rigid.bodies.motion import Motion, motion_of
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.loads import gravity
from simkit.rigid.planes import floor
from simkit.rigid.quantities import RIGID
from simkit.rigid.scene import Scene
from simkit.rigid.simulate import simulate

DEFAULTS = {
    "height": 1.0,
    "spacing": 0.35,
    "stiffness": 2e6,
    "dissipation": 0.1,
    "radius": 0.1,
    "mass": 1.0,
    "gravity": 9.81,
    "time_step": 0.004,
}


@described(
    RIGID,
    height=("m", "height of the last ball's lowest point"),
    upward=("m/s", "upward velocity of the last ball"),
    apex=("m", "height that the last ball would reach"),
    shortest_contact=("1", "substeps of the shortest contact that has ended"),
)
def compliant_bounce(*, balls: int = 5, substeps: int = 32, integrator: str = "velocity_verlet") -> Simulation:
    """Return balls side by side, each dropped from twice the height of the one before.

    Contact is that of Hunt and Crossley, see `simkit.rigid.contact.compliant.Compliant`: a ball that hits at speed v
    leaves with about ``1 - a v`` of it, so that slow balls bounce better.

    Parameters (all may be swept or differentiated): ``height`` of the last ball's lowest point (m), ``spacing`` of the
    balls (m), ``stiffness`` k (N/m^(3/2)), ``dissipation`` a (s/m), ``radius`` (m), ``mass`` (kg), ``gravity`` (m/s^2)
    and ``time_step`` (s).

    Diagnostics, besides those of every scene: ``height``, of the last ball's lowest point, ``upward``, its vertical
    velocity, ``apex``, the height that these would take it to, and ``shortest_contact``, in substeps.

    Args:
        balls: how many, at least 1.
        substeps: in each time step.
        integrator: as for `simkit.rigid.free.Free`.

    Raises:
        UserError: if an argument is out of its range.

    Reference: Hunt and Crossley, J. Appl. Mech. 42, 440 (1975), doi:10.1115/1.3423596.
    """
    if isinstance(balls, bool) or not isinstance(balls, int) or not 1 <= balls <= 100:
        raise UserError(f"balls = {balls!r} is not an integer from 1 to 100; choose for example balls = 5")

    def bodies(params: Params) -> Bodies:
        return repeat(sphere(params["mass"], params["radius"]), balls)

    def start(params: Params, bodies: Bodies, key: jax.Array) -> Motion:
        del key
        place = jnp.arange(balls, dtype=params["height"].dtype) - (balls - 1)
        nothing = jnp.zeros_like(place)
        across = params["spacing"] * (place + (balls - 1) / 2)
        return motion_of(bodies, Vector(across, nothing, params["radius"] + params["height"] * 2**place))

    def measures(motion: Motion, bodies: Bodies, time: jax.Array, params: Params) -> dict[str, jax.Array]:
        del bodies, time
        height, upward = motion.position.z[-1] - params["radius"], motion.velocity.z[-1]
        return {"height": height, "upward": upward, "apex": height + upward**2 / (2 * params["gravity"])}

    return within_ranges(
        simulate(
            Scene(
                params={name: jnp.asarray(value, dtype=float) for name, value in DEFAULTS.items()},
                bodies=bodies,
                start=start,
                dynamics=Compliant(substeps=substeps, integrator=integrator),
                planes=lambda params: floor(),
                loads=(gravity(),),
                measures=measures,
            )
        ),
        positive=(
            "stiffness",
            "radius",
            "mass",
        ),
        not_negative=(
            "height",
            "dissipation",
            "gravity",
        ),
    )
