"""Finite differences with their error: correct derivatives pass and wrong ones fail, at any scale of parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core import gradient
from simkit.core.gradient import differences
from simkit.core.status import Status

pytestmark = pytest.mark.usefixtures("x64")


def weights():
    return {"w": jnp.array([1e-3, 0.0, 1.0, -2e-9]), "shift": jnp.array(0.0), "gain": jnp.array(2e-8)}


def network(params):
    w = params["w"]
    # A large value with small slopes: round-off dominates for steps of 1e-9.
    return 100.0 + jnp.sum(jnp.tanh(w * jnp.array([0.3, 2.0, 1.0, 5.0]) + params["shift"])) + jnp.sin(params["gain"])


class Wrong:
    """An objective whose derivative is off by one part in ten thousand for one of its weights."""

    converges = True

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, params, key):
        w = params["w"]
        off = jnp.zeros_like(w).at[0].set(self.factor - 1) * (w - jax.lax.stop_gradient(w))
        return network({**params, "w": w + off})

    def with_status(self, params, key):
        return self(params, key), jnp.int32(Status.OK)

    def continuation(self, params, key):
        return network


@pytest.mark.parametrize("bounds", [None, {"w": (-5.0, 5.0), "shift": (-1.0, 1.0), "gain": (0.0, 1.0)}])
def test_small_and_zero_entries_beside_large_ones_pass(bounds):
    checked = gradient.check_gradient(Wrong(1.0), weights(), jax.random.key(0), list(weights()), bounds=bounds)
    if bounds:
        # Without bounds, the scale of a parameter of 2e-8 is its own size, which no step can resolve.
        assert set(checked.verdict.values()) == {"agrees"}
    assert checked.verdict["w"] == checked.verdict["shift"] == "agrees"
    assert checked.relative_difference["w"] < 1e-8
    assert np.all(np.abs(checked.difference["w"] - checked.derivative["w"]) <= 3 * checked.error["w"])


@pytest.mark.parametrize("factor", [1.0001, 0.5, 0.0, -1.0])
def test_a_wrong_derivative_of_a_small_entry_is_caught(factor):
    checked = gradient.check_gradient(Wrong(factor), weights(), jax.random.key(0), ["w"])
    assert checked.verdict["w"] == "differs"


def test_noise_above_the_derivative_is_uncertain_and_not_wrong():
    # Noise from a hash of the bits of x, far larger than the change by the slope in any step.
    def noisy(params):
        return 1e-9 * params["x"] + jnp.sin(1e12 * params["x"])

    found = differences(noisy, {"x": jnp.array(0.7)}, ["x"])["x"]
    assert gradient.verdict_of(np.array(1e-9), found) == "uncertain"


def test_differences_stay_within_the_bounds():
    # NaN beyond its bounds; differentiated at a bound, next to a bound, and in between.
    def inside(params):
        x = params["x"]
        return jnp.where((x >= 0) & (x <= 4), jnp.exp(x), jnp.nan)

    for at in (0.0, 1e-9, 1.0, 4 - 1e-9, 4.0):
        found = differences(inside, {"x": jnp.array(at)}, ["x"], {"x": (0.0, 4.0)})["x"]
        assert abs(found.value - np.exp(at)) <= 3 * found.error < 1e-4


def test_cancellation_inside_a_function_counts_as_noise(x64):
    # Zero but for the rounding of terms of size 10: no difference of it says anything.
    def function(params):
        return (10.0 * params["p"] / 3.0) * 3.0 - 10.0 * params["p"]

    found = differences(function, {"p": jnp.asarray(9.81)}, ["p"])["p"]
    assert abs(found.value) <= found.error
    assert gradient.verdict_of(np.array(-3e-15), found) != "differs"
