"""Barostat by stochastic cell rescaling: distribution of the volume at constant pressure."""

from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.parts import part
from simkit.core.settings import arguments, flag, formula, whole
from simkit.molecular import spaces
from simkit.molecular.dynamics.method import Schedule, check_given, scheduled
from simkit.molecular.dynamics.splitting import Barostat, MidStep, key_of_step, seed

# Terms of the exponential series: exact to the last bit for a strain of 0.1 per time step, a hundred times the usual.
TERMS = 12


INTERVAL = whole("time steps from one change of the cell to the next", 1, low=1, high=1000)


@part(
    keys={"isotropic": flag("whether the cell keeps its shape", True), "interval": INTERVAL},
    values={
        "pressure": formula("pressure of the barostat", unit="energy / length^d", takes=("time",)),
        "barostat_time": formula("time constant of the barostat", unit="time", bounds=POSITIVE),
        "compressibility": formula(
            "estimate of the compressibility, which scales the barostat's time",
            unit="length^d / energy",
            bounds=NOT_NEGATIVE,
        ),
    },
)
@arguments(interval=INTERVAL)
def stochastic_cell_rescaling(
    *, pressure: Schedule | None = None, isotropic: bool = True, interval: int = 1
) -> Barostat:
    """Return Bernetti and Bussi's barostat: cell and positions rescaled by random strains e.

        isotropic:     d ln V = b (P - p) dt + sqrt(2 T b / V) dW,              b = compressibility / barostat_time
        anisotropic:   de_ab = b/d (P_ab - p delta_ab) dt + sqrt(2 T b / (d V)) dW_ab,    e symmetric

    with ``P_ab = N T / V delta_ab - stress_ab``, P its trace over d, and positions and cell multiplied by exp(e).
    Velocities stay: their part of the pressure is its mean in the bath, N T / V, as for a Monte Carlo barostat. With a
    thermostat it samples the ensemble of constant temperature T and pressure p: the density of volumes is that of the
    canonical partition function times exp(-p V / T), and the mean of the diagnostic ``pressure`` is p. An orthorhombic
    cell given by its sides stays orthorhombic. The steps of the cell are of first order: the relative error of its
    fluctuations is half the time between two of them over the relaxation time of the volume. A step evaluates the
    stress, which costs as much as the forces: with an interval of 5 to 20 time steps, nothing.

    Parameters: ``pressure`` p, energy / length^d; ``compressibility``, length^d / energy, an estimate, which sets the
    rate and not the result; ``barostat_time``, the resulting relaxation time of the pressure. Good values: a barostat
    time of 100 to 1000 time steps, longer than that of the thermostat; the anisotropic cell for crystals only, since
    that of a fluid flows until it is too flat for the cut-off. A cell that shrinks below twice the cut-off ends the run
    with the status ``CELL_TOO_SMALL``.

    Args:
        pressure: p as ``(params, time) -> number``; ``None`` for the parameter.
        isotropic: whether the cell keeps its shape.
        interval: time steps from one change of the cell to the next.

    Example:
        >>> barostat = molecular.dynamics.stochastic_cell_rescaling()
        >>> free = molecular.interactions.user_energy(lambda x, cell, params: 0.0 * jnp.sum(x))
        >>> params = {"time_step": 0.1, "mass": 1.0, "temperature": 1.0, "friction": 1.0}
        >>> params |= {"pressure": 1.0, "compressibility": 1.0, "barostat_time": 1.0}
        >>> gas = molecular.dynamics.langevin(
        ...     free,
        ...     lambda params, key: 8 * jax.random.uniform(key, (500, 3)),
        ...     params=params,
        ...     barostat=barostat,
        ...     cell=lambda params: jnp.full(3, 8.0),
        ... )
        >>> volume = float(simkit.run(gas, steps=200, every=50)["volume"][-1])
        >>> print(f"N T / p = 500, volume about {round(volume, -2):.0f}")
        N T / p = 500, volume about 500

    Reference: Bernetti, Bussi, J. Chem. Phys. 153, 114107 (2020), doi:10.1063/5.0020514; Del Tatto, Raiteri, Bernetti,
    Bussi, Appl. Sci. 12, 1139 (2022), doi:10.3390/app12031139.
    """

    def check(params: Any) -> None:
        scheduled("pressure", pressure, params)
        check_given(params, ["compressibility", "barostat_time"])

    def rescale(
        bath: jax.Array, position: jax.Array, velocity: jax.Array, cell: jax.Array, stress: jax.Array, middle: MidStep
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        count, dimension = position.shape
        volume = spaces.of_cell(cell, dimension).volume
        tensor = count * middle.temperature / volume * jnp.eye(dimension, dtype=stress.dtype) - stress
        target = middle.params["pressure"] if pressure is None else pressure(middle.params, middle.time)
        axes = 0 if isotropic else cell.ndim
        strain = _strain(key_of_step(bath, middle.iteration), tensor, target, volume, axes, middle)
        return (
            bath,
            _deformed(position, strain),
            velocity,
            _deformed(cell[None], strain)[0] if cell.ndim == 1 else _deformed(cell, strain),
        )

    return Barostat(
        check=check,
        start=seed,
        rescale=rescale,
        pressure=pressure or (lambda params, time: params["pressure"]),
        interval=interval,
    )


def _strain(
    key: jax.Array, pressure: jax.Array, target: jax.Array, volume: jax.Array, axes: int, middle: MidStep
) -> jax.Array:
    """Return a random strain of 0, 1 or 2 axes: a scalar, (d,) along the sides, or (d, d)."""
    params, dimension = middle.params, len(pressure)
    rate = middle.step * params["compressibility"] / (params["barostat_time"] * dimension)
    # Roots taken apart: where the temperature is zero, only its own derivative is infinite.
    spread = jnp.sqrt(middle.temperature) * jnp.sqrt(2 * rate / volume)
    noise = jax.random.normal(key, (dimension,) * axes, volume.dtype)
    if axes == 0:
        # The mean of d independent strains along the axes has this spread.
        return rate * (jnp.trace(pressure) / dimension - target) + spread * (noise / dimension**0.5)
    if axes == 1:
        return rate * (jnp.diagonal(pressure) - target) + spread * noise
    strain = rate * (pressure - target * jnp.eye(dimension, dtype=volume.dtype)) + spread * noise
    # Symmetric: a cell that strains without turning.
    return (strain + strain.T) / 2


def _deformed(vectors: jax.Array, strain: jax.Array) -> jax.Array:
    """Return vectors, (..., d), times the exponential of a strain: a scalar, (d,) along the axes, or (d, d)."""
    if strain.ndim < 2:
        return vectors * jnp.exp(strain)
    identity = jnp.eye(len(strain), dtype=strain.dtype)
    # Horner's scheme, as a loop: written out it takes seconds to compile.
    total = jax.lax.fori_loop(0, TERMS, lambda k, total: identity + _times(total, strain) / (TERMS - k), identity)
    return _times(vectors, total)


def _times(vectors: jax.Array, matrix: jax.Array) -> jax.Array:
    """Return ``vectors @ matrix``, written out: a matrix product may run in reduced precision on an accelerator."""
    return jnp.sum(vectors[..., :, None] * matrix, axis=-2)
