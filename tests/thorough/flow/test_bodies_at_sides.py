"""Bodies that touch sides, span periodic axes, or lie across their ends."""

import jax
import pytest

from simkit import flow
from simkit.errors import UserError
from simkit.flow.boundary.domain import domain
from simkit.flow.grid import bounded_axis, periodic_axis
from simkit.flow.obstacles.body import Body
from simkit.flow.obstacles.direct_forcing import DirectForcing
from simkit.flow.obstacles.shapes import ball, superellipse
from tests.physics.test_backward_facing_step import channel


def test_bodies_may_span_a_periodic_axis_and_lie_across_its_ends_but_not_meet_their_images():
    span = domain((bounded_axis(12, 1.0), *(periodic_axis(12, 1.0),) * 2), (("wall", "wall"), None, None))

    def bodies(shape, *pivot):
        return DirectForcing(span, {"body": Body(lambda p: shape, lambda p: pivot)})

    bodies(ball((0.5, 0.1), 0.2), 0.5, 0.1, 0.3).check({})
    bodies(ball((0.5, 0.1, 0.9), 0.2), 0.5, 0.1, 0.9).check({})
    with pytest.raises(UserError, match="of its image along the periodic axis y"):
        bodies(lambda x, y, z: superellipse((0.5, 0.1), (0.2, 0.45))(x, y), 0.5, 0.1, 0.3).check({})


def test_a_body_on_walls_is_refused_where_fluid_is_given_to_flow_through_it_and_where_nothing_is_given():
    for simulation, message in (
        (channel("6*y*(1 - y)"), "covers a part of the lower side of axis x"),
        (channel(position=[4.4, 0], half_lengths=[1, 0.5]), "x = 4.5; .*walls and inflows alone, and this is an 'out"),
        (channel(attached=False), "beyond the side x = -1; .* or let it touch the side: attached = true"),
    ):
        with pytest.raises(UserError, match=message):
            simulation.check(simulation.params, jax.random.key(0))
    with pytest.raises(UserError, match="does not support bodies that are attached to sides; choose method direct"):
        flow.system(
            axes={
                "x": {"cells": 8, "to": 1.0, "periodic": True},
                "y": {"cells": 8, "to": 1.0, "lower": "wall", "upper": "wall"},
            },
            viscosity=0.1,
            obstacles={"box": {"shape": "box", "half_lengths": [0.3, 0.3], "position": [0.5, 0], "attached": True}},
            obstacle_method="immersed_boundary",
        )
