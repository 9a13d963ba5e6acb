"""Integrators of free bodies, by name."""

from collections.abc import Callable

import jax

from simkit.errors import UserError, nearest
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, Wrench
from simkit.rigid.integrators.runge_kutta import runge_kutta
from simkit.rigid.integrators.splitting import semi_implicit_euler, velocity_verlet

type Loading = Callable[[Motion, jax.Array], Wrench]
type Integrator = Callable[[Motion, Bodies, Loading, jax.Array, jax.Array], Motion]

INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit_euler": semi_implicit_euler,
    "velocity_verlet": velocity_verlet,
    "runge_kutta": runge_kutta,
}


def integrator_named(name: str) -> Integrator:
    """Return the integrator ``(motion, bodies, load, time, time_step) -> motion`` of a name.

    Args:
        name: "semi_implicit_euler", "velocity_verlet" or "runge_kutta".

    Raises:
        UserError: if there is no integrator of that name.
    """
    if not isinstance(name, str) or name not in INTEGRATORS:
        raise UserError(f"integrator = {name!r} is unknown", nearest(str(name), list(INTEGRATORS)))
    return INTEGRATORS[name]
