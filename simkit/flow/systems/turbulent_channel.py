"""Turbulent flow between two plane walls in three dimensions, with its statistics."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.settings import arguments, several, word
from simkit.core.simulation import Params, Simulation, described
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.diagnosis.measures import courant_number, flow_quantities, kinetic_energy, mean_velocity
from simkit.flow.diagnosis.statistics import ChannelStatistics, with_statistics
from simkit.flow.equations import Equations
from simkit.flow.grid import CELLS, LENGTH, Grid, Velocity, bounded_axis, like, periodic_axis
from simkit.flow.operators.differences import divergence, gradient
from simkit.flow.operators.diffusion import shear
from simkit.flow.solvers.pressure import pressure_solver
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

DRIVES = ("pressure_gradient", "flow_rate")
# Numbers of waves of the initial disturbance along x and z, and along y.
WAVES_ALONG, WAVES_ACROSS = 3, 3


# Between plan and section, and distance of the plan from the wall in wall units, where streaks are strongest.
GAP, STREAKS = 0.35, 15.0


PARAMETERS = {
    "friction_reynolds": Parameter(
        180.0,
        POSITIVE,
        "1",
        "Reynolds number u_tau h / nu of the friction velocity that the pressure gradient sustains",
    ),
    "perturbation": Parameter(2.0, unit="u_tau", doc="root-mean-square speed of the random waves at the start"),
    "time_step": Parameter(0.004, POSITIVE, "h/u_tau", "time step; keep courant_number below 1.7"),
}
# Additional parameter if the flow rate is prescribed.
FLOW_RATE = {"bulk_velocity": Parameter(15.7, unit="u_tau", doc="flow rate per unit area")}


@described(
    flow_quantities("h", "u_tau"),
    w=("u_tau", "velocity across the plane shown"),
    slices=(
        "u_tau",
        "velocity along x, in a plan at 15 wall units and in a section above it",
    ),
    mean_velocity=("u_tau", "mean velocity along x"),
    reynolds_stress_uu=("u_tau^2", "variance of u"),
    reynolds_stress_vv=("u_tau^2", "variance of v"),
    reynolds_stress_ww=("u_tau^2", "variance of w"),
    reynolds_stress_uv=("u_tau^2", "covariance of u and v"),
    shear_stress=("u_tau^2", "shear stress, viscous and turbulent, over density"),
    dissipation=("u_tau^3/h", "dissipation by the fluctuations"),
    friction_velocity=("u_tau", "friction velocity of the mean flow"),
    friction_reynolds=("1", "friction Reynolds number of the mean flow"),
    mean_bulk_velocity=("u_tau", "mean flow rate per unit area"),
    mean_dissipation=("u_tau^3/h", "mean dissipation"),
    mean_wall_shear_stress=("u_tau^2", "mean shear stress on the walls over density"),
    wall_shear_stress=("u_tau^2", "shear stress on the walls over density"),
)
@arguments(
    cells=several(CELLS, "cells along, across and in span", (3,)),
    lengths=several(LENGTH, "periods along and in span, in half-widths", (2,)),
    drive=word("what drives the flow", tuple(DRIVES)),
)
def turbulent_channel(
    *,
    cells: tuple[int, int, int] = (32, 48, 32),
    lengths: tuple[float, float] = (math.pi, 0.34 * math.pi),
    stretching: float = 1.7,
    drive: str = "pressure_gradient",
    wall_slope: str = "parabola",
    sample_every: int = 5,
    settle: int = 400,
) -> Simulation:
    """Return turbulent flow between two plane walls, its means and Reynolds stresses.

        du/dt + div(u u) = -grad(p) + 1/Re_tau laplacian(u) + (G, 0, 0),   div(u) = 0,
        u = 0 at y = -1 and y = 1,   everything periodic in x and z

    The unit of length is the half-width h, that of velocity the friction velocity u_tau that the pressure gradient
    G = 1 sustains. The drive is either that gradient, or a constant flow rate, for which G is found in every step. The
    flow starts as Reichardt's mean profile with random waves, which break down to turbulence within a few units of
    time. A box about 560 wide and 190 deep in wall units, the default, is the smallest that stays turbulent.

    One step is ``sample_every`` time steps and one sample. Statistics are those of all samples after the first
    ``settle``; until then they are NaN. See `simkit.flow.diagnosis.statistics.ChannelStatistics`.

    Re_tau is the parameter ``friction_reynolds``; where ``drive`` is "flow_rate", the parameter ``bulk_velocity`` is
    held. All of `PARAMETERS` may be swept and differentiated, but in a chaotic flow derivatives say little after a few
    units of time.

    Diagnostics, besides those that explain themselves and those of the statistics:
        bulk_velocity: flow rate per unit area.
        wall_shear_stress: mean over both walls, divided by density.
        pressure_gradient: G.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells: number of cells along x, y and z, each at least 4. In wall units of 1/Re_tau cells should be 18 by 2 (at
            the wall; 15 in the middle) by 6, or less.
        lengths: periods along x and z.
        stretching: of the cells across, see `bounded_axis`.
        drive: "pressure_gradient" or "flow_rate".
        wall_slope: "parabola", or "symmetric", with which fluctuations are nearer to the published ones on these cells;
            see `simkit.flow.boundary.domain.Domain`.
        sample_every: time steps between samples.
        settle: samples to leave out at the start.

    Raises:
        UserError: if the configuration is not of that kind; before a run, if the time step is above the limit of
            stability.

    Example:
        >>> channel = flow.turbulent_channel(cells=(8, 16, 8), sample_every=1, settle=0)
        >>> run = simkit.run(channel, steps=2, every=2)
        >>> print(f"G = {float(run['pressure_gradient'][-1]):.2f}, largest div u {float(run['divergence'][-1]):.3f}")
        G = 1.00, largest div u 0.000

    References: Moser, Kim and Mansour, Phys. Fluids 11, 943 (1999), doi:10.1063/1.869966; the smallest box, Jimenez and
    Moin, J. Fluid Mech. 225, 213 (1991), doi:10.1017/S0022112091002033.
    """
    axes = (
        periodic_axis(cells[0], lengths[0]),
        bounded_axis(cells[1], 2.0, -1.0, stretching),
        periodic_axis(cells[2], lengths[1]),
    )
    walls = domain(axes, (None, ("wall", "wall"), None), wall_slope)
    grid, held = walls.grid, drive == "flow_rate"
    equations = Equations(
        domain=walls,
        viscosity=_viscosity,
        time_step=fixed_time_step,
        force=None if held else lambda velocity, scalar, params, time: (1.0, 0.0, 0.0),
        flow_rate=(lambda params, time: params["bulk_velocity"]) if held else None,
        method="runge_kutta",
        implicit=(1,),
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        waves = random_waves(grid, key, params["perturbation"].dtype)
        profile = reichardt(like(waves[0], 1 - np.abs(axes[1].centers)), params["friction_reynolds"])
        u, v, w = (params["perturbation"] * f for f in waves)
        velocity = (u + profile[None, :, None], v, w)
        if held:
            velocity = (velocity[0] + params["bulk_velocity"] - mean_velocity(velocity, 0, grid), v, w)
        return start(velocity, params)

    def observe(state: FlowState, params: Params) -> dict[str, jax.Array]:
        del params
        u, _, w = state.velocity
        section, plan = u[:, :, 0], u[:, layer]
        # The gap repeats the adjacent layers, since pictures are interpolated.
        slices = jnp.concatenate([plan, plan[:, -1:], section[:, :1], section], axis=1)
        return {"u": section, "w": w[:, :, 0], "slices": slices}

    def diagnose(state: FlowState, params: Params) -> dict[str, jax.Array]:
        slopes = shear(state.velocity[0], 0, 1, no_motion(walls), walls).mean(axis=(0, 2))
        return {
            "time": state.time[0],
            "bulk_velocity": mean_velocity(state.velocity, 0, grid),
            "wall_shear_stress": (slopes[0] - slopes[-1]) / (2 * params["friction_reynolds"]),
            "pressure_gradient": state.drive if held else jnp.ones_like(state.drive),
            "kinetic_energy": kinetic_energy(state.velocity, grid),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        # The mean velocity at mid-height, to which turbulence adds.
        speed = (float(reichardt(1.0, params["friction_reynolds"])), 0.0, 0.0)
        time_step, viscosity = float(params["time_step"]), float(_viscosity(params))
        check_time_step(time_step, speed, viscosity, walls, equations.method, equations.explicit)

    usual = float(PARAMETERS["friction_reynolds"].default)
    layer = int(np.argmin(np.abs(1 + axes[1].centers - STREAKS / usual)))
    # The section stands on the plan; the gap between them has two layers.
    width, middle = lengths[1], lengths[1] + GAP + 1
    rows = [axes[2].centers, width + GAP * np.array([0.25, 0.75]), middle + axes[1].centers]
    ticks = [(0.0, 0.0), (width, width), *((middle + y, y) for y in (-1.0, 0.0, 1.0))]
    simulation = Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS | (FLOW_RATE if held else {}),
        dimensions={"u": ("x", "y"), "w": ("x", "y"), "slices": ("x", "y_drawn")},
        coordinates={
            "x": axes[0].centers,
            "y_drawn": np.concatenate(rows),
            "y_widths": axes[1].widths,
            "y_gap_drawn": np.array([width, width + GAP]),
            "y_gap_sides": np.array(["periodic", "wall"]),
            "y_ticks_drawn": np.array(ticks),
            "axis_labels_drawn": np.array(["$x$", "$z$, plan | $y$, section"]),
            "sides": walls.drawn_sides(),
            "sides_drawn": np.array(["periodic", "periodic", "periodic", "wall"]),
        },
        check=check,
    )
    expected = np.asarray(reichardt(1 - np.abs(axes[1].centers), usual), dtype=np.float64)
    statistics = ChannelStatistics(walls, _viscosity, reference=expected)
    return with_statistics(simulation, statistics, every=sample_every, skip=settle)


def reichardt(distance: jax.Array | np.ndarray | float, friction_reynolds: jax.Array | float) -> jax.Array:
    """Return Reichardt's mean velocity of turbulent flow at a distance from the wall.

        U+ = ln(1 + 0.4 y+)/0.4 + 7.8 (1 - exp(-y+/11) - y+/11 exp(-0.33 y+)),   y+ = distance Re_tau

    Args:
        distance: from the wall, unit h.
        friction_reynolds: Re_tau.

    Reference: Reichardt, Z. Angew. Math. Mech. 31, 208 (1951), doi:10.1002/zamm.19510310704.
    """
    y = distance * friction_reynolds
    return jnp.log1p(0.4 * y) / 0.4 + 7.8 * (1 - jnp.exp(-y / 11) - y / 11 * jnp.exp(-0.33 * y))


def random_waves(grid: Grid, key: jax.Array, dtype: jnp.dtype) -> Velocity:
    """Return long random waves with no divergence, none on the walls, and root-mean-square speed 1.

    Each component is a sum of ``sin(pi s) sin(pi q s)`` across, q from 1 to 3, times waves of up to 3 periods along x
    and z, with normal amplitudes; the gradient that makes them solenoidal is then taken away.

    Args:
        grid: periodic along x and z, bounded along y.
        key: random key.
        dtype: floating-point type of the velocity.
    """
    across = grid.axes[1]

    def along(positions: np.ndarray, length: float) -> np.ndarray:
        phases = 2 * math.pi / length * np.arange(1, WAVES_ALONG + 1) * positions[:, None]
        return np.concatenate([np.ones((len(positions), 1)), np.cos(phases), np.sin(phases)], axis=1)

    components = []
    for i, one in enumerate(jax.random.split(key, 3)):
        x, y, z = (axis.points if j == i else axis.centers for j, axis in enumerate(grid.axes))
        s = math.pi * (y - across.faces[0])[:, None] / across.length
        profiles = np.sin(s) * np.sin(s * np.arange(1, WAVES_ACROSS + 1))
        bases = along(x, grid.axes[0].length), profiles, along(z, grid.axes[2].length)
        amplitudes = jax.random.normal(one, [basis.shape[1] for basis in bases], dtype)
        f = jnp.einsum("xa,yb,zc,abc->xyz", *(like(amplitudes, b) for b in bases), amplitudes, precision="highest")
        components.append(f.at[:, jnp.array([0, -1])].set(0) if i == 1 else f)
    pressure = pressure_solver(grid)(divergence(tuple(components), grid))
    velocity = jax.tree.map(jnp.subtract, tuple(components), gradient(pressure, grid))
    scale = jnp.sqrt(2 * kinetic_energy(velocity, grid))
    return tuple(f / scale for f in velocity)


def _viscosity(params: Params) -> jax.Array:
    return 1 / params["friction_reynolds"]
