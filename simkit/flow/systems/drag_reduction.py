"""An elliptic body in a stream, whose shape, angle and place are to be chosen for low drag."""

import math

import jax
import jax.numpy as jnp

from simkit.core.parameter import POSITIVE, Parameter
from simkit.core.quantities import described
from simkit.core.simulation import Arrays, Params, Simulation
from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.boundary.given import BoundaryVelocity
from simkit.flow.diagnosis.measures import courant_number, speed, vorticity
from simkit.flow.diagnosis.quantities import flow_quantities
from simkit.flow.equations import Equations
from simkit.flow.grid import bounded_axis
from simkit.flow.obstacles.immersed_boundary import points_around
from simkit.flow.obstacles.methods import body_in
from simkit.flow.obstacles.shapes import Shape, rotate, superellipse
from simkit.flow.operators.differences import divergence
from simkit.flow.stepping.stepper import FlowState, stepper
from simkit.flow.stepping.time_step import check_time_step, fixed_time_step

LENGTH, HEIGHT = 8.0, 5.0


PARAMETERS = {
    "reynolds": Parameter(
        40.0, POSITIVE, "1", "Reynolds number U D / nu, with D the diameter of the circle of the same area"
    ),
    "slenderness": Parameter(1.8, unit="1", doc="axis along the body / axis across it, at the same area"),
    "angle": Parameter(50.0, unit="deg", doc="of the first axis, counterclockwise from the stream"),
    "center_x": Parameter(0.0, unit="D", doc="place of the body along the stream"),
    "center_y": Parameter(0.3, unit="D", doc="place of the body across the stream"),
    "time_step": Parameter(0.045, POSITIVE, "D/U", "time step; keep courant_number below 1"),
}


@described(flow_quantities("D", "U"))
def drag_reduction(
    *, cells_per_diameter: int = 12, exponent: float = 2.0, method: str = "immersed_boundary"
) -> Simulation:
    """Return the flow around an elliptic body of given area that is put into a uniform stream between slippery walls.

        du/dt + div(u u) = -grad(p) + 1/Re laplacian(u),   div(u) = 0

    The unit of length is the diameter D of the circle with the same area, that of velocity the speed U of the stream.
    The domain is 8 long and 5 high, with x from -2.5 and y from -2.5. A body across the stream is held back by the
    pressure before and the wake behind it; one that is drawn out along the stream by friction. Between them is a shape
    of least drag.

    All of `PARAMETERS` may be swept and differentiated.

    Diagnostics, besides those that explain themselves:
        drag_coefficient, lift_coefficient: ``2 F/(U^2 D)``, F the mean force over the last step.
        torque_coefficient: ``4 M/(U D)^2`` for the torque about the center.
        divergence: its largest absolute value; rounding errors only.

    Args:
        cells_per_diameter: cells per D, at least 4. Good values: 12 to optimize, 24 to measure.
        exponent: of the superellipse: 2 is an ellipse, 4 nearly a box.
        method: "immersed_boundary" or "direct_forcing", see `simkit.flow.obstacles.methods.body_in`.

    Raises:
        UserError: if the configuration is not of that kind; before a run, if the body does not fit or the time step is
            too long.

    Reference, for the shape of least drag: Pironneau, J. Fluid Mech. 64, 97 (1974), doi:10.1017/S0022112074002023.
    """
    n = cells_per_diameter
    if isinstance(n, bool) or not isinstance(n, int) or n < 4:
        raise UserError(f"cells_per_diameter = {n!r} is not an integer of at least 4; choose for example 12")
    if isinstance(exponent, bool) or not isinstance(exponent, int | float) or not 2 <= exponent <= 16:
        raise UserError(f"exponent = {exponent!r} is not a number from 2 to 16; choose 2 for an ellipse")
    axes = bounded_axis(round(LENGTH * n), LENGTH, -2.5), bounded_axis(round(HEIGHT * n), HEIGHT, -HEIGHT / 2)
    tunnel = domain(axes, (("inflow", "outflow"), ("free_slip", "free_slip")))
    grid = tunnel.grid
    # The area of a superellipse is this times the product of its half axes.
    area = 4 * math.gamma(1 + 1 / exponent) ** 2 / math.gamma(1 + 2 / exponent)
    mean_half_axis = math.sqrt(math.pi / 4 / area)

    def boundary(params: Params, time: jax.Array) -> BoundaryVelocity:
        still = (0.0, 0.0)
        return ((1.0, 0.0), still), (still, still)

    def center(params: Params) -> tuple[jax.Array, jax.Array]:
        return params["center_x"], params["center_y"]

    def shape(params: Params) -> Shape:
        root = jnp.sqrt(params["slenderness"])
        body = superellipse(center(params), (mean_half_axis * root, mean_half_axis / root), exponent)
        return rotate(body, jnp.deg2rad(params["angle"]), center(params))

    def viscosity(params: Params) -> jax.Array:
        return 1 / params["reynolds"]

    # The perimeter at a slenderness of 2.5 or so, between the circle and the most slender body.
    body = body_in(
        tunnel, method, shape=shape, pivot=center, viscosity=viscosity, points=points_around(1.2 * math.pi, 1 / n)
    )
    equations = Equations(
        domain=tunnel,
        viscosity=viscosity,
        time_step=fixed_time_step,
        boundary=boundary,
        obstacle=body,
    )
    start, step = stepper(equations)

    def init(params: Params, key: jax.Array) -> FlowState:
        dtype = params["reynolds"].dtype
        return start((jnp.ones(grid.shape(0), dtype), jnp.zeros(grid.shape(1), dtype)), params)

    def observe(state: FlowState, params: Params) -> Arrays:
        return {
            "speed": speed(state.velocity, grid),
            "vorticity": vorticity(state.velocity, boundary(params, state.time[0]), tunnel),
            "body_distance": body.distance(params, state.time[0]),
        }

    def diagnose(state: FlowState, params: Params) -> Arrays:
        drag, lift, torque = state.load
        return {
            "time": state.time[0],
            "drag_coefficient": 2 * drag,
            "lift_coefficient": 2 * lift,
            "torque_coefficient": 4 * torque,
            "divergence": jnp.max(jnp.abs(divergence(state.velocity, grid))),
            "courant_number": courant_number(state.velocity, params["time_step"], grid),
        }

    def check(params: Params, key: jax.Array) -> None:
        del key
        body.check(params)
        step, viscosity = float(params["time_step"]), 1 / float(params["reynolds"])
        check_time_step(step, 1.6, viscosity, tunnel, equations.method, equations.explicit)

    return Simulation(
        init=init,
        step=step,
        observe=observe,
        diagnose=diagnose,
        params=PARAMETERS,
        check=check,
        dimensions={name: ("x", "y") for name in ("speed", "vorticity", "body_distance")},
        coordinates={"x": axes[0].centers, "y": axes[1].centers, "sides": tunnel.drawn_sides()},
    )
