"""Bubble rafts: elastic moduli and their derivatives with respect to the diameter ratio."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import simkit
from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import bubble_raft

pytestmark = pytest.mark.usefixtures("x64")
KEY = jax.random.key(0)


@functools.cache
def raft():
    return bubble_raft(repeats=(4, 3))


def measured(params):
    """Return what a raft of 24 bubbles has at rest."""
    simulation = raft()
    result = converge(simulation, 3000)(simulation.init(params, KEY), params)
    return {**simulation.diagnose(result.state, params), "status": result.status}


@functools.cache
def measured_with_slopes():
    """Return ``(ratio, packing_fraction) -> (slopes, values)`` of the shear modulus and the pressure, compiled once."""
    # A factory works with numbers, not with traced ones.
    defaults = raft().params

    def of_two(two):
        found = measured({**defaults, "diameter_ratio": two[0], "packing_fraction": two[1]})
        return jnp.stack([found["shear_modulus"], found["pressure"]]), found

    return jax.jit(jax.vmap(jax.jacfwd(of_two, has_aux=True)))


def at_the_start(exponent=2.5, **values):
    """Return the diagnostics of a raft before its first iteration."""
    simulation = bubble_raft(repeats=(4, 3), exponent=exponent).with_params(**values)
    return jax.jit(simulation.diagnose)(simulation.init(simulation.params, KEY), simulation.params)


# Between two contact changes of this raft: no contact opens or closes within 0.002 of it.
RATIO, PACKING_FRACTION = 1.2, 1.05


@pytest.fixture(scope="module")
def mixed():
    """Return slopes and values at a mixture, and four ratios around it."""
    with jax.enable_x64(True):
        ratios = RATIO + 1e-4 * np.array([0, -2, -1, 1, 2])
        return measured_with_slopes()(jnp.stack([jnp.asarray(ratios), jnp.full(5, PACKING_FRACTION)], axis=1))


@pytest.mark.parametrize("exponent", [2.0, 2.5])
def test_equal_bubbles_have_the_moduli_of_their_lattice_under_pressure(exponent):
    found = at_the_start(exponent, diameter_ratio=1, disorder=0, packing_fraction=1.0, stiffness=3.0, diameter=2.0)
    # Two neighbors at a distance r along each of three bonds; per bubble an area of sqrt(3) / 2 r^2. In units of k, d.
    r = math.sqrt(math.pi / (2 * math.sqrt(3)))
    slope, curvature = -((1 - r) ** (exponent - 1)), (exponent - 1) * (1 - r) ** (exponent - 2)
    unit = 3.0 / 2.0**2
    assert float(found["pressure"]) == pytest.approx(-math.sqrt(3) * slope / r * unit, rel=1e-12)
    for name in ("shear_modulus", "affine_shear_modulus"):
        assert float(found[name]) == pytest.approx(math.sqrt(3) / 4 * (curvature + 3 * slope / r) * unit, rel=1e-10)
    assert float(found["bulk_modulus"]) == pytest.approx(math.sqrt(3) / 2 * (curvature - slope / r) * unit, rel=1e-10)
    assert float(found["contact_number"]) == 6


def test_derivative_of_the_shear_modulus_equals_the_relaxed_difference(mixed):
    slopes, values = mixed
    assert (values["status"] == Status.CONVERGED).all()
    assert (values["contact_number"] == values["contact_number"][0]).all() and values["contact_number"][0] < 6
    at, far2, far1, next1, next2 = np.asarray(values["shear_modulus"])
    expected = (8 * (next1 - far1) - (next2 - far2)) / (12 * 1e-4)
    # Fourth order in 1e-4 over the distance to the next contact change, 0.002 or more: 6e-6, times a share of one
    # contact in seventy; forces known to 1e-13 give 1e-9.
    assert float(slopes[0, 0, 0]) == pytest.approx(expected, rel=1e-5)
    # What the bubbles take back by moving on their own is no small part.
    assert at < 0.95 * float(values["affine_shear_modulus"][0])


def test_bulk_modulus_is_the_derivative_of_the_pressure(mixed):
    slopes, values = mixed
    # A dp/dA = -phi dp/dphi: one from the strain of the cell, the other from the implicit derivative.
    expected = PACKING_FRACTION * float(slopes[0, 1, 1])
    assert float(values["bulk_modulus"][0]) == pytest.approx(expected, rel=1e-8)


def test_moduli_are_zero_before_the_raft_is_relaxed():
    found = at_the_start()
    assert float(found["max_force"]) > 1e-4
    assert [float(found[name]) for name in ("shear_modulus", "affine_shear_modulus", "bulk_modulus")] == [0, 0, 0]


def test_bubbles_that_do_not_touch_have_no_moduli():
    found = at_the_start(diameter_ratio=1, disorder=0, packing_fraction=0.85)
    assert float(found["max_force"]) == 0 and float(found["rattler_fraction"]) == 1
    assert np.isnan(float(found["shear_modulus"]))


@pytest.mark.parametrize("ratio", [1.0, 1.3])
def test_box_and_total_area_do_not_depend_on_the_diameter_ratio(ratio):
    simulation = raft().with_params(diameter_ratio=ratio, packing_fraction=1.0)
    seen = simulation.observe(simulation.init(simulation.params, KEY), simulation.params)
    area = math.pi / 4 * float(jnp.sum(seen["diameter"] ** 2))
    assert area == pytest.approx(24 * math.pi / 4, rel=1e-14)
    assert float(jnp.prod(seen["box"])) == pytest.approx(area, rel=1e-14)
    assert float(seen["diameter"].max() / seen["diameter"].min()) == pytest.approx(ratio, rel=1e-14)


def test_optimizer_finds_the_diameter_ratio_of_the_target_shear_modulus():
    wanted = {"repeats": [4, 3], "target_shear_modulus": 0.125}
    found = simkit.optimize("bubble_raft", "diameter_ratio", objective="miss", iterations=15, **wanted)
    # It is done where the gradient is below 1e-6 in units of a bounded coordinate, along which G changes by some 0.02.
    assert float(found["loss"][-1]) < (1e-6 / 0.02) ** 2
    best = float(found["best_diameter_ratio"][-1])
    assert 1.12 < best < 1.25
    run = simkit.run("bubble_raft", diameter_ratio=best, **wanted)
    assert float(run["shear_modulus"][-1]) == pytest.approx(0.125, abs=1e-4)
