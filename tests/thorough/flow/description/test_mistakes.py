"""Mistakes in the sizes of bodies held by an immersed boundary."""

from simkit.errors import UserError
from simkit.scenario.build import build
from simkit.scenario.made_in_python import load
from tests.flow.description import test_mistakes as quick
from tests.flow.flows import over
from tests.tables import lacking, misses, refusal


@over(quick.SIZES)
def test_sizes_of_immersed_bodies_that_are_not_above_zero_are_refused(body, message):
    return quick.test_sizes_of_bodies_that_are_not_above_zero_are_refused.check("immersed_boundary", body, message)


PLACES = {
    "x0": "obstacle 'rod' is outside the domain, or",
    "0.3 - hypot(x, y)": "obstacle 'rod' extends 1.07 beyond the side x = 0; leave at least two cells",
}


def test_the_only_obstacle_is_named_where_its_place_is_refused(tmp_path):
    path = tmp_path / "rod.toml"

    def check(distance, message):
        path.write_text(ROD.format(distance=distance))
        return lacking(refusal(UserError, lambda: build(load(path))), message)

    assert not misses([*PLACES.items()], check)


ROD = """
name = "rod"
title = "A rod"
summary = "A rod between walls."
simulation = "flow.domain"
params = {{ x0 = {{ default = 0.5, bounds = [0.0, 1.0] }}, time_step = 0.01 }}
run = {{ steps = 2, every = 1 }}
render = {{ view = "field", quantity = "speed" }}
[config]
viscosity = 0.1
axes.x = {{ cells = 16, length = 2.0, lower = "wall", upper = "wall" }}
axes.y = {{ cells = 16, length = 2.0, lower = "wall", upper = "wall" }}
obstacles.rod = {{ position = [1.0, 1.0], distance = "{distance}" }}
"""
