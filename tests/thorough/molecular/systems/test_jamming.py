"""Onset of jamming: stages, derivatives, units, and refused arguments."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge, converge_with_growth
from simkit.core.status import Status
from simkit.molecular import jamming as jamming_of
from simkit.molecular.systems import jamming
from simkit.molecular.systems.jamming import STAGES

MAX_STEPS = 40_000


@functools.cache
def prepared():
    """Return a small packing that ends well above the onset, where contacts do not come and go, and two ways there."""
    made = jamming_of(particles=32, force_tolerance=1e-11).with_params(pressure=1e-2, packing_fraction=0.9)

    @jax.jit
    def from_start(params, key):
        result = converge(made, MAX_STEPS)(made.init(params, key), params)
        return result, made.diagnose(result.state, params)

    @jax.jit
    def again(state, params):
        result = converge(made, MAX_STEPS)(state, params)
        return result.status, made.diagnose(result.state, params)

    return made, from_start, again


@pytest.mark.parametrize("start", [0.8, 0.95])
def test_boxes_that_shrink_and_that_swell_reach_the_final_pressure(x64, start):
    made, from_start, _ = prepared()
    params = made.params | {"packing_fraction": jnp.asarray(start)}
    result, end = from_start(params, jax.random.key(1))
    assert int(result.status) == Status.CONVERGED
    assert int(result.state.stage) == STAGES
    # To the force tolerance, 1e-11, times the number of disks over the widths of the box: a few times that.
    assert float(end["pressure"]) == pytest.approx(1e-2, rel=1e-10)
    assert float(end["max_force"]) < 1.01e-13
    # p = 0.01 is some 0.03 above the onset of a small packing, 0.84 give or take 0.01.
    assert 0.845 < float(end["packing_fraction"]) < 0.895


def test_the_box_is_constant_until_the_disks_are_relaxed(x64):
    made, _, _ = prepared()

    @jax.jit
    def follow(key):
        def body(state, _):
            fraction = made.diagnose(state, made.params)["packing_fraction"]
            return made.step(state, made.params), (state.stage, fraction)

        return jax.lax.scan(body, made.init(made.params, key), None, length=400)[1]

    stages, fractions = map(np.asarray, follow(jax.random.key(0)))
    held = fractions[stages == 0]
    assert 20 < len(held) < 400
    # The strain stays exactly zero, and its projection to a rounding.
    np.testing.assert_allclose(held, 0.9, rtol=1e-15)
    assert set(np.diff(stages)) <= {0, 1}
    assert fractions[-1] != held[-1]


@pytest.mark.parametrize("name", ["pressure", "diameter_ratio"])
def test_implicit_derivative_of_the_packing_fraction_equals_the_relaxed_difference(x64, name):
    made, from_start, again = prepared()
    result, _ = from_start(made.params, jax.random.key(0))
    assert int(result.status) == Status.CONVERGED

    def fraction(value):
        return again(result.state, made.params | {name: value})[1]["packing_fraction"]

    value = made.params[name]
    step = 1e-5 * value
    difference = (fraction(value + step) - fraction(value - step)) / (2 * step)
    assert abs(difference) > 1e-3
    # Forces left at 1e-13 of a stiffness of order 0.1 move the packing fraction by 1e-14 or so beside a change of 1e-7
    # and more; truncation is 1e-10; a contact that opened or closed within the step would show as 1e-5 or more.
    assert float(jax.grad(fraction)(value)) == pytest.approx(float(difference), rel=1e-5)


def test_the_result_does_not_depend_on_the_initial_box_and_the_units(x64):
    made, from_start, again = prepared()
    result, end = from_start(made.params, jax.random.key(0))

    def fraction(changes):
        return again(result.state, made.params | changes)[1]["packing_fraction"]

    names = ["packing_fraction", "stiffness", "small_diameter"]
    slopes = jax.grad(fraction)({name: made.params[name] for name in names})
    # The linear solve ends at 2e-12; slopes with respect to pressure and diameter ratio are of order one.
    assert abs(float(slopes["packing_fraction"])) < 1e-9
    assert float(slopes["stiffness"]) == float(slopes["small_diameter"]) == 0.0
    stiffness, diameter = 3.7e-3, 2.9e4
    units = {"stiffness": jnp.asarray(stiffness), "small_diameter": jnp.asarray(diameter)}
    same, rescaled = from_start(made.params | units, jax.random.key(0))
    assert int(same.iterations) == int(result.iterations)
    # The same numbers in other units, one rounding apart per product.
    for name, unit in {"pressure": stiffness / diameter**2, "energy": stiffness, "packing_fraction": 1.0}.items():
        assert float(rescaled[name]) == pytest.approx(unit * float(end[name]), rel=1e-14)


def test_an_overflow_does_not_change_the_result(x64, monkeypatch):
    def end_of(room):
        monkeypatch.setitem(jamming.USUAL_NEIGHBORS, 2, room)
        made = jamming_of(particles=136, force_tolerance=1e-2).with_params(pressure=1e-2)
        larger, result = converge_with_growth(made, 5000)(made.params, jax.random.key(0))
        assert int(result.status) == Status.CONVERGED
        return result, larger.diagnose(result.state, made.params)

    # The longer list adds only zeros to the sums: the same path to the last bit.
    small, large = end_of(6), end_of(24)
    assert 6 < small[0].state.relaxation.neighbors.index.shape[0] < 24
    assert int(small[0].iterations) == int(large[0].iterations)
    assert float(small[1]["packing_fraction"]) == float(large[1]["packing_fraction"])
