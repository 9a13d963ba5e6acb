"""Minimizers: limits of moves, bounds on the time step, and the number of evaluations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.molecular import minimizers
from simkit.molecular.minimizers import Scale, fire, fire2, largest_norm
from tests.molecular.minimizers.test_minimizers import (
    METHODS,
    cluster,
    overlapping,
    relax,
    relax_by_fire,
)
from tests.tables import every


@every("minimizer", [fire(), fire2()], ids=["fire", "fire2"])
@every("stiffest", [10.0, 100.0, 1000.0])
def test_a_stiffness_that_the_scale_does_not_know_shortens_the_time_step(x64, stiffest, minimizer):
    """Particles between pairs of the scale's stiffness and walls that are much stiffer."""
    curvatures = jnp.geomspace(0.1, stiffest, 20).reshape(10, 2)
    state = relax_by_fire(
        lambda x: -curvatures * x,
        jnp.full((10, 2), 0.3),
        tolerance=1e-10,
        steps=int(60 * np.sqrt(10 * stiffest)),
        minimizer=minimizer,
    )
    assert float(largest_norm(state.force)) < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_no_particle_moves_further_than_the_limit_even_from_a_near_coincidence(x64, method):
    evaluate, scale = cluster("lennard_jones")
    # Half way into the core, where the force is half the largest there is.
    position = overlapping(7).at[1].set(overlapping(7)[0] + 0.05 / 3**0.5)
    minimizer = minimizers.by_name(method)
    state = minimizers.start(minimizer, position, evaluate, scale)
    assert float(largest_norm(state.force)) > 1e14
    step = jax.jit(lambda state: minimizers.step(minimizer, state, evaluate, scale))
    for _ in range(30):
        # The largest limit among the methods, and a rounding.
        assert float(largest_norm(state.trial - state.position)) <= 0.2 * (1 + 1e-12)
        state = step(state)
    assert bool(jnp.isfinite(state.position).all())


def test_lbfgs_needs_no_more_than_264_evaluations_for_lennard_jones_38(x64):
    # OptBench's criterion, force norm 0.01, where the best published L-BFGS needs 176: at most half again as many.
    evaluate, scale = cluster("lennard_jones")
    minimizer = minimizers.lbfgs()
    # A ball twice as large as the close-packed one, with particles on top of each other.
    radius = 2 ** (1 / 6) * (2 * 3 * 38 / (4 * np.pi * 2**0.5)) ** (1 / 3)

    def run(key):
        direction, distance = jax.random.split(key)
        heading = jax.random.normal(direction, (38, 3))
        heading = heading / jnp.linalg.norm(heading, axis=-1, keepdims=True)
        start = radius * jax.random.uniform(distance, (38, 1)) ** (1 / 3) * heading
        return jax.lax.while_loop(
            lambda s: (jnp.linalg.norm(s.force) > 0.01) & (s.iteration < 2000),
            lambda s: minimizers.step(minimizer, s, evaluate, scale),
            minimizers.start(minimizer, start, evaluate, scale),
        )

    states = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 64))
    assert bool((jax.vmap(jnp.linalg.norm)(states.force) <= 0.01).all())
    assert float(states.iteration.mean()) + 1 <= 264
    # LJ38's global minimum is -173.928427; a start that evaporated would be far above -140.
    assert -173.93 < float(states.energy.min()) <= float(states.energy.max()) < -140


def test_conjugate_gradient_and_lbfgs_solve_a_quadratic_well_fast(x64):
    curvature = jnp.linspace(0.1, 10, 20)

    def well(position):
        return (curvature * position[:, 0] ** 2).sum() / 2, -curvature[:, None] * position

    counts = {}
    for method in METHODS:
        state = relax(method, well, Scale(length=10.0, stiffness=10.0), jnp.ones((20, 1)), 1e-10)
        assert float(largest_norm(state.position)) <= 1e-10 / 0.1
        counts[method] = int(state.iteration)
    # sqrt(condition number) = 10 e-folds twice per iteration pair: ln(1e11) * 10 / 2, with two evaluations each.
    assert counts["conjugate_gradient"] <= 260
    assert counts["lbfgs"] <= 130


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["lbfgs", "conjugate_gradient"])
def test_a_minimum_whose_energy_terms_cancel_is_reached(x64, method, seed):
    evaluate, scale = cluster("morse")
    lowest = relax("fire", evaluate, scale, overlapping(7, seed), 1e-12 * 72)

    def shifted(position):
        # The rounding stays that of the terms, of which the energy, 0 at the minimum, shows nothing.
        energy, force = evaluate(position)
        return energy - evaluate(lowest.position)[0], force

    away = lowest.position + 0.02 * jax.random.normal(jax.random.key(seed), lowest.position.shape)
    final = relax(method, shifted, scale, away, 1e-12 * 72, steps=1000)
    assert largest_norm(final.force) < 1e-12 * 72
