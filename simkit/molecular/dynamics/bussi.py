"""Bussi thermostat (stochastic velocity rescaling): canonical distribution of the kinetic energy."""

from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import formula
from simkit.core.simulation import Params, Simulation
from simkit.molecular.dynamics.measures import kinetic_energy, thermal_velocity
from simkit.molecular.dynamics.method import Options, Schedule
from simkit.molecular.dynamics.splitting import Barostat, MidStep, Thermostat, key_of_step, seed, thermostatted
from simkit.molecular.interactions.interaction import Interaction


@pytree
class RescalingState:
    """State of the Bussi thermostat.

    Attributes:
        seed: of all noise, uint32, (2,).
        received: energy taken up by the bath since the start, scalar.
    """

    seed: jax.Array
    received: jax.Array


@part(values={"thermostat_time": formula("time constant of the thermostat", unit="time", bounds=POSITIVE)})
def bussi(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    isolated: bool = True,
    temperature: Schedule | None = None,
    barostat: Barostat | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return dynamics with Bussi, Donadio and Parrinello's stochastic velocity rescaling, at constant temperature.

        dK = (f T/2 - K) dt/tau + 2 sqrt(K f T/2 / f) dW/sqrt(tau),    all velocities scaled alike

    solved exactly over each step: ``K' = (sqrt(c K) + sqrt((1 - c) T/2) R)^2 + (1 - c) T/2 S``, ``c = exp(-h/tau)``,
    with R normal and S the sum of f - 1 squares of normal numbers, f the degrees of freedom. It samples the canonical
    distribution (k_B = 1) and disturbs the motion little: diffusion is that of Newton's equations. The diagnostic
    ``conserved_energy``, energy of the particles plus energy taken up by the bath, does not drift. Particles without
    interaction do not exchange energy; particles at rest without force stay at rest. The conserved momentum does not
    change.

    Parameters: ``time_step`` h; ``temperature`` T, energy; ``thermostat_time`` tau; ``mass``, unless given otherwise;
    those of the barostat. Good values: a tau of 20 to 1000 time steps. Derivatives are those for the same R and S.

    Args:
        interaction: energy of the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        isolated: whether to exclude the conserved momentum from the thermal motion, see
            `simkit.molecular.dynamics.motion.motion`; false for a single particle.
        temperature: T as ``(params, time) -> number``, not negative; ``None`` for the parameter.
        barostat: from `simkit.molecular.dynamics.stochastic_cell_rescaling`.
        **options: ``cell``, ``mass``, ``velocity``, ``frozen``, ``observe``, ``measure`` and ``dimensions``, see
            `simkit.molecular.dynamics.motion.motion`.

    Raises:
        UserError: if a parameter is missing, or an argument contradicts another.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 2.0, "thermostat_time": 1.0}
        >>> start = lambda params, key: jax.random.normal(key, (1000, 2))
        >>> run = simkit.run(molecular.dynamics.bussi(spring, start, params=params), steps=200, every=200)
        >>> print(f"temperature {float(run['temperature'][-1]):.0f}")
        temperature 2
        >>> print(f"{float(run['conserved_energy'][-1] / run['conserved_energy'][0]):.2f}")
        1.00

    Reference: Bussi, Donadio, Parrinello, J. Chem. Phys. 126, 014101 (2007), doi:10.1063/1.2408420.
    """
    return thermostatted(
        interaction,
        start,
        Thermostat(("thermostat_time",), _start, _exchange, received=lambda bath: bath.received, is_canonical=True),
        params=params,
        isolated=isolated,
        temperature=temperature,
        barostat=barostat,
        **options,
    )


def _start(params: Params, key: jax.Array) -> RescalingState:
    return RescalingState(seed=seed(params, key), received=jnp.zeros_like(params["time_step"]))


def _exchange(bath: RescalingState, velocity: jax.Array, middle: MidStep) -> tuple[RescalingState, jax.Array]:
    thermal = thermal_velocity(velocity, middle.mass, middle.freedom.conserved)
    measured = kinetic_energy(thermal, middle.mass)
    is_moving = measured > 0
    kinetic = jnp.where(is_moving, measured, 1)
    normal_key, squares_key = jax.random.split(key_of_step(bath.seed, middle.iteration))
    normal = jax.random.normal(normal_key, (), kinetic.dtype)
    squares = _sum_of_squares(squares_key, middle.freedom.count - 1)
    decay = middle.step / middle.params["thermostat_time"]
    supply = -jnp.expm1(-decay) / 2
    # Roots taken apart: where the temperature is zero, only its own derivative is infinite.
    amplitude = jnp.exp(-decay / 2) * jnp.sqrt(kinetic) + jnp.sqrt(middle.temperature) * jnp.sqrt(supply) * normal
    target = amplitude**2 + supply * middle.temperature * squares
    # Velocities may change sign, as in the stochastic equation of each of them.
    factor = jnp.where(amplitude < 0, -1, 1) * jnp.sqrt(target / kinetic)
    change = jnp.where(is_moving, factor - 1, 0)
    received = bath.received - jnp.where(is_moving, target - kinetic, 0)
    return RescalingState(seed=bath.seed, received=received), velocity + change * thermal


def _sum_of_squares(key: jax.Array, count: jax.Array) -> jax.Array:
    """Draw the sum of the squares of ``count`` normal numbers; zero if there are none."""
    shape = jax.lax.stop_gradient(jnp.maximum(count, 1)) / 2
    return jnp.where(count > 0.5, 2 * jax.random.gamma(key, shape, dtype=shape.dtype), 0)
