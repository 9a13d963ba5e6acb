"""Parts of flows from outside: one file for each kind, found by its entry point, works in files, checks and schemas."""

import dataclasses

import jax
import numpy as np
import pytest

from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.flow.description.test_parts import (
    BODY,
    flow_with,
    package,  # noqa: F401
)

FILE = """
name = "outside"
title = "Outside"
summary = "A flow made of parts of another package."
simulation = "flow.domain"
render = { view = "field", quantity = "speed" }
run = { steps = 2, every = 1, precision = "float64" }
[config]
viscosity = 0.5
axes.x = { cells = 8, length = 2.0, periodic = true }
axes.y = { cells = 8, to = 1.0, lower = { kind = "slippery", length = "slip" }, upper = { kind = "wall", u = 1 } }
initial.u = "(y + slip)/(1 + slip)"
[config.scalars.heat]
diffusivity = 0.1
initial = "(y + k)/(1 + k)"
sides.y = { lower = { cooled = 0, coating = "k" }, upper = 1 }
[params]
slip = { default = 0.3, doc = "slip length" }
k = { default = 0.25, doc = "coating" }
time_step = { default = 0.01, doc = "time step" }
"""


def test_a_side_and_a_scalar_side_from_outside_hold_their_exact_solutions_in_a_file(x64, tmp_path):
    path = tmp_path / "outside.toml"
    path.write_text(FILE)
    simulation = build(load(path))
    params = jax.tree.map(jax.numpy.asarray, simulation.params)

    @jax.jit
    def end(params):
        state = simulation.init(params, jax.random.key(0))
        state = simulation.step(simulation.step(state, params), params)
        return simulation.observe(state, params), simulation.diagnose(state, params)

    frames, numbers = end(params)
    y = np.asarray(simulation.coordinates["y"])
    # Both profiles are linear, which second differences and the slopes on the sides keep to round-off.
    assert np.asarray(frames["u"]) == pytest.approx(np.tile((y + 0.3) / 1.3, (8, 1)), abs=1e-13)
    assert np.asarray(frames["heat"]) == pytest.approx(np.tile((y + 0.25) / 1.25, (8, 1)), abs=1e-13)
    assert float(numbers["y_lower.shear_x"]) == pytest.approx(0.5 / 1.3, rel=1e-12)
    assert str(simulation.coordinates["sides"][2]) == "wall"


def test_a_shape_and_a_surface_from_outside_make_an_obstacle_with_its_coefficients(x64):
    heat = {"heat": {"diffusivity": 0.1}}
    more = {"scalars": {"heat": {"half_as_warm": "4*time"}}, "reference": {"speed": "2*q", "length": 0.25}}
    made = flow_with({"post": BODY | more}, scalars=heat)
    made.check_values(made.params, jax.random.key(0))
    params = jax.tree.map(jax.numpy.asarray, made.params)
    state = jax.jit(made.init)(params, jax.random.key(0))
    distance = np.asarray(jax.jit(made.observe)(state, params)["body_distance"])
    x = np.asarray(made.coordinates["x"])
    inside = (x[:, None] - 1) ** 4 + (x[None, :] - 1) ** 4 < 0.5**4
    assert ((distance < 0) == inside).all()
    # Loads as after a step; the dynamic pressure times the length is (2 q)^2 / 2 * 0.25 = 0.5.
    loaded = dataclasses.replace(state, load=jax.numpy.arange(1.0, len(state.load) + 1))
    numbers = jax.jit(made.diagnose)(loaded, params)
    for what in ("drag", "lift"):
        assert float(numbers[f"post.{what}_coefficient"]) == pytest.approx(
            2 * float(numbers[f"post.{what}"]), rel=1e-14
        )
