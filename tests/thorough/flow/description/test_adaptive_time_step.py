"""Time steps that follow from the flow: their limits, order, derivatives, members, resumption, stops and programs."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import simkit
from simkit import flow
from simkit.core.rollout import trajectory
from simkit.core.status import Status, status_of
from tests.differences import central_difference
from tests.flow.description.test_mistakes import LONG, ROOM, begun

pytestmark = pytest.mark.usefixtures("x64")


SPREADING = {
    "friction": ({"viscosity": 2.0}, 2.0, (0, 1)),
    "a field": ({"viscosity": "2*(1 + y)", "parameters": {"time_step": 0.1}}, 3.9, (0, 1)),
    "a field of scalar and time": (
        {"viscosity": "1 + dye*exp(-time)", "scalars": {"dye": {"diffusivity": 0.1, "initial": "4*y"}}},
        4.8,
        (0, 1),
    ),
    "the largest diffusivity": ({"scalars": {"a": {"diffusivity": 3.0}, "b": {"diffusivity": 1.0}}}, 3.0, (0, 1)),
    "the explicit axis alone": ({"viscosity": 40.0, "implicit": ["y"]}, 40.0, (0,)),
}


@pytest.mark.parametrize(("method", "limit"), [("runge_kutta", 2.51), ("adams_bashforth", 1.0)])
@pytest.mark.parametrize("case", SPREADING)
def test_friction_and_diffusion_take_half_of_their_limit(case, method, limit):
    settings, spreads, axes = SPREADING[case]
    rate = sum(4 / h**2 for i, h in enumerate((0.25, 0.1)) if i in axes)
    assert begun(method=method, **settings) == pytest.approx(limit / 2 / (rate * spreads), rel=1e-12)


MOVING = {
    # Half a cell of 0.25 at the speed 4.
    "a wall": ({"lower": {"kind": "wall", "u": -4}}, 0.5 * 0.25 / 4),
    # At rest at the start; after the step of the fastest axis, 0.1, at the speed 8.
    "a wall that sets off": ({"lower": {"kind": "wall", "u": "80*time"}}, 0.5 * 0.25 / 8),
    # Over the cells of 0.1 that the inflow enters, and along x.
    "an inflow": ({"lower": {"kind": "inflow", "v": "2 + cos(pi*x)", "u": 1}, "upper": "outflow"}, 0.5 / (30 + 4)),
}


@pytest.mark.parametrize("case", MOVING)
def test_speeds_of_sides_limit_the_step(case):
    sides, length = MOVING[case]
    axes = {"x": LONG, "y": {"cells": 10, "to": 1, "lower": "wall", "upper": "wall", **sides}}
    # The fluid inside follows the inflow at once, by the projection of the start; its largest rate is lower.
    assert begun(axes=axes) == pytest.approx(length, rel=0.03 if case == "an inflow" else 1e-12)


BODIES = {
    "on its way": (
        {"shape": "circle", "radius": 0.5, "position": ["0.3*sin(10*time)", "-0.2*sin(10*time)"]},
        0.5 / (5 / 0.25),
    ),
    "setting off": (
        {"shape": "circle", "radius": 0.5, "position": ["0.3*cos(10*time)", 0]},
        0.5 / (3 * math.sin(1) / 0.25),
    ),
    "spinning": ({"shape": "circle", "radius": 0.55, "position": [0, 0], "spin": 2.0}, None),
    "turning": ({"shape": "box", "half_lengths": [0.55, 0.4], "position": [0, 0], "angle": "2*time"}, None),
    "at rest": ({"shape": "circle", "radius": 0.5, "position": [0, 0]}, 0.1),
}


@pytest.mark.parametrize("case", BODIES)
def test_speeds_of_obstacles_limit_the_step(case):
    body, length = BODIES[case]
    if length is None:
        # The largest |2 y|/dx + |2 x|/dy of the cell centers inside.
        x = np.abs((np.arange(12) - 5.5) * 0.25)
        x, y = np.meshgrid(x, x)
        inside = np.hypot(x, y) < 0.55 if case == "spinning" else (x < 0.55) & (y < 0.4)
        length = 0.5 / (2 * (x + y)[inside].max() / 0.25)
    found = begun(axes=ROOM, obstacles={"body": body}, parameters={"time_step": 0.1})
    # The box turns to the later of both ends of the step.
    assert found == pytest.approx(length, rel=1e-10)


def test_a_wall_crosses_narrow_cells_where_they_are():
    # Along the lid the cells of 0.1 lie at the left end, where it is slow; those of 0.4 elsewhere.
    faces = [0, 0.1, 0.2, 0.3, 0.7, 1.1, 1.5, 1.9]
    walls = {"lower": "wall", "upper": "wall"}
    axes = {
        "x": {"faces": faces, **walls},
        "y": {"cells": 10, "to": 1, "lower": "wall", "upper": {"kind": "wall", "u": "where(x < 0.5, 1, 2)"}},
    }
    # At the face at 0.3 the narrower cell is taken: 1/0.1 there, 2/0.4 beyond.
    assert begun(axes=axes) == pytest.approx(0.5 * 0.1, rel=1e-12)


def test_advection_limits_the_step():
    # The largest |u|/dx + |v|/dy of 0.3 sin(2x) cos(2y)-like eddies, on the 16 cells of width h.
    h = 2 * math.pi / 16
    box = {name: {"cells": 16, "length": 2 * math.pi, "periodic": True} for name in "xy"}
    found = begun(
        axes=box,
        initial={"stream_function": "2*cos(x)*cos(y)"},
        courant_number="0.2 + shift/10",
        parameters={"shift": 1.0, "time_step": 9.0},
    )
    # Differences and means between corners give -2 sin(x) cos(y) these factors, at the centers.
    size = 2 * math.sin(h / 2) / (h / 2) * math.cos(h / 2)
    x = (np.arange(16) + 0.5) * h
    speeds = np.abs(np.outer(np.sin(x), np.cos(x))) + np.abs(np.outer(np.cos(x), np.sin(x)))
    assert found == pytest.approx(0.3 * h / (size * speeds.max()), rel=1e-10)


KEY = jax.random.key(0)


def carrier(obstacle, **settings):
    """A stream through a room, with a parameter for everything that may set the time step."""
    side = {"cells": 10, "from": -1.5, "length": 3}
    return flow.system(
        axes={
            "x": {**side, "lower": {"kind": "inflow", "u": "stream*(1 + 0.1*sin(time + y))"}, "upper": "outflow"},
            "y": {**side, "lower": {"kind": "wall", "u": "slide*cos(time)"}, "upper": "free_slip"},
        },
        viscosity="nu*(1 + 0.1*heat)",
        implicit=[],
        initial={"u": "stream", "v": "0.2*sin(2*x)*cos(y)"},
        scalars={"heat": {"diffusivity": "kappa", "initial": "y", "sides": {"x": {"lower": 1}}}},
        obstacles={"body": {"shape": "circle", "radius": 0.5, "position": ["sway*sin(8*time)", 0.1]}}
        if obstacle
        else {},
        courant_number="courant",
        parameters={
            **{"stream": 0.6, "slide": 0.3, "nu": 0.02, "kappa": 0.03, "sway": 0.01, "courant": 0.3},
            "time_step": 1.0,
            **settings,
        },
    )


# Of each case the parameters that set the time step at once, and those of the flow that it depends on later.
CASES = {
    "advection": ({}, {"stream", "courant"}),
    "friction": ({"nu": 0.8}, {"nu"}),
    "diffusion": ({"kappa": 0.9}, {"kappa"}),
    "the wall": ({"slide": 3.0}, {"slide", "courant"}),
    "the longest step": ({"time_step": 0.05}, {"time_step"}),
    "the obstacle": ({"sway": 0.3}, {"sway", "courant"}),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_through_the_step_equal_central_differences(case):
    settings, limiting = CASES[case]
    simulation = carrier(case == "the obstacle", **settings)
    weights = jax.tree.map(
        lambda f: jnp.sin(1.0 + jnp.arange(f.size, dtype=float)).reshape(f.shape),
        jax.eval_shape(lambda: (lambda s: (s.velocity, s.scalar))(simulation.init(simulation.params, KEY))),
    )

    def run(params):
        state = jax.lax.fori_loop(0, 3, lambda _, s: simulation.step(s, params), simulation.init(params, KEY))
        products = jax.tree.map(lambda f, w: jnp.sum(f * w), (state.velocity, state.scalar), weights)
        return sum(jax.tree.leaves(products)) + state.time[0], state.time[0]

    value = jax.jit(lambda params: run(params)[0])
    forward, of_time = jax.jit(jax.jacfwd(run))(simulation.params)
    differences = central_difference(value, simulation.params, list(simulation.params))
    for name in simulation.params:
        assert float(forward[name]) == pytest.approx(float(differences[name]), rel=2e-5, abs=1e-7), name
    # What limits the step decides on the time that three steps take.
    assert limiting <= {name for name, slope in of_time.items() if abs(float(slope)) > 1e-3}
    if case == "advection":
        reverse = jax.jit(jax.grad(value))(simulation.params)
        np.testing.assert_allclose(ravel_pytree(reverse)[0], ravel_pytree(forward)[0], rtol=1e-9, atol=1e-11)


def eddies(**parameters):
    box = {name: {"cells": 16, "length": 2 * math.pi, "periodic": True} for name in "xy"}
    return flow.system(
        axes=box,
        viscosity="nu",
        initial={"stream_function": "size*cos(x)*cos(y)"},
        courant_number="courant",
        parameters={"nu": 0.1, "size": 1.0, "courant": 0.1, "time_step": 1.0, **parameters},
    )


def test_an_objective_at_a_time_has_the_derivative_of_the_physics():
    """The energy of Taylor and Green's eddies decays as exp(-2 k t), with k proportional to the viscosity."""
    simulation, steps = eddies(), 60
    rate = 2 * (2 * math.sin(math.pi / 16) / (2 * math.pi / 16)) ** 2
    run = simkit.run(simulation, steps=steps, every=1)
    start, time = float(run["kinetic_energy"][0]), float(run["time"][-1])
    assert time > 2
    energy = start * math.exp(-2 * rate * 0.1 * 2)
    exact = {"nu": -2 * rate * 2 * energy, "size": 2 * energy, "courant": 0.0}
    at_time = simkit.value_and_grad(
        simulation, list(exact), objective="at_time(kinetic_energy, 2)", steps=steps, every=1
    )
    assert at_time[0] == pytest.approx(energy, rel=1e-5)
    for name, slope in exact.items():
        assert float(at_time[1][name]) == pytest.approx(slope, rel=2e-5, abs=2e-5 * energy), name
    # After a number of steps, larger eddies have lived for a shorter time: the same derivative but for that time's.
    last = start * math.exp(-2 * rate * 0.1 * time)
    final = simkit.value_and_grad(simulation, list(exact), objective="final(kinetic_energy)", steps=steps, every=1)
    lived = simkit.value_and_grad(simulation, list(exact), objective="final(time)", steps=steps, every=1)
    for name, own in {"nu": -2 * rate * time, "size": 2.0, "courant": 0.0}.items():
        expected = last * (own - 2 * rate * 0.1 * float(lived[1][name]))
        assert float(final[1][name]) == pytest.approx(expected, rel=1e-3), name
    assert float(lived[1]["size"]) < -1 and float(lived[1]["nu"]) > 1


WALLS = {"cells": 10, "from": -0.5, "to": 0.5, "lower": "wall", "upper": "wall"}
PULSATING = "1 + 0.7*sin(8*time)"
DRIVES = {
    "held flow rate": {
        "axes": {"x": {"cells": 8, "length": 1.6, "periodic": True}, "y": WALLS},
        "flow_rate": PULSATING,
        "initial": {"u": "1.5*(1 - 4*y**2)*(1 + 0.2*sin(2*pi*y))", "v": "0.1*sin(2*pi*x/1.6)*cos(pi*y)"},
    },
    "pressure on both ends": {
        "axes": {
            "x": {
                "cells": 8,
                "length": 1.6,
                "lower": {"kind": "pressure", "pressure": "8 + 8*sin(8*time)"},
                "upper": "pressure",
            },
            "y": WALLS,
        },
        "initial": {"u": "1.5*(1 - 4*y**2)"},
    },
    "inflow and pressure": {
        "axes": {
            "x": {
                "cells": 8,
                "length": 1.6,
                "lower": {"kind": "inflow", "u": f"1.5*(1 - 4*y**2)*({PULSATING})"},
                "upper": {"kind": "pressure", "pressure": "0.3*cos(6*time)"},
            },
            "y": WALLS,
        },
        "initial": {"u": "1.5*(1 - 4*y**2)"},
    },
}
SCHEMES = {
    "Runge-Kutta": ({"method": "runge_kutta", "implicit": []}, 3),
    "Adams-Bashforth": ({"method": "adams_bashforth", "implicit": []}, 2),
    "Runge-Kutta, implicit": ({"method": "runge_kutta", "implicit": ["x", "y"]}, 2),
    "Adams-Bashforth, implicit": ({"method": "adams_bashforth", "implicit": ["x", "y"]}, 2),
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("drive", DRIVES)
def test_steps_that_vary_keep_the_order(drive, scheme):
    method, order = SCHEMES[scheme]

    def reached(steps, time_step, **settings):
        simulation = flow.system(
            viscosity=0.02,
            parameters={"time_step": time_step},
            largest_speed=None if settings else 6,
            **DRIVES[drive],
            **method,
            **settings,
        )
        params = simulation.params

        def advance(state, _):
            state = simulation.step(state, params)
            return state, (state.time_step, simulation.diagnose(state, params)["mean_u"])

        state, found = jax.jit(lambda: jax.lax.scan(advance, simulation.init(params, KEY), length=steps))()
        return state, *found

    errors = []
    for count in (1, 2):
        state, lengths, means = reached(24 * count, 9.0, courant_number=0.2 / count)
        assert float(lengths.max() / lengths.min()) > 1.5
        if drive == "held flow rate":
            np.testing.assert_allclose(means, 1 + 0.7 * jnp.sin(8 * jnp.cumsum(lengths)), rtol=1e-12)
        fine, *_ = reached(800, float(state.time[0]) / 800)
        errors.append(float(jnp.max(jnp.abs(state.velocity[0] - fine.velocity[0]))))
    assert order - 0.3 < math.log2(errors[0] / errors[1]) < order + 0.5


def decaying(viscosity, time_step=0.01):
    """Waves between two sides without friction, which decay as exp(-4 integral of the viscosity)."""
    return flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 24, "to": math.pi, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity=viscosity,
        initial={"u": "cos(2*y)"},
        method="adams_bashforth",
        implicit=[],
        parameters={"nu": 0.2, "time_step": time_step},
    )


def ended(simulation, steps):
    state, _, numbers = jax.jit(trajectory(simulation, steps, steps))(simulation.params, jax.random.key(0))
    return Status(int(status_of(simulation)(state, simulation.params))), numbers["largest_velocity"][-1]


@pytest.mark.parametrize("viscosity", ["nu*(1 + 4*time)", "nu*(1 - time)"], ids=["too large", "negative"])
def test_a_viscosity_that_leaves_its_range_is_named(viscosity):
    # The limit of the step, 1/(4/dx^2 + 4/dy^2)/nu = 0.0168 at the start, is below 0.01 from nu = 0.336 on.
    simulation = decaying(viscosity)
    simulation.check(simulation.params, jax.random.key(0))
    assert ended(simulation, 10)[0] == Status.OK
    assert ended(simulation, 120)[0] == Status.VISCOSITY_OUT_OF_RANGE


def test_a_viscosity_within_its_range_goes_on():
    status, speed = ended(decaying("nu*(1 + 4*time)", 0.003125), 320)
    assert status == Status.OK
    # Differences give the wave the rate (2 - 2 cos(2 dy))/dy^2 in place of 4; the integral of the viscosity is 0.6.
    dy = math.pi / 24
    rate = (2 - 2 * math.cos(2 * dy)) / dy**2
    assert speed == pytest.approx(math.exp(-0.6 * rate) * math.cos(dy), rel=1e-4)
