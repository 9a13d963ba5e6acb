"""Time steps that follow from the flow: what limits them, every combination of parts, and mistakes."""

import math

import numpy as np
import pytest

from tests.flow.description.test_adaptive_time_step import AROUND, ROOM, begun

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
    axes = {"x": AROUND, "y": {"cells": 10, "to": 1, "lower": "wall", "upper": "wall", **sides}}
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
