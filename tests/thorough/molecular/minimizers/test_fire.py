"""FIRE on problems with known answers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular.minimizers import fire, fire2, largest_norm, start, step
from simkit.molecular.minimizers.fire import DEFAULTS, STABLE, longest_time_step
from tests.molecular.minimizers.test_fire import UNITS, evaluation, relax
from tests.tables import every


def test_a_steep_start_does_not_fly_apart(x64):
    def steep(position):
        # A twelfth-power repulsion from the origin at a hundredth of its range, inside a weak well.
        distance = jnp.linalg.norm(position, axis=-1, keepdims=True)
        return position / distance**14 - 0.1 * position

    before = start(fire(), jnp.array([[0.01, 0.0]]), evaluation(steep), UNITS)
    assert float(largest_norm(before.force)) > 1e25
    first = jax.jit(lambda state: step(fire(), state, evaluation(steep), UNITS))(before)
    moved = float(largest_norm(first.position - before.position))
    # The clamp, and one rounding.
    assert moved <= DEFAULTS.maximum_displacement * (1 + 1e-14)
    state = relax(steep, before.position, tolerance=1e-10)
    # Balance of r^-13 and 0.1 r.
    assert float(largest_norm(state.position)) == pytest.approx(10 ** (1 / 14), abs=1e-9)


@every("minimizer", [fire(), fire2()], ids=["fire", "fire2"])
@every("stiffest", [10.0, 100.0, 1000.0])
def test_a_stiffness_that_the_scale_does_not_know_shortens_the_time_step(x64, stiffest, minimizer):
    """Particles between pairs of the scale's stiffness and walls that are much stiffer."""
    curvatures = jnp.geomspace(0.1, stiffest, 20).reshape(10, 2)
    state = relax(
        lambda x: -curvatures * x,
        jnp.full((10, 2), 0.3),
        tolerance=1e-10,
        steps=int(60 * np.sqrt(10 * stiffest)),
        minimizer=minimizer,
    )
    assert float(largest_norm(state.force)) < 1e-10


def test_the_bound_on_the_time_step_follows_from_the_largest_curvatures_of_a_move(x64):
    curvatures = jnp.array([[1.0, 4.0], [25.0, 9.0]])
    before = start(fire(), jnp.zeros((2, 2)), evaluation(lambda x: -curvatures * x), UNITS)
    before = dataclasses.replace(before, longest_time_step=10.0)

    def after(move, sign=1):
        force = -sign * curvatures * move
        return float(longest_time_step(dataclasses.replace(before, trial=move), force, UNITS, 10.0))

    assert after(jnp.array([[0.0, 0.0], [0.1, 0.0]])) == pytest.approx(STABLE / 5, rel=1e-12)
    moves = jax.random.normal(jax.random.key(0), (50, 2, 2))
    assert all(STABLE / 5 < after(move) < STABLE for move in moves)
    assert after(moves[0], sign=-1) == after(moves[0]) and after(jnp.zeros((2, 2))) == 10
