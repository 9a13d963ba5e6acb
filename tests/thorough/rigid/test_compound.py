"""Runs of compound bodies: rest and tipping, the halves of a box, derivatives, batches, soft contact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import rigid

pytestmark = pytest.mark.usefixtures("x64")


def scene(parts, tilt="angle", method="impulses", **body):
    return rigid.system(
        bodies=[
            {"shape": "plane", "friction": 1.0},
            {"shape": "compound", "name": "whole", "parts": parts, "density": 800, **body},
        ],
        gravity=[f"-9.81*sin({tilt})", 0, f"-9.81*cos({tilt})"],
        method=method,
        measured=["whole"],
        parameters={"time_step": 0.005, "angle": 0.0, "foot": 0.2},
    )


COLUMN = {"shape": "box", "lengths": [0.1, 0.1, 0.4], "position": [0, 0, 0.2]}
FOOT = {"shape": "box", "lengths": ["foot", 0.1, 0.1], "position": ["0.05 + foot/2", 0, 0.05]}


def test_derivatives_of_principal_moments_and_axes_are_those_of_differences():
    def of(size):
        ball, rod = rigid.sphere(0.3, 0.1), rigid.capsule(0.4, 0.1, size)
        places = size * jnp.array([(0.0, -0.4, 0.1), (0.5, 0.1, 0.0)])
        made = rigid.compound([ball, rod], places, [(0.6, 0.8, 0, 0)] * 2)
        # Two moments of a dumbbell are equal, where a solver of eigenvalues has no derivative.
        dumbbell = rigid.compound([ball, ball], size * jnp.array([(0.0, 0.0, -0.5), (0.0, 0.0, 0.5)]))
        return jnp.stack([dumbbell.inertia.x, *jax.tree.leaves(made.inertia), *jax.tree.leaves(made.compound.given)])

    at = jax.jit(lambda size: (of(size), jax.jacfwd(of)(size), jax.jacfwd(jax.jacfwd(of))(size)))
    (_, slope, second), above, below = at(0.5), at(0.5 + 1e-5), at(0.5 - 1e-5)
    assert slope[0] == pytest.approx(0.3 * 0.5)  # d/dl of 2 m (l / 2)^2
    np.testing.assert_allclose(slope, (above[0] - below[0]) / 2e-5, atol=1e-8)
    np.testing.assert_allclose(second, (above[1] - below[1]) / 2e-5, atol=1e-6)


def test_an_l_tips_where_its_center_of_mass_is_not_supported():
    """Column and foot have their center of mass 0.1 m beside the edge of the column and 0.15 m above the ground."""
    simulation = scene([COLUMN, FOOT], method={"name": "impulses", "impacts": 0, "sweeps": 80})
    limit = np.arctan(0.1 / 0.15)
    swept = simkit.sweep(simulation, {"angle": [0.98 * limit, 1.02 * limit]}, steps=100)
    np.testing.assert_allclose(swept["whole.x"][:, 0, 0], 0.05, atol=1e-15)
    np.testing.assert_allclose(swept["whole.z"][:, 0, 0], 0.15, atol=1e-15)
    rests, tips = np.asarray(swept["whole.tilt"][:, 0, -1])
    # It stays as it was turned until the impulses have settled: by 3e-6 with 20 sweeps, 8e-8 with 80, 1e-12 with 320.
    assert rests < 1e-6
    assert tips > 0.03

    # The batch is its members one by one.
    alone = simkit.run(simulation, angle=1.02 * limit, steps=100)
    np.testing.assert_allclose(alone["whole.tilt"][-1], tips, rtol=1e-9)


def test_derivatives_of_an_l_that_tips_are_those_of_differences():
    simulation = scene([COLUMN, FOOT], method={"name": "impulses", "impacts": 0})
    _, slope = simkit.value_and_grad(simulation, ["foot", "angle"], objective="whole.tilt", steps=40, angle=0.65)
    step = 1e-6
    for name, at in (("foot", 0.2), ("angle", 0.65)):
        above, below = (
            float(simkit.run(simulation, steps=40, **{"angle": 0.65, name: at + sign * step})["whole.tilt"][-1])
            for sign in (1, -1)
        )
        assert slope[name] == pytest.approx((above - below) / (2 * step), rel=1e-5), name


def test_two_halves_of_a_box_fall_tumble_and_rest_as_the_box():
    half = {"shape": "box", "lengths": [0.1, 0.2, 0.3]}
    halves = [{**half, "position": [-0.05, 0, 0]}, {**half, "position": [0.05, 0, 0]}]
    start = {"position": [0, 0, 0.4], "orientation": [0.3, 0.5, 0], "angular_velocity": [0, 2, 1]}
    method = {"name": "impulses", "impacts": 0, "sweeps": 40}
    whole, both = (
        simkit.run(scene(parts, method=method, **start), steps=300, every=10)
        for parts in ([{**half, "lengths": [0.2, 0.2, 0.3]}], halves)
    )
    # Free flight to round-off; then the points are others, and with them the friction of a slide, of millimeters.
    for name in ("whole.x", "whole.z", "whole.tilt"):
        np.testing.assert_allclose(both[name][:4], whole[name][:4], atol=1e-13)
        np.testing.assert_allclose(both[name], whole[name], atol=0.02)
    np.testing.assert_allclose(both["whole.z"][-1], whole["whole.z"][-1], atol=1e-4)


def test_an_upright_dumbbell_bounces_softly_as_a_ball_of_its_mass():
    """And stays upright; without dissipation it returns to its height."""
    ball = {"shape": "sphere", "radius": 0.1}
    balls = [{**ball, "position": [0, 0, -0.2]}, {**ball, "position": [0, 0, 0.2]}]
    method = {"name": "compliant", "substeps": 40, "stiffness": 1e5}
    run = simkit.run(scene(balls, method=method, position=[0, 0, 0.5]), steps=200, every=2)
    heights = np.asarray(run["whole.z"])
    assert heights.min() < 0.3 and heights[40:].max() == pytest.approx(0.5, abs=1e-3)
    assert float(run["whole.tilt"].max()) < 1e-9
    assert set(np.asarray(run["contacts"]).tolist()) == {0, 1}
