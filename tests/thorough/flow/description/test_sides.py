"""Sides of several parts, friction on walls, held flow rates, and the onset of convection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import flow
from simkit.core.rollout import trajectory
from simkit.scenario.made_in_python import load
from tests.flow.description.test_mistakes import SLOT, layer

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("upper", ["pressure", "outflow"])
@pytest.mark.parametrize("implicit", [[], ["y"], ["x", "y"]])
def test_a_jet_enters_through_its_slot_only_and_flows_out(upper, implicit):
    made = layer(SLOT, upper=upper, implicit=implicit)
    key = jax.random.key(0)
    made.check_values(made.params, key)
    run = jax.jit(lambda p: jax.lax.fori_loop(0, 5, lambda _, s: made.step(s, p), made.init(p, key)))
    state = run(made.params)
    entering = np.asarray(state.velocity[0])[0]
    # Centers of faces at 0.1 and 0.3 on both sides are within 0.35.
    expected = np.where(np.abs(np.linspace(-0.9, 0.9, 10)) < 0.35, 1 + 0.5 * np.sin(0.05), 0)
    np.testing.assert_allclose(entering, expected, rtol=0, atol=1e-14)
    numbers = made.diagnose(state, made.params)
    np.testing.assert_allclose(numbers["x_lower.flow"], 0.8 * (1 + 0.5 * np.sin(0.05)), rtol=1e-13)
    np.testing.assert_allclose(numbers["x_upper.flow"], -numbers["x_lower.flow"], rtol=1e-12)
    assert float(numbers["divergence"]) < 1e-12


def test_a_part_of_a_lid_slides():
    lid = ["wall", {"kind": "wall", "v": 2, "where": "y > 0.5"}, {"kind": "wall", "v": "-stream", "where": "y < -0.5"}]
    made = layer(lid, upper="wall")
    made.check_values(made.params, jax.random.key(0))
    state = jax.jit(lambda p: made.step(made.init(p, jax.random.key(0)), p))(made.params)
    v = np.asarray(state.velocity[1])[0]
    assert v[9] > 0.01 > abs(v[5]) and v[1] < -0.005


KEY = jax.random.key(0)


def duct(cells, lower):
    """A duct in which w = cos(x) sinh(y): no pressure, no force, a sliding upper wall."""
    return flow.system(
        axes={
            "x": {"cells": cells, "to": np.pi, "lower": "pressure", "upper": "pressure"},
            "y": {"cells": cells, "to": 1, "lower": lower, "upper": {"kind": "wall", "w": "cos(x)*sinh(1)"}},
            "z": {"cells": 4, "length": 1, "periodic": True},
        },
        viscosity="nu",
        initial={"w": "cos(x)*sinh(y)"},
        implicit=["y"],
        largest_speed=2,
        parameters={"nu": 0.3, "half": np.pi / 4, "time_step": 0.02},
    )


@pytest.mark.parametrize(
    ("lower", "ends"),
    [
        (["wall", {"kind": "inflow", "v": 0, "where": "x > half"}], (0, np.pi / 4)),
        ([{"kind": "inflow", "v": 0}, {"kind": "wall", "where": "x > half"}], (np.pi / 4, np.pi)),
    ],
)
def test_friction_on_a_part_is_that_of_an_exact_flow(lower, ends):
    errors = []
    exact = 0.3 * (np.sin(ends[1]) - np.sin(ends[0])) / (ends[1] - ends[0])
    for cells in (8, 16):
        made = duct(cells, lower)
        made.check_values(made.params, KEY)
        run = jax.jit(lambda p, made=made: jax.lax.fori_loop(0, 50, lambda _, s: made.step(s, p), made.init(p, KEY)))
        numbers = made.diagnose(run(made.params), made.params)
        errors.append(abs(float(numbers["y_lower.shear_z"]) - exact))
        assert abs(float(numbers["y_lower.shear_x"])) < 1e-12
    assert errors[1] < 3e-3 * abs(exact)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.3)


def layer_of_friction(lower, periodic=True, cells=8):
    x = {"periodic": True} if periodic else {"lower": "wall", "upper": "wall"}
    return flow.system(
        axes={"x": {"cells": cells, "length": 2, **x}, "y": {"cells": 6, "to": 1, "lower": lower, "upper": "pressure"}},
        viscosity="nu",
        initial={"stream_function": "y**2*(1 + 0.5*cos(pi*x))/2"},
        parameters={"nu": 0.2, "end": 0.5, "time_step": 0.01},
    )


def test_friction_is_zero_while_there_is_no_wall_and_follows_it():
    made = layer_of_friction([{"kind": "inflow", "v": 0}, {"kind": "wall", "where": "x < 1 - 50*time"}])
    assert made.quantities["y_lower.shear_x"].doc == (
        "mean shear stress over density of the flow on the walls of y lower, along x"
    )

    def run(params):
        def advance(state, _):
            state = made.step(state, params)
            return state, made.diagnose(state, params)["y_lower.shear_x"]

        return jax.lax.scan(advance, made.init(params, KEY), length=3)[1]

    found = jax.jit(run)(made.params)
    assert found[0] > 0.1 and found[1] == found[2] == 0
    slopes = jax.jit(jax.jacfwd(run))(made.params)
    assert jnp.isfinite(jnp.stack(list(slopes.values()))).all()


@pytest.mark.parametrize("method", ["adams_bashforth", "runge_kutta"])
@pytest.mark.parametrize("time_step", [0.016, 0.004])
def test_drive_equals_drag_plus_wall_friction(method, time_step):
    simulation = flow.system(
        axes={
            "x": {"cells": 24, "length": 4, "periodic": True},
            "y": {"cells": 24, "from": -2, "to": 2, "lower": "wall", "upper": "wall"},
        },
        viscosity=0.2,
        flow_rate=0.4,
        method=method,
        obstacles={"body": {"shape": "circle", "radius": 0.6, "position": [2.1, 0.3], "spin": 1.0}},
        obstacle_method="direct_forcing",
        largest_speed=2.0,
        parameters={"time_step": time_step},
    )
    steps = round(4 / time_step)
    _, _, found = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))
    drag, below, above = (float(found[name][-1]) for name in ("body.drag", "y_lower.shear_x", "y_upper.shear_x"))
    # At t = 4 the flow is steady to 1e-3; friction is that at the end of a step, drive and drag their mean over it.
    np.testing.assert_allclose(16 * float(found["drive"][-1]), drag + 4 * (below + above), rtol=2e-4)


def driven(**settings):
    """Return a flow between two walls, and its diagnostics at the start and once it is steady."""
    simulation = flow.system(
        axes={
            "x": {"cells": 4, "length": 1.0, "periodic": True},
            "y": {"cells": 6, "from": -1, "to": 1, "stretching": 1.0, "lower": "wall", "upper": "wall"},
        },
        viscosity=1,
        largest_speed=1,
        parameters={"push": 2.0, "time_step": 0.05},
        **settings,
    )
    return simulation, trajectory(simulation, 300, 300)(simulation.params, jax.random.key(0))[2]


def test_drive_is_the_mean_of_a_force():
    simulation, found = driven(force={"x": "push*(1 + y + sin(2*pi*x))"})
    # The faces of four equal cells of one wave: their mean is zero to round-off, and that of y over unequal cells too.
    np.testing.assert_allclose(found["drive"], 2.0, rtol=1e-14)
    assert simulation.quantities["drive"].unit == "1"


def test_drive_is_the_sum_of_a_force_and_of_what_holds_the_flow_rate():
    held = driven(flow_rate=0.3)[1]
    both = driven(flow_rate=0.3, force={"x": "push"})[1]
    # The same flow in the end, whatever part of the drive is prescribed: the start has decayed like exp(-2.5 * 15).
    np.testing.assert_allclose(both["drive"][-1], held["drive"][-1], rtol=1e-12)
    friction = (held["y_lower.shear_x"] + held["y_upper.shear_x"])[-1] / 2
    np.testing.assert_allclose(held["drive"][-1], friction, rtol=1e-12)
    assert held["drive"][0] == 0 and both["drive"][0] == 2


def test_convection_sets_in_at_the_theoretical_rayleigh_number():
    """Chandrasekhar, Hydrodynamic and Hydromagnetic Stability (1961): 1707.762 between rigid plates."""
    numbers = [1690.0, 1725.0]
    size = {"config.axes.x.cells": 16, "config.axes.y.cells": 16, "disturbance": 1e-5}
    swept = simkit.sweep(load("rayleigh_benard_onset", size), over={"rayleigh": numbers})
    energy, time = swept["energy"].isel(seed=0).values, swept["time"].isel(seed=0).values[0]
    half = len(time) // 2
    growth = (energy[:, -1] - energy[:, half:].mean(axis=1)) / time[-1]
    onset = np.interp(0, growth, numbers)
    # Measured: 0.22 % below, and 0.035 % with 32 cells across.
    assert onset == pytest.approx(1707.762, rel=0.005)
