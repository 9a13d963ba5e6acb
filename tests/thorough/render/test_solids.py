"""Ray intersections, shading and shadows of balls, capsules and boxes."""

import numpy as np
import pytest

from simkit.render.bodies.light import covered, lamp, shadow_of
from tests.every import every
from tests.render.scenes import ball, box, capsule
from tests.render.test_solids import TURNED, gap


@every("body", [ball(), capsule(orientation=TURNED), box(half=(0.3, 0.9, 0.6), orientation=TURNED)])
def test_the_middle_of_the_edge_of_a_shadow_is_the_outline_of_the_body(body):
    light, generator = lamp(-90), np.random.default_rng(0)
    shadow = shadow_of(body, light)
    far = -6.0
    middle = covered(shadow, shadow.place[:, None], np.array([far]))[0]
    for angle in generator.uniform(0, 2 * np.pi, 20):
        direction = np.array([np.cos(angle), np.sin(angle)])
        step = np.linspace(0, 2.5, 2001)
        rays = light.across.T @ (direction[:, None] * step)
        # A ray along the light meets the body if any of its points does.
        nearest = np.min([gap(body, rays + along * light.toward[:, None]) for along in np.linspace(-2, 2, 201)], axis=0)
        edge = step[np.flatnonzero(nearest < 0).max()]
        found = covered(shadow, direction[:, None] * step, np.full(len(step), far))
        # Points along a ray are 0.02 apart, which matters by its square over the size of the body.
        at_edge = np.interp(edge, step, found)
        strength = 1 / (1 + ((0.24 * 6 + 0.12 * shadow.narrow) / (3 * shadow.narrow)) ** 2)
        assert at_edge == pytest.approx(0.5 * strength, abs=0.02 * strength)
        assert found[-1] == 0
        assert middle >= found.max() - 1e-12
