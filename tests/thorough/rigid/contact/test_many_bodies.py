"""Impulses with near pairs: the same as with all pairs, derivatives, members, growth and programs for accelerators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit import rigid
from simkit.core.ensemble import ensemble
from simkit.core.rollout import segment
from simkit.errors import UserError

PAIRS = np.array([[0, 0, 0.101], [0.5, 0.03, 0.101], [0, 2, 0.101], [0.5, 2.05, 0.101], [0, 4, 0.101], [0.6, 4, 0.101]])
APPROACH = np.array([[1.0, 0, 0], [-1.0, 0, 0]] * 3)
LIFT = np.array([0, 0, 1e-4])
HEAP = LIFT + np.array(
    [[0, 0, 0.1], [0.2, 0, 0.1], [0.1, 0.174, 0.1], [0.1, 0.058, 0.264], [0.3, 0.174, 0.1], [0.5, 0.174, 0.1]]
)
BODIES = {"sphere": rigid.sphere, "box": lambda mass, radius, *surface: rigid.box(mass, 2 * radius, *surface)}


def scene(shape, rounds, place, velocity):
    """Return bodies on a floor with near pairs in rounds, or all pairs for 0."""
    return rigid.simulate(
        rigid.Scene(
            params={"gravity": 9.81, "time_step": 0.004, "speed": 1.0, "friction": 0.5},
            bodies=lambda params: rigid.repeat(BODIES[shape](1.0, 0.1, params["friction"], 0.5), len(place)),
            start=lambda params, bodies, key: rigid.motion_of(
                bodies,
                jnp.asarray(place) + 1e-5 * jax.random.uniform(key, place.shape),
                velocity=params["speed"] * jnp.asarray(velocity),
            ),
            dynamics=rigid.Impulses(12, impacts=2, rounds=rounds),
            planes=rigid.floor(),
            loads=(rigid.gravity(),),
            measures=lambda motion, bodies, time, params: {
                "spread": jnp.sum(motion.position.x**2 + motion.position.y * motion.position.z)
            },
        )
    )


@pytest.fixture(scope="module", autouse=True)
def float64():
    """Run the module in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def heap(float64):
    """Return a heap of spheres that slide apart, with near pairs."""
    velocity = np.random.default_rng(0).normal(0, 0.3, HEAP.shape) * [1, 1, 0]
    return scene("sphere", 8, HEAP, velocity)


@pytest.mark.parametrize("shape", ["sphere", "box"])
def test_bodies_that_meet_in_separate_pairs_move_as_with_all_pairs(shape):
    ends = []
    for rounds in (0, 4):
        simulation = scene(shape, rounds, PAIRS, APPROACH)
        state = simulation.init(simulation.params, jax.random.key(0))
        ends.append(jax.jit(segment(simulation, 200))(state, simulation.params).motion)
    for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
        # Momenta of order one after some dozen roundings.
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_agree_with_central_differences(heap, mode):
    objective = simkit.Objective(heap, "spread", steps=100)
    checked = simkit.check_gradient(
        objective, heap.params, jax.random.key(0), ["speed", "gravity", "friction"], mode=mode
    )
    assert max(checked.relative_difference.values()) < 1e-6


def test_members_move_as_alone(heap):
    keys = jax.random.split(jax.random.key(1), 3)
    many = ensemble(heap)
    states = jax.jit(segment(many, 50))(jax.jit(many.init)(many.params, keys), many.params)
    mapped = jax.jit(jax.vmap(segment(heap, 50), (0, None)))(
        jax.vmap(heap.init, (None, 0))(heap.params, keys), heap.params
    )
    alone = jax.jit(segment(heap, 50))
    for member, key in enumerate(keys):
        one = alone(heap.init(heap.params, key), heap.params)
        for several in (states, mapped):
            for a, b in zip(jax.tree.leaves(one.motion), jax.tree.leaves(several.motion), strict=True):
                np.testing.assert_allclose(a, b[member], rtol=0, atol=1e-13)


def test_a_run_that_needs_more_rounds_moves_as_one_that_had_them():
    velocity = np.zeros_like(HEAP)
    small = scene("sphere", 2, HEAP, velocity)
    grown = simkit.run(small, steps=40, every=10)
    enough = simkit.run(scene("sphere", 8, HEAP, velocity), steps=40, every=10)
    assert grown.attrs["failed"] == 0
    np.testing.assert_allclose(grown["position"], enough["position"], rtol=0, atol=1e-12)


def test_a_step_lowered_for_cuda_searches_without_condition():
    """As many conditions as without near pairs: the list is chosen, not computed under a condition."""
    counts = []
    for rounds in (0, 8):
        simulation = scene("sphere", rounds, HEAP, np.zeros_like(HEAP))
        state = jax.eval_shape(simulation.init, simulation.params, jax.random.key(0))
        text = jax.jit(simulation.step).trace(state, simulation.params).lower(lowering_platforms=("cuda",)).as_text()
        counts.append(text.count("stablehlo.case") + text.count("stablehlo.if"))
    assert counts[1] <= counts[0]


def test_spheres_that_overlap_at_the_start_are_refused_by_name():
    place = 0.21 * np.stack([np.arange(100), np.zeros(100), np.ones(100)], axis=1)
    place[7] = place[52] + [0.1, 0.02, 0]
    simulation = scene("sphere", None, place, np.zeros_like(place))
    with pytest.raises(UserError, match=r"7 \(sphere\)"):
        simulation.check(simulation.params, jax.random.key(0))
