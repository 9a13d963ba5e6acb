"""Combinations of sides, scalars and obstacles, and derivatives by a parameter in every formula."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit import flow
from tests.differences import central_difference
from tests.flow.description.test_mistakes import BODIES, carrying

pytestmark = pytest.mark.usefixtures("x64")


AROUND = {"cells": 6, "length": 1.5, "periodic": True}


def steps(simulation, count=3, seed=0):
    def run(params, key):
        return jax.lax.fori_loop(0, count, lambda _, s: simulation.step(s, params), simulation.init(params, key))

    simulation.check_values(simulation.params, jax.random.key(seed))
    # Compiled without optimizations, which would take longer than all steps do.
    given = simulation.params, jax.random.key(seed)
    return jax.jit(run).lower(*given).compile({"xla_backend_optimization_level": 0})(*given)


ENDS = {"value": "1 + x*time", "flux": {"flux": "0.3*cos(x + time)"}, "insulated": "insulated"}


@pytest.mark.parametrize("scheme", ["central", "bounded"])
@pytest.mark.parametrize("implicit", [[], ["y"]])
@pytest.mark.parametrize(("lower", "upper"), list(itertools.combinations_with_replacement(ENDS, 2)))
def test_scalar_gains_the_flux_through_the_sides(lower, upper, implicit, scheme):
    if scheme == "bounded" and lower != upper:
        pytest.skip("the scheme of advection does not know the sides")
    simulation = flow.system(
        axes={"x": AROUND, "y": {"cells": 5, "length": 1, "lower": "wall", "upper": "wall"}},
        viscosity=0.1,
        initial={"u": "y*(1 - y)", "v": "0.1*sin(4*x)*y*(1 - y)"},
        scalars={
            "heat": {
                "diffusivity": "kappa",
                "initial": "y**2",
                "sides": {"y": {"lower": ENDS[lower], "upper": ENDS[upper]}},
                "scheme": scheme,
            },
            "salt": {"diffusivity": 0.01, "source": "-0.5*salt*heat"},
        },
        implicit=implicit,
        parameters={"kappa": 0.2, "time_step": 1e-4},
    )
    started = simulation.init(simulation.params, jax.random.key(0))
    state = steps(simulation, 1)
    gained = (
        simulation.diagnose(state, simulation.params)["heat.mean"]
        - simulation.diagnose(started, simulation.params)["heat.mean"]
    )
    expected, length = 0.0, 1e-4
    for kind, end in ((lower, "lower"), (upper, "upper")):
        if kind == "flux":
            x = (np.arange(6) + 0.5) / 4
            expected += length * np.mean(0.3 * np.cos(x + length / 2))
        elif kind == "value":
            fluxes = [simulation.diagnose(s, simulation.params)[f"heat.flux_y_{end}"] for s in (started, state)]
            expected += length * np.mean(fluxes)
    # The mean of the fluxes before and after a step is that during it to second order in its length.
    np.testing.assert_allclose(gained, expected, rtol=0, atol=3e-8 if "value" in (lower, upper) else 1e-13)
    assert float(abs(state.scalar["salt"]).max()) == 0.0


STREAM = {
    "x": {"cells": 18, "from": -1.5, "length": 3, "lower": {"kind": "inflow", "u": 1}, "upper": "outflow"},
    "y": {"cells": 18, "from": -1.5, "length": 3, "lower": "free_slip", "upper": "free_slip"},
}


@pytest.mark.parametrize("method", ["immersed_boundary", "direct_forcing"])
@pytest.mark.parametrize("body", BODIES)
def test_obstacles_at_rest_and_moving(body, method):
    simulation = flow.system(
        axes=STREAM,
        viscosity=0.05,
        initial={"u": 1},
        obstacles={"body": {"shape": "ellipse", "half_axes": [0.4, 0.3], **BODIES[body]}},
        obstacle_method=method,
        parameters={"time_step": 0.02},
    )
    state = steps(simulation, 3)
    numbers = simulation.diagnose(state, simulation.params)
    u = state.velocity[0]
    # The displaced fluid flows out too.
    made = 0.0 if body != "swelling" else np.pi * 0.12 * 2 * 0.2 * (1 + 0.2 * 0.06)
    np.testing.assert_allclose((u[-1] - u[0]).mean() * 3, made, rtol=2e-2, atol=1e-12)
    assert float(numbers["body.drag"]) > 0.1
    assert ("body.x" in numbers) == (body in ("on its way", "turning", "swelling"))
    inside = simulation.observe(state, simulation.params)["body_distance"] < 0
    assert abs(float(inside.mean()) * 9 - np.pi * 0.12 * {"turned and larger": 1.44}.get(body, 1.0)) < 0.08


SHAPES = {
    "circle": ({"radius": "size"}, np.pi * 0.25),
    "ellipse": ({"half_axes": ["size", 0.4]}, np.pi * 0.2),
    "box": ({"half_lengths": ["size", 0.4], "rounding": 0.1}, 0.8 - (4 - np.pi) * 0.01),
    "capsule": ({"radius": 0.4, "half_length": "size - 0.1"}, 0.64 + np.pi * 0.16),
    "polygon": ({"corners": [["-size", -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, "size"]]}, 1.0),
    "airfoil": ({"digits": "0040", "chord": "4*size"}, 1.1),
}


@pytest.mark.parametrize("shape", [*SHAPES, "distance"])
def test_obstacles_of_every_plane_shape(shape):
    keys, area = SHAPES.get(shape, ({}, np.pi * 0.25))
    what = {"distance": "hypot(x, y) - size"} if shape == "distance" else {"shape": shape, **keys}
    simulation = flow.system(
        axes={
            name: {"cells": 40, "from": -2, "length": 4, "lower": "free_slip", "upper": "free_slip"} for name in "xy"
        },
        viscosity=0.1,
        obstacles={"body": {**what, "position": [0.05, 0.02], "angle": 0.2}},
        obstacle_method="direct_forcing",
        parameters={"size": 0.5, "time_step": 0.01},
    )
    simulation.check_values(simulation.params, jax.random.key(0))
    distance = flow_distance(simulation)
    # Counted in cells of 0.01; an airfoil that thick has about 0.68 of chord times thickness.
    assert float((distance < 0).sum()) * 0.01 == pytest.approx(area, rel=0.08)


def flow_distance(simulation):
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    state = jax.tree.map(lambda f: np.zeros(f.shape, f.dtype), state)
    return simulation.observe(state, simulation.params)["body_distance"]


@pytest.mark.parametrize(
    ("body", "method"),
    [("on its way", "immersed_boundary"), ("at rest", "direct_forcing"), ("turning", "direct_forcing")],
)
def test_obstacles_beside_several_scalars(body, method):
    simulation = carrying(body, obstacle_method=method)
    state = steps(simulation, 5)
    numbers = {name: float(value) for name, value in simulation.diagnose(state, simulation.params).items()}
    # A uniform scalar stays uniform beside an insulated body, whose heat is zero.
    np.testing.assert_allclose(state.scalar["dye"], 1, rtol=1e-12)
    assert abs(numbers["body.dye_given"]) < 1e-12
    assert numbers["body.heat_given"] > 0.1 and numbers["body.salt_given"] > 0.1
    assert numbers["divergence"] < 1e-11
    inside = np.asarray(simulation.observe(state, simulation.params)["body_distance"]) < -0.1
    assert 0.01 < float(state.scalar["salt"].max()) < 0.6
    assert float(np.abs(state.scalar["heat"][inside]).max()) < 1.2
    described = simulation.quantities["body.heat_given"]
    assert described.doc == "amount of heat that body gives per time, per length"


def layer():
    """A periodic layer between walls, with a parameter in every formula."""
    return flow.system(
        axes={
            "x": {"cells": 6, "length": 1, "periodic": True},
            "y": {
                "cells": 6,
                "length": 1,
                "lower": {"kind": "wall", "u": "swing*sin(6*x + time)"},
                "upper": "free_slip",
            },
        },
        derived={"thin": "nu/thinning"},
        viscosity="thin*(1 + shear_rate/(1 + shear_rate)) + thicker*heat**2",
        implicit=["y"],
        implicit_viscosity="3*thin*part",
        method="adams_bashforth",
        force={"x": "push*cos(time)*v", "y": "rise*heat*exp(-y)"},
        flow_rate="rate*(1 + time)",
        initial={"u": "start*sin(6*x)*y"},
        scalars={
            "heat": {
                "diffusivity": "kappa",
                "initial": "warm*y*cos(6*x)",
                "source": "-decay*heat*salt*u",
                "sides": {"y": {"lower": "hot*(1 + time*x)", "upper": {"flux": "loss*x"}}},
            },
            "salt": {"diffusivity": 0.1, "initial": "1 + y"},
        },
        parameters={
            **{"nu": 0.05, "thinning": 1.2, "thicker": 0.01, "part": 1.0, "swing": 0.5, "push": 0.7, "rise": 2.0},
            **{"rate": 0.4, "start": 0.6, "kappa": 0.08, "warm": 0.9, "decay": 3.0, "hot": 1.1, "loss": 0.3},
            "time_step": 0.02,
        },
    )


def body_in_stream(method):
    """A moving body in a stream, with a parameter in every formula of it."""
    return flow.system(
        axes={
            "x": {
                "cells": 16,
                "from": -1.5,
                "length": 3,
                "lower": {"kind": "inflow", "u": "stream*(1 + 0.1*sin(time + y))"},
                "upper": "outflow",
            },
            "y": {"cells": 16, "from": -1.5, "length": 3, "lower": "free_slip", "upper": "free_slip"},
        },
        viscosity="nu",
        initial={"stream_function": "stream*y + swirl*sin(x)*cos(y)**2"},
        obstacles={
            "body": {
                "shape": "ellipse",
                "half_axes": ["long", 0.4],
                "position": ["place + drift*time", "-0.1*drift"],
                "angle": "turned + turning*time",
                "spin": "rolling",
            }
        },
        obstacle_method=method,
        parameters={
            **{"nu": 0.1, "stream": 1.0, "swirl": 0.1, "long": 0.55, "place": -0.05, "drift": 0.4, "turned": 0.2},
            **{"turning": 0.5, "rolling": 0.3, "time_step": 0.03},
        },
    )


def value_of(simulation):
    state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
    weights = jax.tree.map(
        lambda f: jnp.sin(1.0 + jnp.arange(f.size, dtype=float)).reshape(f.shape), (state.velocity, state.scalar)
    )

    def value(params):
        state = simulation.init(params, jax.random.key(0))
        state = jax.lax.fori_loop(0, 3, lambda _, s: simulation.step(s, params), state)
        weighted = jax.tree.map(lambda f, w: jnp.sum(f * w), (state.velocity, state.scalar), weights)
        numbers = simulation.diagnose(state, params)
        loads = [x for name, x in numbers.items() if name.startswith("body.") or name == "drive"]
        return sum(jax.tree.leaves(weighted)) + sum(loads)

    return jax.jit(value)


@pytest.mark.parametrize(
    "made", [layer, lambda: body_in_stream("immersed_boundary"), lambda: body_in_stream("direct_forcing")]
)
def test_derivatives_with_respect_to_every_parameter_equal_central_differences(made):
    simulation = made()
    value = value_of(simulation)
    forward, reverse = (jax.jit(mode(value))(simulation.params) for mode in (jax.jacfwd, jax.grad))
    differences = central_difference(value, simulation.params, list(simulation.params))
    for name in simulation.params:
        assert float(reverse[name]) == pytest.approx(float(forward[name]), rel=1e-9, abs=1e-12), name
        assert abs(float(forward[name])) > 1e-7, f"{name} has no effect"
        assert float(forward[name]) == pytest.approx(differences[name], rel=1e-5, abs=1e-7), name
