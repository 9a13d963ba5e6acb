"""Turbulence in the plane, driven by Kolmogorov's force, on the Fourier modes of jax-cfd."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE, Parameter
from simkit.core.settings import arguments, whole
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.flow.diagnosis.measures import flow_quantities
from simkit.flow.grid import MAX_CELLS
from simkit.flow.jax_cfd import from_jax_cfd_spectral, load

# The eddies of the start are about 2 pi / 4 wide.
STARTING_WAVE_NUMBER = 4.0


PARAMETERS = {
    "viscosity": Parameter(
        0.001,
        NOT_NEGATIVE,
        "1",
        "kinematic viscosity nu; the lower it is, the finer the vorticity filaments, and the more cells are needed",
    ),
    "forcing": Parameter(1.0, unit="1", doc="amplitude of the force per mass, F sin(k y) along x"),
    "drag": Parameter(0.1, NOT_NEGATIVE, "1", "rate at which friction with the ground slows the whole flow"),
    "initial_speed": Parameter(1.0, unit="1", doc="root-mean-square speed of the random eddies at the start"),
    "time_step": Parameter(0.004, POSITIVE, "1", "time step; keep courant_number below 1"),
}


@described(
    flow_quantities(),
    enstrophy=("1", "mean of half the squared vorticity"),
    energy_input=("1", "power of the force per unit mass"),
    dissipation=("1", "dissipation by viscosity per unit mass"),
    drag_loss=("1", "power of the drag per unit mass"),
    energy_rate=("1", "rate of the kinetic energy"),
    energy_imbalance=("1", "rate of the energy less its sources and sinks"),
)
@arguments(
    cells=whole("cells along each side", low=16, high=MAX_CELLS, is_even=True), wave_number=whole("of the force", low=1)
)
def kolmogorov_turbulence(*, cells: int = 256, wave_number: int = 4) -> Simulation:
    """Return the flow that a force of one wave number drives in a periodic square of side 2 pi.

        du/dt + (u . grad) u = -grad(p) + nu laplacian(u) - alpha u + (F sin(k y), 0),   div(u) = 0

    It starts from random eddies. While the laminar flow ``u = U sin(k y), U = F / (nu k^2 + alpha)`` has a Reynolds
    number ``U / (nu k)`` below sqrt(2), it is what remains. Far above, the flow is turbulent: vortices merge and grow,
    and the drag alpha takes the energy that piles up in the largest ones.

    The equations are those of `jax_cfd.spectral.equations.NavierStokes2D`: vorticity in Fourier modes, products by the
    2/3 rule, Williamson's Runge-Kutta method of third order for advection and force, Crank-Nicolson for
    viscosity and drag. Lengths and times have no unit.

    nu is the parameter ``viscosity``, F ``forcing`` and alpha ``drag``; all of `PARAMETERS` may be swept and
    differentiated.

    Diagnostics, besides those that explain themselves, per unit mass:
        energy_input: power of the force, ``F <u sin(k y)>``.
        dissipation: by viscosity, ``nu <vorticity^2>``.
        drag_loss: ``2 alpha E``.
        energy_rate: dE/dt by the discrete equations.
        energy_imbalance: ``energy_rate - (energy_input - dissipation - drag_loss)``; what advection adds. Small as long
            as the shortest waves are resolved.

    Args:
        cells: points along each side, even, at least 16. Good values: 256 at nu = 1e-3; 128 shows ripples there.
        wave_number: k, from 1 to a quarter of the points.

    Raises:
        UserError: if an argument is out of its range.

    Example:
        >>> square = flow.kolmogorov_turbulence(cells=16, wave_number=1)
        >>> run = simkit.run(square, steps=400, every=400, viscosity=1.0, drag=0.0, forcing=1.0, time_step=0.05)
        >>> print(f"{float(run['u'][-1].max()):.3f}, laminar F / (nu k^2) = 1")
        1.000, laminar F / (nu k^2) = 1

    References: Kochkov et al., PNAS 118, e2101784118 (2021), doi:10.1073/pnas.2101784118; Boffetta and Ecke, Annu. Rev.
    Fluid Mech. 44, 427 (2012), doi:10.1146/annurev-fluid-120710-101240; Meshalkin and Sinai, J. Appl. Math. Mech. 25,
    1700 (1961), for the limit of stability.
    """
    whole("of the force", low=1, high=cells // 4).check(wave_number, "wave_number")  # a wave of at least four cells
    base, spectral = load("base"), load("spectral")
    grid = base.grids.Grid((cells, cells), domain=((0, 2 * math.pi), (0, 2 * math.pi)))

    def force(params: Params) -> Any:
        # At the points themselves, where the vorticity is.
        here = ((0.0, 0.0), (0.0, 0.0))
        return lambda grid: base.forcings.kolmogorov_forcing(grid, params["forcing"], wave_number, offsets=here)

    def equation(params: Params) -> Any:
        return spectral.equations.NavierStokes2D(
            params["viscosity"], grid, drag=params["drag"], forcing_fn=force(params)
        )

    def step(vorticity_hat: jax.Array, params: Params) -> jax.Array:
        advance = spectral.time_stepping.crank_nicolson_rk3(equation(params), params["time_step"])
        return advance(vorticity_hat)

    def velocity(vorticity_hat: jax.Array) -> tuple[jax.Array, jax.Array]:
        u, v = spectral.utils.vorticity_to_velocity(grid)(vorticity_hat)
        return jnp.fft.irfftn(u), jnp.fft.irfftn(v)

    def initial(params: Params, key: jax.Array) -> jax.Array:
        kx, ky = grid.rfft_mesh()
        wave = 2 * jnp.pi * jnp.sqrt(kx**2 + ky**2)
        noise = jnp.fft.rfftn(jax.random.normal(key, grid.shape, params["initial_speed"].dtype))
        eddies = noise * wave * jnp.exp(-((wave / STARTING_WAVE_NUMBER) ** 2))
        u, v = velocity(eddies)
        return params["initial_speed"] * eddies / jnp.sqrt(jnp.mean(u**2 + v**2))

    def diagnose(vorticity_hat: jax.Array, params: Params) -> Arrays:
        u, v = velocity(vorticity_hat)
        terms = equation(params)
        du, dv = velocity(terms.explicit_terms(vorticity_hat) + terms.implicit_terms(vorticity_hat))
        rate = jnp.mean(u * du + v * dv)
        _, y = grid.axes((0.0, 0.0))
        gained = params["forcing"] * jnp.mean(u * jnp.sin(wave_number * y))
        dissipated = params["viscosity"] * jnp.mean(jnp.fft.irfftn(vorticity_hat) ** 2)
        dragged = params["drag"] * jnp.mean(u**2 + v**2)
        return {
            "energy_input": gained,
            "dissipation": dissipated,
            "drag_loss": dragged,
            "energy_rate": rate,
            "energy_imbalance": rate - (gained - dissipated - dragged),
        }

    return from_jax_cfd_spectral(step, grid, initial, PARAMETERS, diagnose=diagnose)
