"""The load on a body includes the force that acts inside it."""

import math

import jax
import numpy as np
import pytest

from simkit import flow
from simkit.core.rollout import trajectory

pytestmark = pytest.mark.usefixtures("x64")

RADIUS, METHODS = 0.3, ("immersed_boundary", "direct_forcing")
VOLUME = math.pi * RADIUS**2
OUTSIDE = f"where((x - 0.02)**2 + (y - 0.07)**2 < {RADIUS}**2, 0, push)"


def last(method, force, steps, sides):
    """The diagnostics after some steps of a flow past a rod, which starts at rest."""
    simulation = flow.system(
        axes={
            "x": {"cells": 24, "from": -1, "to": 1, **sides},
            "y": {"cells": 24, "from": -1, "to": 1, "lower": "wall", "upper": "wall"},
        },
        viscosity=0.2,
        force=force,
        obstacles={"rod": {"shape": "circle", "radius": RADIUS, "position": [0.02, 0.07]}},
        obstacle_method=method,
        largest_speed=1.0,
        parameters={"push": 1.0, "time_step": 0.01},
    )
    found = trajectory(simulation, steps, steps)(simulation.params, jax.random.key(0))[2]
    return {name: float(found[name][-1]) for name in found if np.ndim(found[name]) == 1}


@pytest.mark.parametrize("method", METHODS)
def test_a_body_in_fluid_at_rest_has_no_load_and_its_buoyancy_where_the_force_is_outside(method):
    walls = {"lower": "wall", "upper": "wall"}
    # Direct forcing leaves 1 % of the pressure of each stage.
    assert abs(last(method, {"y": "push"}, 20, walls)["rod.lift"]) < 1e-3
    # Archimedes; the volume of cells whose centers are outside is right to 2 %.
    assert last(method, {"y": OUTSIDE}, 20, walls)["rod.lift"] == pytest.approx(-VOLUME, rel=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_loads_and_friction_balance_the_force_on_the_whole_domain(method):
    whole, outside = (last(method, {"x": force}, 800, {"periodic": True}) for force in ("push", OUTSIDE))
    for found in (whole, outside):
        friction = 2 * (found["y_lower.shear_x"] + found["y_upper.shear_x"])
        assert found["rod.drag"] + friction == pytest.approx(4 * found["drive"], rel=2e-4)
    # The flow around the body is the same in both: its load differs by the force inside.
    assert whole["rod.drag"] - outside["rod.drag"] == pytest.approx(VOLUME, rel=0.03)
