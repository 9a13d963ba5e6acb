"""Langevin dynamics by the BAOAB splitting: particles in a bath of constant temperature."""

from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE
from simkit.core.parts import part
from simkit.core.settings import formula
from simkit.core.simulation import Params, Simulation
from simkit.molecular.dynamics.method import Options, Schedule
from simkit.molecular.dynamics.splitting import Barostat, MidStep, Thermostat, key_of_step, seed, thermostatted
from simkit.molecular.interactions.interaction import Interaction


@part(values={"friction": formula("friction of the bath", unit="1 / time", bounds=NOT_NEGATIVE)})
def langevin(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    temperature: Schedule | None = None,
    barostat: Barostat | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return Langevin dynamics, ``m x'' = F(x) - m gamma x' + sqrt(2 m gamma T) white noise``.

        B: v += h/2 F(x)/m    A: x += h/2 v    O: v = c v + sqrt((1 - c^2) T/m) N(0, 1)    A    B

    with ``c = exp(-gamma h)``. It samples the canonical distribution at temperature T (k_B = 1). Averages of positions
    are exact for harmonic forces at any stable time step, and otherwise more accurate than those of velocities. Without
    friction it is velocity Verlet.

    Parameters: ``time_step`` h; ``temperature`` T, energy; ``friction`` gamma, 1 / time; ``mass``, unless given
    otherwise; those of the barostat. Good values: time steps as for velocity Verlet; a friction of 0.1 to 1 in units of
    a typical frequency. The derivative with respect to a friction or temperature of zero is infinite, since the noise
    is proportional to a square root.

    Args:
        interaction: energy of the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        temperature: T as ``(params, time) -> number``, not negative; ``None`` for the parameter.
        barostat: from `simkit.molecular.dynamics.stochastic_cell_rescaling`.
        **options: ``cell``, ``mass``, ``velocity``, ``frozen``, ``observe``, ``measure`` and ``dimensions``, see
            `simkit.molecular.dynamics.motion.motion`.

    Raises:
        UserError: if a parameter is missing, or an argument contradicts another.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 2.0, "friction": 1.0}
        >>> cloud = molecular.dynamics.langevin(spring, lambda params, key: jnp.zeros((2000, 2)), params=params)
        >>> run = simkit.run(cloud, steps=200, every=200)
        >>> print(f"<x^2> = {float((run['position'][-1] ** 2).mean()):.1f} = temperature / stiffness")
        <x^2> = 2.0 = temperature / stiffness

    Reference: Leimkuhler, Matthews, J. Chem. Phys. 138, 174102 (2013), doi:10.1063/1.4802990.
    """
    return thermostatted(
        interaction,
        start,
        Thermostat(("friction",), seed, _exchange, is_canonical=True),
        params=params,
        isolated=False,
        temperature=temperature,
        barostat=barostat,
        **options,
    )


def _exchange(bath: jax.Array, velocity: jax.Array, middle: MidStep) -> tuple[jax.Array, jax.Array]:
    damping, noise = _friction(middle)
    kicks = jax.random.normal(key_of_step(bath, middle.iteration), velocity.shape, velocity.dtype)
    return bath, damping * velocity + noise / jnp.sqrt(middle.mass) * kicks


def _friction(middle: MidStep) -> tuple[jax.Array, jax.Array]:
    """Return ``exp(-gamma h)`` and ``sqrt((1 - exp(-2 gamma h)) T)``."""
    step, friction = middle.step, middle.params["friction"]
    decay = 2 * friction * step
    positive = jnp.where(decay > 0, decay, 1)
    share = jnp.where(decay > 0, -jnp.expm1(-positive) / positive, 1 - decay / 2)
    # Roots of friction and temperature taken apart: where one is zero, only its own derivative is infinite.
    noise = jnp.sqrt(friction) * jnp.sqrt(middle.temperature) * jnp.sqrt(2 * step * share)
    return jnp.exp(-friction * step), noise
