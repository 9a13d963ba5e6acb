import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory
from simkit.errors import UserError
from simkit.flow.boundary.domain import domain, no_motion
from simkit.flow.diagnosis.measures import control_volumes
from simkit.flow.equations import Equations
from simkit.flow.grid import periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.distance import positions
from simkit.flow.obstacles.shapes import ball, complement
from simkit.flow.operators.differences import divergence
from simkit.flow.operators.diffusion import shear
from simkit.flow.stepping.stepper import stepper
from simkit.flow.stepping.time_step import fixed_time_step
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.flow.test_direct_forcing import FORCE, at_rest, body_in_a_box, run

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


@pytest.mark.parametrize("slope", [0, 2])
def test_flow_between_inclined_walls_is_better_than_first_order(slope):
    """Poiseuille flow along (slope, 1), between walls that no point of the grid lies on."""
    along, across = (np.array(v) / np.hypot(1, slope) for v in ((slope, 1), (-1, slope)))
    period = 1 / np.hypot(1, slope)
    half = (0.41 if slope else 0.21) * period

    def wall_flow(cells, offset):
        place = periodic_box(cells)

        def height(x, y, offset):
            e = across[0] * x + across[1] * y - offset
            return e - period * jnp.round(e / period)

        walls = Body(lambda p: lambda x, y: half - jnp.abs(height(x, y, p["offset"])), lambda p: (0.5, 0.5))
        walls = DirectForcing(place, {"walls": walls})
        time_step = 0.6 * 2.51 / 8 / cells**2
        force = tuple((2 / half**2 * along).tolist())
        equations = Equations(place, lambda p: 1.0, fixed_time_step, force=lambda *_: force, obstacle=walls)
        start, step = stepper(equations)
        # The slowest mode decays by e^-12.
        steps = int(half**2 * 4 / np.pi**2 * 12 / time_step)
        params = {"time_step": jnp.asarray(time_step), "offset": offset}
        state = start(at_rest(place), params)
        state = jax.lax.scan(lambda s, _: (step(s, params), None), state, None, length=steps)[0]
        total = count = 0
        for i, f in enumerate(state.velocity):
            e = height(*positions(i, place.grid), offset)
            exact = (1 - (e / half) ** 2) * along[i]
            total += jnp.sum(jnp.where(jnp.abs(e) < half, (f - exact) ** 2, 0))
            count += jnp.sum(jnp.abs(e) < half) / 2
        return jnp.sqrt(total / count)

    def error(cells):
        # The mean over places of the walls between the points of the grid.
        offsets = 0.1 + jnp.arange(2) / 2 / cells
        return jnp.mean(jax.jit(jax.vmap(functools.partial(wall_flow, cells)))(offsets))

    errors = [error(16), error(32)]
    # In units of the largest velocity.
    assert errors[1] < 3e-3
    assert np.log2(errors[0] / errors[1]) > 1 or errors[0] < 1e-3


def test_driving_force_is_drag_plus_wall_friction_in_steady_flow():
    equations, params = body_in_a_box(("wall", "wall"), 0.2)
    place, params = equations.domain, params | {"angle": jnp.asarray(0.4)}
    # The slowest decay at rate nu pi^2 leaves e^-20. Friction is that at the end of a step: its stages differ by what
    # projection adds to the velocity held, measured 3e-9.
    state = run(equations, params, int(10 / params["time_step"]), at_rest(place))
    slopes = shear(state.velocity[0], 0, 1, no_motion(place), place)
    friction = 0.2 * jnp.sum((slopes[:, 0] - slopes[:, -1]) * place.grid.axes[0].widths)
    assert friction > 0.1 and state.load[0] > 0.1
    assert abs(FORCE[0] * place.grid.volume - friction - state.load[0]) < 2e-8


def test_velocity_is_solenoidal_and_nearly_without_slip():
    state, _, _ = taylor_couette(48)
    grid = periodic_box(48).grid
    # Round-off of velocities of 1 over cells of 1/48.
    assert jnp.max(jnp.abs(divergence(state.velocity, grid))) < 1e-13
    x, y = (p - c for p, c in zip(positions(0, grid), (0.5123, 0.4929), strict=True))
    r = np.hypot(x, y)
    swirl = 0.17 / (1 - (0.17 / 0.41) ** 2)
    exact = -y * (swirl / r**2 - swirl / 0.41**2)
    slip = np.abs(state.velocity[0] - exact)[(r > 0.17) & (r < 0.17 + 0.25 / 48)]
    # Measured: 2.5e-3, of second order: (h/R)^2 is 1.5e-2. If projection undid what forcing did, that is without the
    # old pressure, it would be 1.2e-2.
    assert slip.size > 10 and slip.max() < 5e-3


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


def test_flow_stays_bounded_at_any_position_of_the_body_in_a_cell():
    equations, params = body_in_a_box(None, 0.01)
    start, step = stepper(equations)

    def last(x, y, angle):
        p = params | {"x": x, "y": y, "angle": angle, "time_step": jnp.asarray(0.02)}
        velocity = jnp.ones(equations.domain.grid.shape(0)), jnp.zeros(equations.domain.grid.shape(1))
        state = jax.lax.scan(lambda s, _: (step(s, p), None), start(velocity, p), None, length=400)[0]
        return jnp.max(jnp.abs(state.velocity[0])), jnp.max(jnp.abs(state.pressure))

    x, y, angle = np.random.default_rng(0).uniform(size=(3, 24))
    speed, pressure = jax.jit(jax.vmap(last))(0.75 + x / 16, 0.5 + y / 16, np.pi * angle)
    # The force, 0.7 over 8 units of time, drives it to a few units at most.
    assert jnp.max(speed) < 5
    assert jnp.max(pressure) < 100


def test_force_and_torque_on_a_sphere_have_the_directions_of_drag_and_braking():
    place = domain((periodic_axis(10, 1.0),) * 3, (None,) * 3)
    center = (0.5, 0.5, 0.5)
    body = DirectForcing(place, {"sphere": Body(lambda p: ball(center, 0.27), lambda p: center, lambda p: p["spin"])})
    equations = Equations(place, lambda p: 0.1, fixed_time_step, force=lambda *_: (0.0, 0.0, 1.0), obstacle=body)
    params = {"time_step": jnp.asarray(5e-3), "spin": jnp.asarray(1.0)}
    load = run(equations, params, 100, at_rest(place)).load
    assert load.shape == (6,)
    assert load[2] > 0.5
    # The flow brakes the spin; by symmetry nothing else acts.
    assert load[5] < 0
    np.testing.assert_allclose(load[jnp.array([0, 1, 3, 4])], 0, atol=1e-10)


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


def test_bad_configuration_and_parameters_are_refused():
    given = {f"config.axes.{axis}.refined.cell": 0.125 for axis in "xy"}
    given |= {f"config.axes.{axis}.refined.from": 1.25 for axis in "xy"}
    given |= {"config.axes.x.refined.to": 2.75, "config.axes.y.refined.to": 2.75}
    with pytest.raises(UserError, match=r"axes\.x\.refined: cell = 0.4 does not divide .*choose"):
        build(load("cylinder_in_channel", given | {"config.axes.x.refined.cell": 0.4}))
    simulation = build(load("cylinder_in_channel", given))
    simulation.check(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match="side y"):
        simulation.check(simulation.with_params(center_y=4.0).params, jax.random.key(0))
    with pytest.raises(UserError, match="stability limit"):
        simulation.check(simulation.with_params(time_step=1.0).params, jax.random.key(0))


def momentum(state, place, component):
    f = state.velocity[component]
    inner = f if place.grid.axes[component].periodic else f[:, 1:-1]
    return jnp.sum(inner * control_volumes(component, place.grid))


def test_driving_force_is_drag_plus_gained_momentum_to_round_off():
    equations, params = body_in_a_box(None, 0.02)
    place, params = equations.domain, params | {"angle": jnp.asarray(0.4)}
    state = run(equations, params, 30, at_rest(place))
    after = jax.jit(stepper(equations)[1])(state, params)
    for i, force in enumerate(FORCE):
        gained = (momentum(after, place, i) - momentum(state, place, i)) / after.time_step
        # Sums of 400 numbers of size 1 over a step of 0.03: 1e-16 sqrt(400)/0.03.
        assert abs(force * place.grid.volume - after.load[i] - gained) < 1e-12
