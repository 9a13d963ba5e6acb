import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.flow.boundary.domain import domain
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.distance import positions
from simkit.flow.obstacles.shapes import ball, complement
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from tests.flow.test_direct_forcing import at_rest, body_in_a_box, run

pytestmark = pytest.mark.usefixtures("x64")


def periodic_box(cells):
    return domain((periodic_axis(cells, 1.0), periodic_axis(cells, 1.0)), (None, None))


@functools.cache
def taylor_couette(cells):
    """The state, and errors of velocity and torque, of the flow between a turning and a resting cylinder."""
    place, viscosity = periodic_box(cells), 0.02
    # Not at a special place of the grid.
    center, inner, outer, spin = (0.5123, 0.4929), 0.17, 0.41, 1 / 0.17
    turning = Body(lambda p: ball(center, inner), lambda p: center, lambda p: p["spin"])
    resting = Body(lambda p: complement(ball(center, outer)), lambda p: center)
    both = DirectForcing(place, {"inner": turning, "outer": resting})
    # 0.6 of the limit of explicit friction, until the slowest mode has decayed by e^-10.
    params = {"time_step": jnp.asarray(0.6 * 2.51 / 8 / cells**2 / viscosity), "spin": jnp.asarray(spin)}
    steps = int((outer - inner) ** 2 / viscosity / np.pi**2 * 10 / params["time_step"])
    equations = Equations(place, lambda p: viscosity, fixed_time_step, obstacle=both)
    state = run(equations, params, steps, at_rest(place))
    swirl = spin * inner**2 / (1 - (inner / outer) ** 2)
    squares = []
    for i, f in enumerate(state.velocity):
        x, y = (p - c for p, c in zip(positions(i, place.grid), center, strict=True))
        r = np.hypot(x, y)
        exact = (-y if i == 0 else x) * (swirl / r**2 - swirl / outer**2)
        squares.append(((f - exact) ** 2)[(r > inner) & (r < outer)])
    error = np.sqrt(np.concatenate(squares).mean())
    return state, error, state.load[2] / (-4 * np.pi * viscosity * swirl) - 1


def test_flow_between_turning_cylinders_is_better_than_first_order():
    errors = [taylor_couette(cells)[1] for cells in (24, 48)]
    order = np.log2(errors[0] / errors[1])
    # Measured: 2.0e-3 and 6.2e-4 of the surface speed, order 1.7.
    assert order > 1.5
    assert errors[1] < 1e-3


def test_torque_on_a_turning_cylinder_is_that_of_taylor_and_couette():
    # Measured: 2e-3 and 7e-4.
    assert abs(taylor_couette(24)[2]) < 5e-3
    assert abs(taylor_couette(48)[2]) < 2e-3


@functools.cache
def force_after_twenty_steps():
    """The force on a body as a function of all parameters, and its derivatives."""
    equations, _ = body_in_a_box(("wall", "wall"), 0.02)
    start, step = stepper(equations)

    def force(params):
        state = start(at_rest(equations.domain), params)
        return jax.lax.scan(lambda s, _: (step(s, params), None), state, None, length=20)[0].load[:2].sum()

    return jax.jit(force), jax.jit(jax.grad(force))


@pytest.mark.parametrize("parameter", ["x", "y", "half_axis", "angle"])
def test_derivatives_with_respect_to_the_body_equal_central_differences(parameter):
    _, params = body_in_a_box(("wall", "wall"), 0.02)
    force, derivatives = force_after_twenty_steps()
    # Third derivatives of a weight that falls over half a cell, 0.03, are up to 60/0.03^2 times the first:
    # 60/0.03^2 h^2/6 = 1e-8. Rounding: 1e-16/h = 1e-10.
    h = 1e-6
    ahead, behind = (force(params | {parameter: params[parameter] + way * h}) for way in (1, -1))
    np.testing.assert_allclose(derivatives(params)[parameter], (ahead - behind) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize(
    ("obstacle_method", "method"),
    [("direct_forcing", "runge_kutta"), ("direct_forcing", "adams_bashforth"), ("immersed_boundary", "runge_kutta")],
)
def test_momentum_lost_between_two_sections_is_the_drag(obstacle_method, method):
    """The pressure is the one that acts, whatever the time step; that of the last stage gave 2.58 in place of 1.83."""
    side, length, height = 5 / 40, 5.0, 3.0
    simulation = flow.system(
        axes={
            "x": {"cells": 40, "length": length, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
            "y": {"cells": 24, "to": height, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity="nu",
        initial={"u": 1},
        obstacle_method=obstacle_method,
        method=method,
        obstacles={"circle": {"shape": "circle", "radius": 0.3, "position": [2.0, 1.5]}},
        observed=["u_face", "pressure"],
        parameters={"nu": 0.1, "time_step": 0.005},
    )
    run = jax.jit(trajectory(simulation, 600, 600))
    _, frames, numbers = run(simulation.params, jax.random.key(0))
    u, pressure = frames["u_face"][-1], frames["pressure"][-1]

    def momentum(i):
        slope = (u[i + 1] - u[i - 1]) / (2 * side)
        return jnp.sum(u[i] ** 2 + (pressure[i] + pressure[i - 1]) / 2 - 2 * 0.1 * slope) * side

    # The flow still changes a little, by 1e-3 of the drag in what it takes.
    assert momentum(3) - momentum(37) == pytest.approx(float(numbers["circle.drag"][-1]), rel=5e-3)


def momentum(state, place, component):
    f = state.velocity[component]
    inner = f if place.grid.axes[component].periodic else f[:, 1:-1]
    return jnp.sum(inner * control_volumes(component, place.grid))
