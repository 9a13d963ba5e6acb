"""Plane channel flow by jax-cfd's finite volumes: an example of a simulation made of its step functions."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.settings import arguments, several
from simkit.core.simulation import Arrays, Params, Simulation, described
from simkit.errors import UserError
from simkit.flow.diagnosis.measures import flow_quantities, interpolate
from simkit.flow.eddies import random_eddies
from simkit.flow.grid import CELLS, LENGTH, Grid, bounded_axis, periodic_axis
from simkit.flow.jax_cfd import from_jax_cfd, load

PARAMETERS = {
    "reynolds": Parameter(
        1000.0, POSITIVE, "1", "bulk Reynolds number U h / nu of the flow that the force sustains at forcing = 1"
    ),
    "forcing": Parameter(1.0, unit="3 U^2 / (h reynolds)", doc="force per mass along the channel; 1 sustains U"),
    "initial_velocity": Parameter(1.0, unit="U", doc="mean velocity of the parabola at the start"),
    "perturbation": Parameter(0.3, unit="U", doc="root-mean-square speed of the random eddies at the start"),
    "time_step": Parameter(0.01, POSITIVE, "h/U", "time step; keep courant_number below 0.5"),
}


@described(flow_quantities("h", "U"))
@arguments(cells=several(CELLS, "cells along and across the channel", (2,)), length=LENGTH)
def jax_cfd_channel(*, cells: tuple[int, int] = (128, 64), length: float = 6.0) -> Simulation:
    """Return flow between two walls at y = -1 and 1, periodic along x, by jax-cfd.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u) + (3 F/Re, 0),   div(u) = 0

    The unit of length is the half-width h, the unit of velocity the mean velocity U that the force sustains at F = 1.
    The flow starts as ``u = 3/2 U0 (1 - y^2)`` and random eddies, which are sheared and die below Re = 3848;
    ``u = 3/2 F (1 - y^2)`` remains.

    One step is that of `jax_cfd.base.equations.semi_implicit_navier_stokes`: explicit advection by van Leer's scheme
    and explicit friction, of first order in time, then a projection by fast diagonalization. It makes the velocity
    half a cell outside a wall the negative of that half a cell inside, so that the steady flow on n equal cells is
    ``u = 3/2 F (1 + 1/n^2 - y^2)``, with the mean velocity ``F (1 + 2/n^2)``.

    F is the parameter ``forcing`` and U0 ``initial_velocity``; all of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        bulk_velocity: flow rate per unit area.
        divergence: its largest absolute value, that of the topmost row of cells, which jax-cfd leaves there.

    Args:
        cells: number of cells along and across the channel, each at least 4.
        length: period of the flow along the channel, unit h.

    Raises:
        UserError: if the configuration is not of that kind.

    Example:
        >>> channel = flow.jax_cfd_channel(cells=(16, 16))
        >>> run = simkit.run(channel, steps=1000, every=1000, reynolds=5.0, perturbation=0.0)
        >>> print(f"{float(run['bulk_velocity'][-1]):.3f}, by hand 1 + 2/n^2 = {1 + 2 / 16**2:.3f}")
        1.008, by hand 1 + 2/n^2 = 1.008

    References: Kochkov et al., PNAS 118, e2101784118 (2021), doi:10.1073/pnas.2101784118; van Leer, J. Comput. Phys.
    14, 361 (1974), doi:10.1016/0021-9991(74)90019-9; Orszag, J. Fluid Mech. 50, 689 (1971),
    doi:10.1017/S0022112071002842, for the limit of stability.
    """
    base = load("base")
    parameters = Grid((periodic_axis(cells[0], length), bounded_axis(cells[1], 2.0, -1.0)))
    grid = base.grids.Grid(tuple(cells), domain=((0.0, length), (-1.0, 1.0)))
    walls = base.boundaries.channel_flow_boundary_conditions(2)
    heights = parameters.axes[1].centers

    def initial(params: Params, key: jax.Array) -> Any:
        u, v = (params["perturbation"] * w for w in random_eddies(parameters, key, params["perturbation"].dtype))
        u = u + 1.5 * params["initial_velocity"] * (1 - jnp.asarray(heights, u.dtype) ** 2)
        # jax-cfd keeps no velocity on the lower wall.
        return tuple(
            walls.impose_bc(base.grids.GridArray(array, face, grid))
            for array, face in zip((u, v[:, 1:]), grid.cell_faces, strict=True)
        )

    def step(velocity: Any, params: Params) -> Any:
        force = 3 * params["forcing"] / params["reynolds"]

        def push(velocity: Any) -> Any:
            strengths = force, jnp.zeros_like(force)
            return tuple(
                base.grids.GridArray(jnp.broadcast_to(strength, u.shape), u.offset, grid)
                for strength, u in zip(strengths, velocity, strict=True)
            )

        def convect(velocity: Any) -> Any:
            return tuple(base.advection.advect_van_leer(u, velocity, params["time_step"]) for u in velocity)

        advance = base.equations.semi_implicit_navier_stokes(
            density=1.0,
            viscosity=1 / params["reynolds"],
            dt=params["time_step"],
            grid=grid,
            convect=convect,
            forcing=push,
            pressure_solve=base.pressure.solve_fast_diag_channel_flow,
        )
        return advance(velocity)

    def diagnose(velocity: Any, params: Params) -> Arrays:
        profile = velocity[0].data.mean(axis=0)
        return {"bulk_velocity": profile.mean(), "centerline_velocity": interpolate(profile, 0.0, parameters.axes[1])}

    def check(params: Params, key: jax.Array) -> None:
        del key
        values = {name: float(value) for name, value in jax.device_get(params).items()}
        fastest = 1.5 * max(abs(values["forcing"]), abs(values["initial_velocity"]))
        rates = {
            "advection": fastest / grid.step[0],
            "explicit friction": sum(2 / width**2 for width in grid.step) / values["reynolds"],
        }
        reason = max(rates, key=lambda name: rates[name])
        if values["time_step"] * rates[reason] > 1:
            raise UserError(
                f"time_step = {values['time_step']:g} is above the stability limit of {reason} on this grid, "
                f"{1 / rates[reason]:.3g}; choose a smaller one, or fewer cells"
            )

    simulation = from_jax_cfd(step, grid, initial, PARAMETERS, diagnose=diagnose)
    return dataclasses.replace(simulation, check=check)
