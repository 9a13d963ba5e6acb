"""Packings of soft disks, small ones, jammed ones and those with neighbor lists: force balance and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import jamming as jamming_of
from simkit.molecular.systems.jamming import STAGES
from tests.molecular.packings import packing
from tests.molecular.resting import at_rest
from tests.physics.test_relaxed_derivatives import check_implicit_derivative

MAX_STEPS = 20_000


def test_observed_disks_fill_the_box_to_the_packing_fraction(x64):
    simulation = packing(particles=32)
    params = simulation.with_params(packing_fraction=0.87, diameter_ratio=1.7, small_diameter=0.3).params
    observed = simulation.observe(simulation.init(params, jax.random.key(0)), params)
    area = np.pi / 4 * (observed["diameter"] ** 2).sum()
    # A sum of 32 terms and a square root: a few roundings.
    assert float(area / observed["box"].prod()) == pytest.approx(0.87, rel=1e-13)
    assert sorted(set(np.asarray(observed["diameter"]).round(12))) == [0.3, 0.51]
    assert bool(jnp.all((observed["position"] >= 0) & (observed["position"] <= observed["box"])))
    for name, dimensions in simulation.dimensions.items():
        assert observed[name].ndim == len(dimensions)


def test_pressure_is_minus_the_volume_derivative_of_the_relaxed_energy(x64):
    simulation = packing(particles=32, force_tolerance=1e-13)
    result, diagnostics = at_rest(simulation, steps=MAX_STEPS)

    @jax.jit
    def energy_at(packing_fraction):
        params = {**simulation.params, "packing_fraction": packing_fraction}
        return simulation.diagnose(converge(simulation, MAX_STEPS)(result.state, params).state, params)["energy"]

    packing_fraction, step = simulation.params["packing_fraction"], 1e-5
    slope = (energy_at(packing_fraction + step) - energy_at(packing_fraction - step)) / (2 * step)
    # V = A / phi, so p = -dE/dV = phi^2 / A dE/dphi, with A the area of the disks.
    area = np.pi / 4 * 16 * (1 + 1.4**2)
    pressure = packing_fraction**2 / area * slope
    # Truncation of the difference, 1e-10 times a third derivative of order 1e3 of an energy of order 0.1.
    assert diagnostics["pressure"] == pytest.approx(float(pressure), rel=1e-6)


@pytest.mark.parametrize("name", ["packing_fraction", "diameter_ratio", "stiffness", "small_diameter"])
@pytest.mark.parametrize("exponent", [2.0, 2.5])
def test_implicit_derivative_of_the_pressure_equals_the_relaxed_difference(x64, exponent, name):
    check_implicit_derivative(exponent, name, forward_too=True)


JAMMING_STEPS = 40_000


@functools.cache
def prepared():
    """Return a small packing that ends well above the onset, where contacts do not come and go, and two ways there."""
    made = jamming_of(particles=32, force_tolerance=1e-11).with_params(pressure=1e-2, packing_fraction=0.9)

    @jax.jit
    def from_start(params, key):
        result = converge(made, JAMMING_STEPS)(made.init(params, key), params)
        return result, made.diagnose(result.state, params)

    @jax.jit
    def again(state, params):
        result = converge(made, JAMMING_STEPS)(state, params)
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


def test_derivative_of_a_listed_packing_equals_the_relaxed_difference(x64):
    check_implicit_derivative(2.0, "packing_fraction", forward_too=False, particles=136)


def test_four_thousand_disks_relax_in_single_precision():
    simulation = packing(particles=4096, force_tolerance=1e-4)
    end = at_rest(simulation, steps=10_000)[1]
    # The kept force and the one worked out anew differ by round-off, 1e-6.
    assert end["max_force"] < 1.02e-4
    # O'Hern et al.: Z = 3.98 + (3.6 +- 0.5) (0.9 - 0.842)^0.5; weak contacts open late, so forces of 1e-4 add little.
    assert end["contact_number"] == pytest.approx(4.847, abs=0.12)
