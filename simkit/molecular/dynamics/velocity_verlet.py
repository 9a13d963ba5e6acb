"""Velocity Verlet: Newton's equations at constant energy."""

from collections.abc import Callable
from typing import Any, Unpack

import jax

from simkit.core.parts import part
from simkit.core.simulation import Params, Simulation
from simkit.errors import UserError
from simkit.molecular.dynamics.method import Options
from simkit.molecular.dynamics.motion import motion
from simkit.molecular.dynamics.splitting import splitting
from simkit.molecular.interactions.interaction import Interaction


@part(excludes={"barostat": "which has no thermostat, as a barostat needs it"})
def velocity_verlet(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    isolated: bool = True,
    **options: Unpack[Options],
) -> Simulation:
    """Return Newtonian dynamics, ``m x'' = F(x)``, at constant energy.

        v += h/2 F(x)/m,   x += h v,   v += h/2 F(x)/m

    Of second order, symplectic, reversible in time: the energy oscillates by ``O(h^2)`` and does not drift.

    Parameters: ``time_step`` h; ``mass``, unless given otherwise; ``temperature`` of the velocities at the start,
    unless those are given. Good time steps: a fiftieth of the fastest period; 0.005 sigma sqrt(mass / epsilon) in a
    Lennard-Jones liquid.

    Args:
        interaction: energy of the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        isolated: whether to exclude the conserved momentum from the thermal motion, see
            `simkit.molecular.dynamics.motion.motion`.
        **options: ``cell``, ``mass``, ``velocity``, ``frozen``, ``observe``, ``measure`` and ``dimensions``, see there.

    Raises:
        UserError: if a parameter is missing, or a temperature schedule or a barostat is given, which need a bath.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> bead = molecular.dynamics.velocity_verlet(
        ...     spring,
        ...     lambda params, key: jnp.array([[1.0, 0.0]]),
        ...     params={"time_step": 2 * np.pi / 200, "mass": 1.0},
        ...     velocity=lambda params, key: jnp.zeros((1, 2)),
        ...     isolated=False,
        ... )
        >>> run = simkit.run(bead, steps=200, every=100)
        >>> print(run["position"][:, 0, 0].round(3).values)
        [ 1. -1.  1.]

    Reference: Swope, Andersen, Berens, Wilson, J. Chem. Phys. 76, 637 (1982), doi:10.1063/1.442716.
    """
    for name in ("temperature", "barostat"):
        if name in options:
            raise UserError(f"velocity_verlet has no bath and takes no {name}=; take langevin, nose_hoover or bussi")
    return motion(interaction, start, splitting(None), params=params, isolated=isolated, **options)
