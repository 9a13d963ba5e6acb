"""Derivatives with respect to a parameter in every formula of `flow.domain`."""

import jax
import jax.numpy as jnp
import pytest

from simkit import flow
from tests.differences import central_difference

pytestmark = pytest.mark.usefixtures("x64")


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
    forward = jax.jit(jax.jacfwd(value))(simulation.params)
    differences = central_difference(value, simulation.params, list(simulation.params))
    for name in simulation.params:
        assert abs(float(forward[name])) > 1e-7, f"{name} has no effect"
        assert float(forward[name]) == pytest.approx(differences[name], rel=1e-5, abs=1e-7), name


def test_reverse_mode_equals_forward_mode():
    simulation = layer()

    def value(params):
        state = simulation.init(params, jax.random.key(0))
        state = simulation.step(simulation.step(state, params), params)
        return jnp.sum(state.velocity[0] ** 2) + jnp.sum(state.scalar["heat"] ** 2) + state.drive

    reverse, forward = (jax.jit(mode(value))(simulation.params) for mode in (jax.grad, jax.jacfwd))
    for name, slope in forward.items():
        assert float(reverse[name]) == pytest.approx(float(slope), rel=1e-10, abs=1e-12), name
