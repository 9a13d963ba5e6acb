"""Nose-Hoover chains: deterministic thermostat that samples the canonical distribution."""

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE
from simkit.core.parts import part
from simkit.core.pytrees import pytree
from simkit.core.settings import arguments, formula, whole
from simkit.core.simulation import Params, Simulation
from simkit.molecular.dynamics.measures import kinetic_energy, thermal_velocity
from simkit.molecular.dynamics.method import Options, Schedule
from simkit.molecular.dynamics.splitting import Barostat, MidStep, Thermostat, thermostatted
from simkit.molecular.interactions.interaction import Interaction

# Suzuki's five substeps of fourth order, Phys. Lett. A 146, 319 (1990), doi:10.1016/0375-9601(90)90962-N.
OUTER = 1 / (4 - 4 ** (1 / 3))
WEIGHTS = (OUTER, OUTER, 1 - 4 * OUTER, OUTER, OUTER)


@pytree
class ChainState:
    """State of a chain of thermostats.

    Attributes:
        rate: x_j of each thermostat, 1 / time, (M,); the first is the friction of the particles.
        received: energy taken up since the start by the chain and its heat baths, scalar.
    """

    rate: jax.Array
    received: jax.Array


class Chain(NamedTuple):
    """A chain of M thermostats: the first acts on the particles, each next one on its predecessor.

        dv/dt = -x_1 v,    Q_1 dx_1/dt = 2 K - f T - Q_1 x_1 x_2
        Q_j dx_j/dt = Q_(j-1) x_(j-1)^2 - T - Q_j x_j x_(j+1)

    with ``Q_1 = f T tau^2`` and ``Q_j = T tau^2``, for a time constant tau and f degrees of freedom.

    Attributes:
        length: M.
        substeps: number of substeps per time step.
    """

    length: int
    substeps: int

    def start(self, params: Params, key: jax.Array) -> ChainState:
        """Return a chain at rest."""
        del key
        dtype = params["time_step"].dtype
        return ChainState(rate=jnp.zeros(self.length, dtype), received=jnp.zeros((), dtype))

    def exchange(self, bath: ChainState, velocity: jax.Array, middle: MidStep) -> tuple[ChainState, jax.Array]:
        """Return chain and velocities, (N, d), after one time step without forces."""
        freedom, temperature = middle.freedom.count, middle.temperature
        thermal = thermal_velocity(velocity, middle.mass, middle.freedom.conserved)
        inertia = temperature * middle.params["thermostat_time"] ** 2
        inertias = [freedom * inertia] + [inertia] * (self.length - 1)
        targets = [freedom * temperature] + [temperature] * (self.length - 1)
        kinetic = kinetic_energy(thermal, middle.mass)

        def substep(carry: tuple[jax.Array, ...], weight: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
            rates, twice_kinetic, logarithm, supplied = list(carry[0]), carry[1], carry[2], carry[3]
            step = weight * middle.step / self.substeps

            def kick(j: int) -> None:
                driving = (twice_kinetic if j == 0 else inertias[j - 1] * rates[j - 1] ** 2) - targets[j]
                # A quarter step of the friction by the next thermostat on each side of the kick.
                damping = jnp.exp(-step / 4 * rates[j + 1]) if j + 1 < self.length else 1
                rates[j] = (rates[j] * damping + step / 2 * driving / inertias[j]) * damping

            for j in reversed(range(self.length)):
                kick(j)
            logarithm = logarithm - step * rates[0]
            twice_kinetic = twice_kinetic * jnp.exp(-2 * step * rates[0])
            supplied = supplied + step * sum(w * rate for w, rate in zip(targets, rates, strict=True))
            for j in range(self.length):
                kick(j)
            return (jnp.stack(rates), twice_kinetic, logarithm, supplied), None

        zero = jnp.zeros_like(kinetic)
        weights = jnp.asarray(WEIGHTS * self.substeps, middle.step.dtype)
        (rate, _, logarithm, supplied), _ = jax.lax.scan(substep, (bath.rate, 2 * kinetic, zero, zero), weights)
        gained = jnp.sum(jnp.stack(inertias) * (rate**2 - bath.rate**2)) / 2
        received = bath.received + gained + supplied
        return ChainState(rate=rate, received=received), velocity + jnp.expm1(logarithm) * thermal


CHAIN = whole("thermostats of the chain", 3, low=1, high=16)


@part(
    keys={"chain": CHAIN},
    values={"thermostat_time": formula("time constant of the chain", unit="time", bounds=POSITIVE)},
)
@arguments(chain=CHAIN, substeps=whole("substeps of the chain per time step", low=1))
def nose_hoover(
    interaction: Interaction,
    start: Callable[[Params, jax.Array], jax.Array],
    *,
    params: dict[str, Any],
    isolated: bool = True,
    chain: int = 3,
    substeps: int = 1,
    temperature: Schedule | None = None,
    barostat: Barostat | None = None,
    **options: Unpack[Options],
) -> Simulation:
    """Return dynamics with a Nose-Hoover chain, deterministic and time-reversible, at constant temperature.

        m x'' = F(x) - x_1 m x',    Q_1 dx_1/dt = 2 K - f T - Q_1 x_1 x_2,    ...

    (`Chain`) with ``Q_1 = f T tau^2`` and ``Q_j = T tau^2``. It samples the canonical distribution (k_B = 1) if the
    motion is chaotic; particles without interaction share one friction and need not equilibrate. Of second order; the
    diagnostic ``conserved_energy``, ``K + U + sum Q_j x_j^2 / 2 + integral of (f x_1 + x_2 + ...) T dt``, oscillates by
    ``O(h^2)`` and does not drift. The conserved momentum does not change and is not among the f degrees of freedom.

    Parameters: ``time_step`` h; ``temperature`` T, energy, positive; ``thermostat_time`` tau; ``mass``, unless given
    otherwise; those of the barostat. Good values: a tau of 20 time steps or more, near the period of a typical
    vibration.

    Args:
        interaction: energy of the particles; its force should be continuous, also at the cut-off.
        start: ``(params, key) -> position``, (N, d).
        params: the default parameters.
        isolated: whether to exclude the conserved momentum from the thermal motion, see
            `simkit.molecular.dynamics.motion.motion`; false for a single particle.
        chain: number of thermostats; 1 is the Nose-Hoover thermostat.
        substeps: of the chain per time step; more than one for a tau below 10 time steps.
        temperature: T as ``(params, time) -> number``, positive; ``None`` for the parameter.
        barostat: from `simkit.molecular.dynamics.stochastic_cell_rescaling`.
        **options: ``cell``, ``mass``, ``velocity``, ``frozen``, ``observe``, ``measure`` and ``dimensions``, see
            `simkit.molecular.dynamics.motion.motion`.

    Raises:
        UserError: if a parameter is missing, or an argument is out of its range or contradicts another.

    Example:
        >>> spring = molecular.interactions.user_energy(lambda x, cell, params: jnp.sum(x**2) / 2)
        >>> params = {"time_step": 0.05, "mass": 1.0, "temperature": 1.0, "thermostat_time": 1.0}
        >>> start = lambda params, key: jax.random.normal(key, (1000, 2))
        >>> run = simkit.run(molecular.dynamics.nose_hoover(spring, start, params=params), steps=200, every=200)
        >>> print(f"{float(run['conserved_energy'][-1] / run['conserved_energy'][0]):.3f}")
        1.000

    Reference: Martyna, Klein, Tuckerman, J. Chem. Phys. 97, 2635 (1992), doi:10.1063/1.463940; Martyna, Tuckerman,
    Tobias, Klein, Mol. Phys. 87, 1117 (1996), doi:10.1080/00268979600100761.
    """
    thermostats = Chain(chain, substeps)
    thermostat = Thermostat(
        ("thermostat_time",),
        thermostats.start,
        thermostats.exchange,
        received=lambda bath: bath.received,
        is_canonical=True,
        caution="a Nose-Hoover chain samples the canonical distribution only where the motion is chaotic",
    )
    return thermostatted(
        interaction,
        start,
        thermostat,
        params=params,
        isolated=isolated,
        temperature=temperature,
        barostat=barostat,
        **options,
    )
