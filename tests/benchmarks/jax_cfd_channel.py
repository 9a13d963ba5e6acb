"""jax-cfd's channel flow, made to run on today's JAX by our adapter: a peer for the benchmarks.

It has one advection scheme that works between walls, `advect_van_leer`; its fastest pressure solver there is the one
by eigenvectors. Walls are at y = -1 and y = 1, every other axis is periodic; lengths are in half-widths.
"""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Velocity = Any
Step = Callable[[Velocity], Velocity]
Start = Callable[..., tuple[np.ndarray, ...]]
WALLS = (-1.0, 1.0)


def channel(
    cells: tuple[int, ...],
    lengths: tuple[float, ...],
    *,
    viscosity: float = 1e-3,
    force: float = 3e-3,
    time_step: float = 1e-3,
    start: Start | None = None,
) -> tuple[Velocity, Step]:
    """Return jax-cfd's channel in float32: its velocity at the start, and an Euler step, which is not compiled yet.

    Of its time steppers that is the fastest, with one projection a step.

    Args:
        cells: number of cells ``(nx, ny)`` or ``(nx, ny, nz)``.
        lengths: periods along x and z.
        viscosity: kinematic.
        force: that drives the flow along x, per mass.
        time_step: its own stability asks for a Courant number below one half.
        start: ``(x, y) -> (u, v)``, or with z and w, of arrays; default: Poiseuille flow and noise. It is projected.
    """
    from simkit.flow.jax_cfd import on_current_jax

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax_cfd.base as cfd
    domain = ((0.0, lengths[0]), WALLS, (0.0, lengths[-1]))[: len(cells)]
    grid = cfd.grids.Grid(cells, domain=domain)
    conditions = cfd.boundaries.channel_flow_boundary_conditions(grid.ndim)
    pressure_solve = cfd.pressure.solve_fast_diag_channel_flow

    def convect(velocity: Velocity) -> Any:
        return tuple(cfd.advection.advect_van_leer(u, velocity, time_step) for u in velocity)

    def driven(velocity: Velocity) -> Any:
        strengths = (force, *[0.0] * (grid.ndim - 1))
        return tuple(
            cfd.grids.GridArray(jnp.full_like(u.data, f), u.offset, grid)
            for u, f in zip(velocity, strengths, strict=True)
        )

    with on_current_jax():
        advance = cfd.equations.semi_implicit_navier_stokes(
            density=1.0,
            viscosity=viscosity,
            dt=time_step,
            grid=grid,
            convect=convect,
            forcing=driven,
            pressure_solve=pressure_solve,
            time_stepper=cfd.time_stepping.forward_euler,
        )

    def step(velocity: Velocity) -> Velocity:
        with on_current_jax():
            return advance(velocity)

    arrays = []
    for axis, offset in enumerate(grid.cell_faces):
        axes = [
            low + (np.arange(n) + part) * width
            for n, part, width, (low, _) in zip(cells, offset, grid.step, domain, strict=True)
        ]
        component = (start or _poiseuille_and_noise)(*np.meshgrid(*axes, indexing="ij"))[axis]
        arrays.append(cfd.grids.GridArray(jnp.asarray(component, jnp.float32), offset, grid))
    with on_current_jax():
        return cfd.pressure.projection(tuple(map(conditions.impose_bc, arrays)), pressure_solve), step


def tollmien_schlichting(wave: Start, reynolds: float, time_step: float) -> tuple[Velocity, Step]:
    """Return jax-cfd's velocity and step for Poiseuille flow ``u = 1 - y^2`` that carries a small wave.

    With 128 x 128 cells and a time step of 0.025 it is the cheapest of those tried that bring the growth rate over 50
    time units at Re = 7500 within 10 % of the exact one. Its fluxes hold the correction of Lax and Wendroff for an
    Euler step, so smaller time steps and steppers of higher order are further off (9.9 % at 0.025, 12 % at 0.03, 15 %
    at 0.01, 39 % at 0.02 with ``heun_rk2``).

    Args:
        wave: ``(x, y) -> (u, v)`` of one period, without divergence, no slip, largest speed about one.
        reynolds: from the speed in the middle and the half-width.
        time_step: constant.
    """

    def start(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        u, v = wave(x, y)
        return 1 - y**2 + 1e-3 * u, 1e-3 * v

    fluid = {"viscosity": 1 / reynolds, "force": 2 / reynolds, "time_step": time_step}
    return channel((128, 128), (2 * np.pi,), start=start, **fluid)


def wave_energy(velocity: Velocity) -> jax.Array:
    """Return the mean energy of what varies along x; its logarithm grows at twice the growth rate of a wave."""
    u, v = (component.data - jnp.mean(component.data, axis=0) for component in velocity)
    return (jnp.mean(u**2) + jnp.mean(v**2)) / 2


def _poiseuille_and_noise(*places: np.ndarray) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal((len(places), *places[0].shape))
    return 1.5 * (1 - places[1] ** 2) + noise[0], *noise[1:]
