"""Running means are the means of the samples, however a run is cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.averages import averaged
from simkit.core.ensemble import ensemble
from simkit.core.objective import Objective
from simkit.core.rollout import segment, trajectory
from simkit.errors import UserError
from tests.core.toys import oscillator

EVERY, SKIP = 3, 4


def sample(state, params):
    return {"square": state.position[0] ** 2 * params["frequency"], "position": state.position}


def mean_oscillator(every=EVERY, skip=SKIP):
    return averaged(
        oscillator(2),
        sample,
        every=every,
        skip=skip,
        observe=lambda mean, params: {"mean_position": mean["position"]},
        diagnose=lambda mean, params: {"mean_square": mean["square"]},
        dimensions={"mean_position": ("oscillator",)},
        coordinates={"oscillator": np.arange(2)},
    )


def test_means_are_those_of_the_samples_after_the_skipped_ones(x64):
    simulation, plain, samples, key = mean_oscillator(), oscillator(2), 20, jax.random.key(0)
    _, frames, found = jax.jit(trajectory(simulation, samples, 1))(simulation.params, key)
    _, positions, expected = jax.jit(trajectory(plain, samples * EVERY, EVERY))(plain.params, key)
    np.testing.assert_allclose(found["time"], expected["time"], rtol=1e-13)
    np.testing.assert_allclose(frames["position"], positions["position"], rtol=0, atol=1e-13)
    squares = np.asarray(positions["position"])[:, 0] ** 2 * 1.3
    for number in range(samples + 1):
        taken = squares[SKIP + 1 : number + 1]
        # Up to the first sample that counts, the start is shown.
        mean = taken.mean() if len(taken) else squares[0]
        assert float(found["mean_square"][number]) == pytest.approx(mean, rel=1e-12)
    last = np.asarray(positions["position"])[SKIP + 1 :].mean(axis=0)
    np.testing.assert_allclose(frames["mean_position"][-1], last, rtol=0, atol=1e-13)
    assert simulation.dimensions["mean_position"] == ("oscillator",)
    assert list(simulation.coordinates["oscillator"]) == [0, 1]


def test_cutting_a_run_changes_nothing_and_members_equal_single_runs(x64):
    simulation, key = mean_oscillator(), jax.random.key(1)
    start = simulation.init(simulation.params, key)
    run = jax.jit(segment(simulation, 5))
    twice = run(run(start, simulation.params), simulation.params)
    once = jax.jit(segment(simulation, 10))(start, simulation.params)
    for a, b in zip(jax.tree.leaves(twice.mean), jax.tree.leaves(once.mean), strict=True):
        np.testing.assert_array_equal(a, b)
    many = ensemble(simulation)
    keys = jnp.stack([key, jax.random.key(2)])
    together = jax.jit(segment(many, 10))(many.init(simulation.params, keys), simulation.params)
    np.testing.assert_allclose(together.mean["square"][0], once.mean["square"], rtol=1e-13)


def test_derivative_of_a_mean_equals_its_central_difference(x64):
    objective = Objective(mean_oscillator(), "mean_square", steps=12)
    found = gradient.check(objective, objective.simulation.params, jax.random.key(3), ["frequency", "time_step"])
    for name, difference in found.relative_difference.items():
        assert abs(found.derivative[name]) > 1e-3
        assert difference < 1e-6, name


@pytest.mark.parametrize(("values", "message"), [({"every": 0}, "every = 0"), ({"skip": -1}, "skip = -1 is negative")])
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(UserError, match=message):
        mean_oscillator(**values)
