"""Flow around a circular cylinder between two walls: the benchmark of Schäfer and Turek."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.flow.arrays import like
from simkit.flow.boundary.domain import domain
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.diagnosis.measures import courant_number, speed, vorticity
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import coordinates_along, refined_axis
from simkit.flow.obstacles.immersed_boundary import points_around
from simkit.flow.obstacles.methods import body_in
from simkit.flow.obstacles.shapes import ball
from simkit.flow.obstacles.surface import surface_pressure
from simkit.flow.operators.differences import curl, divergence
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

LENGTH, HEIGHT = 22.0, 4.1
CENTER = (2.0, 2.0)
# Extent of the region of smallest cells around the default center: upstream, downstream, below and above.
FINE = (0.7, 0.8), (0.7, 0.7)


PARAMETERS = {
    "reynolds": Parameter(
        100.0, POSITIVE, "1", "Reynolds number U D / nu of the mean inflow; below about 50 the flow becomes steady"
    ),
    "center_x": Parameter(2.0, unit="D", doc="distance of the center from the inflow"),
    "center_y": Parameter(2.0, unit="D", doc="height of the center; the channel is 4.1 high"),
    "diameter": Parameter(1.0, unit="D", doc="of the cylinder, which is 1 in the benchmark"),
    "spin": Parameter(0.0, unit="U/D", doc="rate at which the cylinder turns, counterclockwise"),
    "disturbance": Parameter(
        0.5, unit="U", doc="amplitude of a cross flow behind the cylinder at the start, which makes it shed soon"
    ),
    "time_step": Parameter(0.02, POSITIVE, "D/U", "time step; keep courant_number below 1"),
}


@described(flow_quantities("D", "U"))
def cylinder_in_channel(
    *, cells_per_diameter: int = 20, growth: float = 0.015, method: str = "immersed_boundary", pulse: float = 0.0
) -> Simulation:
    """Return the flow around a cylinder, a little off the middle of a channel, from a parabolic inflow.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u),   div(u) = 0

    The unit of length is the diameter, 0.1 in the benchmark, that of velocity the mean U of the inflow. So the channel
    is 22 long and 4.1 high, with the center of the cylinder at (2, 2). At Re = 20 the flow becomes steady; at Re = 100
    the cylinder sheds vortices.

    All of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        drag_coefficient, lift_coefficient: ``2 F/(U^2 diameter)``, F the mean force over the last step.
        torque_coefficient: ``4 M/(U diameter)^2`` for the torque about the center.
        pressure_difference: between the front and the back of the cylinder, unit U^2.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells_per_diameter: cells across the cylinder, at least 4. Good values: 16 for a picture, 32 for 1 %.
        growth: part of the distance from the cylinder by which cells grow. Good values: 0.015 to see the wake, 0.04 to
            measure the forces on a cylinder near its default place.
        method: "immersed_boundary" or "direct_forcing", see `simkit.flow.obstacles.methods.body_in`.
        pulse: duration T of a pulse ``sin(pi t/T)`` of the inflow into a fluid at rest, unit D/U, 80 in the third case
            of the benchmark; 0 for a steady inflow.

    Raises:
        UserError: if the configuration is not of that kind; before a run, if the cylinder does not fit into the channel
            or the time step is too long.

    Reference: Schäfer and Turek, in Flow Simulation with High-Performance Computers II, Notes on Numerical Fluid
    Mechanics 52, 547 (1996), doi:10.1007/978-3-322-89849-4_39.
    """
    n = cells_per_diameter
    if isinstance(n, bool) or not isinstance(n, int) or n < 4:
        raise UserError(f"cells_per_diameter = {n!r} is not an integer of at least 4; choose for example 20")
    if isinstance(growth, bool) or not isinstance(growth, int | float) or not 0 <= growth <= 0.2:
        raise UserError(f"growth = {growth!r} is not a number from 0 to 0.2; choose for example 0.015")
    if isinstance(pulse, bool) or not isinstance(pulse, int | float) or not 0 <= pulse < math.inf:
        raise UserError(f"pulse = {pulse!r} is not a duration; choose for example 80, or 0 for a steady inflow")
    # The center lies on faces, so that cells around a cylinder there are as symmetric as it is.
    axes = tuple(
        refined_axis(1 / n, (c - round(before * n) / n, c + round(after * n) / n), length, growth)
        for c, (before, after), length in zip(CENTER, FINE, (LENGTH, HEIGHT), strict=True)
    )
    channel = domain(axes, (("inflow", "outflow"), ("wall", "wall")))
    grid = channel.grid
    # Of a stream function, so that the start has no divergence.
    heights = axes[1].faces / HEIGHT
    stream = HEIGHT * (3 * heights**2 - 2 * heights**3)
    inflow = np.diff(stream)[None, :] / axes[1].widths

    def boundary(params: Params, time: jax.Array) -> BoundaryVelocity:
        still = (0.0, 0.0)
        entering = like(time, inflow)
        if pulse:
            entering = entering * jnp.sin(math.pi / pulse * time)
        return ((entering, 0.0), still), (still, still)

    def center(params: Params) -> tuple[jax.Array, jax.Array]:
        return params["center_x"], params["center_y"]

    def viscosity(params: Params) -> jax.Array:
        return 1 / params["reynolds"]

    cylinder = body_in(
        channel,
        method,
        shape=lambda params: ball(center(params), params["diameter"] / 2),
        pivot=center,
        viscosity=viscosity,
        points=points_around(math.pi, 1 / n),
        spin=lambda params: params["spin"],
    )
    equations = Equations(
        domain=channel,
        viscosity=viscosity,
        time_step=fixed_time_step,
        boundary=boundary,
        obstacle=cylinder,
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        x, y = grid.along(axes[0].faces, 0), grid.along(axes[1].faces, 1)
        bump = np.exp(-((x - 4.0) ** 2)) * np.sin(np.pi * y / HEIGHT) ** 2
        # The largest slope of a Gaussian is sqrt(2/e) times its height over its width.
        bump = like(params["disturbance"], bump / np.sqrt(2 / np.e))
        basic = like(bump, stream if not pulse else np.zeros_like(stream))
        return start(curl(basic + params["disturbance"] * bump, grid), params)

    def observe(state: FlowState, params: Params) -> Arrays:
        return {
            "vorticity": vorticity(state.velocity, boundary(params, state.time[0]), channel),
            "speed": speed(state.velocity, grid),
            "body_distance": cylinder.distance(params, state.time[0]),
        }

    def diagnose(state: FlowState, params: Params) -> Arrays:
        radius = params["diameter"] / 2
        sides = [
            surface_pressure(
                state.pressure,
                (params["center_x"] + way * radius, params["center_y"]),
                (way, 0.0),
                1 / n,
                grid,
                cylinder.reach,
            )
            for way in (-1.0, 1.0)
        ]
        drag, lift, torque = state.load
        return {
            "time": state.time[0],
            "drag_coefficient": drag / radius,
            "lift_coefficient": lift / radius,
            "torque_coefficient": torque / radius**2,
            "pressure_difference": sides[0] - sides[1],
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        cylinder.check(params)
        # The largest speed beside the cylinder is about 1.5 times that of the inflow.
        step, viscosity = float(params["time_step"]), 1 / float(params["reynolds"])
        check_time_step(step, 2.25, viscosity, channel, equations.method, equations.explicit)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS,
        check=check,
        dimensions={name: ("x", "y") for name in ("vorticity", "speed", "body_distance")},
        coordinates=coordinates_along(x=axes[0], y=axes[1]) | {"sides": channel.drawn_sides()},
    )
