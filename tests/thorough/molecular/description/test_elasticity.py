"""Elastic constants of systems described as data, against published values and derivatives of other quantities."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from simkit.core.converge import converge
from simkit.core.status import Status
from simkit.molecular import bubble_raft, system

pytestmark = pytest.mark.usefixtures("x64")

# eV / angstrom^3 in GPa (CODATA 2018).
GIGAPASCAL = 160.2176634
OBSERVED = {"observed": ["elastic_constants"]}
SILICON = {
    "particles": {"Si": {}},
    "start": {"lattice": "diamond", "repeats": [2, 2, 2], "spacing": "1.02*2**(1/6)*sigma", "disorder": 0.1},
    "interactions": [{"potential": "stillinger_weber"}],
    "relax": {"cell": True, "force_tolerance": 4e-12},
    "parameters": {"epsilon": 2.1683, "sigma": 2.0951, "tetrahedral_strength": 21.0},
}
# One cubic cell of four atoms, smaller than the cut-off: its images interact, too.
ONE_CELL = {
    "particles": {"A": {}},
    "start": {"lattice": "face_centered_cubic", "repeats": [1, 1, 1], "spacing": 1.05},
    "interactions": [{"potential": "lennard_jones", "cutoff": 4, "switch_on": 0.625, "tail": True}],
    "relax": {"cell": True, "pressure": "pressure", "force_tolerance": 1e-12},
    "parameters": {"epsilon": 1.0, "sigma": 1.0, "pressure": 2.0},
}
# Equal Hertzian disks, compressed.
DISKS = {
    "particles": {"A": {}},
    "start": {"lattice": "triangular", "repeats": [4, 3]},
    "cell": {"density": f"packing_fraction/{math.pi / 4}"},
    "interactions": [{"potential": "soft_sphere", "exponent": 2.5, "values": {"epsilon": 1, "sigma": 1}}],
    "parameters": {"packing_fraction": 1.08},
}


def at_rest(simulation, **values):
    """Return the diagnostics of the relaxed system."""

    @jax.jit
    def run(params):
        result = converge(simulation, 400)(simulation.init(params, jax.random.key(0)), params)
        return result.status, simulation.diagnose(result.state, params)

    status, numbers = run(simulation.with_params(**values).params)
    assert int(status) == Status.CONVERGED
    return {name: float(value) for name, value in numbers.items()}


def test_relaxed_silicon_has_its_published_elastic_constants():
    found = at_rest(system(**SILICON, **OBSERVED))
    cubic = [found[name] * GIGAPASCAL for name in ("c11", "c12", "c44", "bulk_modulus")]
    # Balamane, Halicioglu, Tiller, doi:10.1103/PhysRevB.46.2250.
    assert cubic == pytest.approx([151.4, 76.4, 56.4, 101.4], rel=0.01)
    # The relaxation ends at forces of 1e-10.
    for names in (("c11", "c22", "c33"), ("c12", "c13", "c23"), ("c44", "c55", "c66")):
        np.testing.assert_allclose([found[name] for name in names], found[names[0]], rtol=1e-8)
    assert abs(found["c14"]) < 1e-8 and abs(found["c45"]) < 1e-8


def test_a_shear_modulus_has_the_derivative_of_its_central_difference():
    simulation = system(**DISKS, **OBSERVED)

    def shear(fraction):
        params = {"packing_fraction": fraction}
        state = converge(simulation, 400)(simulation.init(params, jax.random.key(0)), params).state
        return simulation.diagnose(state, params)["c66"]

    value, slope = jax.jit(jax.value_and_grad(shear))(jnp.asarray(1.08))
    step = 1e-4
    below, above = (float(jax.jit(shear)(1.08 + shift)) for shift in (-step, step))
    # Second order: the relative error of the difference is about (step / 0.17)^2, 0.17 above the first contact.
    assert float(slope) == pytest.approx((above - below) / (2 * step), rel=1e-5)
    assert float(slope) > float(value) > 0


def test_the_bulk_modulus_of_one_cell_is_the_derivative_of_its_volume_by_pressure():
    simulation = system(**ONE_CELL, **OBSERVED)
    found = at_rest(simulation)

    @jax.jit
    def volume(pressure):
        params = {**simulation.params, "pressure": pressure}
        state = converge(simulation, 400)(simulation.init(params, jax.random.key(0)), params).state
        return simulation.diagnose(state, params)["volume"]

    slope = float(jax.jit(jax.grad(volume))(2.0))
    assert found["bulk_modulus"] == pytest.approx(-found["volume"] / slope, rel=1e-8)
    # Cauchy's relation of central forces at a pressure: c12 - c44 = 2 p. The uniform tail of pairs beyond the cut-off,
    # 0.3 % of the energy, acts on the volume alone and keeps it only as far as it is an isotropic sum of pairs.
    assert found["c12"] - found["c44"] == pytest.approx(2 * 2.0, abs=0.02 * found["c44"])


def test_disks_have_the_moduli_of_the_bubble_raft_of_equal_bubbles():
    found = at_rest(system(**DISKS, **OBSERVED))
    raft = at_rest(bubble_raft(repeats=[4, 3]), diameter_ratio=1.0)
    for name in ("shear_modulus", "bulk_modulus"):
        # Both end at forces below 1e-10.
        assert found[name] == pytest.approx(raft[name], rel=1e-8)
    assert {name for name in found if name[0] == "c" and name[1:].isdigit()} == {
        "c11",
        "c12",
        "c16",
        "c22",
        "c26",
        "c66",
    }
    # Isotropic in the plane, at its pressure.
    assert found["c11"] - found["c12"] == pytest.approx(2 * found["c66"], rel=1e-8)


def test_elastic_constants_are_undefined_before_the_system_is_at_rest():
    start = {**DISKS["start"], "disorder": 0.1}
    simulation = system(**{**DISKS, "start": start}, **OBSERVED)
    numbers = jax.jit(simulation.diagnose)(
        jax.jit(simulation.init)(simulation.params, jax.random.key(0)), simulation.params
    )
    assert math.isnan(float(numbers["c11"])) and math.isfinite(float(numbers["energy"]))


def test_a_crystal_of_one_atom_per_cell_has_the_constants_of_two():
    """A single atom has nothing to relax, so that its constants are those of affine strain."""
    morse = {"energy": "epsilon*(exp(-8*(r-1)) - 2*exp(-4*(r-1)))", "cutoff": 1.9, "ending": "shift_force"}
    found = []
    for count in (1, 2):
        simulation = system(
            particles={"A": {"count": count}},
            start={"positions": [[0.05 + shift, 0.0] for shift in range(count)]},
            cell={"vectors": [[float(count), 0], [0.5, 0.85]]},
            dimension=2,
            interactions=[morse],
            relax={"force_tolerance": 1e-12},
            parameters={"epsilon": 1.0},
            **OBSERVED,
        )
        state = jax.jit(simulation.init)(simulation.params, jax.random.key(0))

        def constants(params, simulation=simulation, state=state):
            values = simulation.diagnose(state, params)
            return jnp.stack([values[name] for name in ("bulk_modulus", "shear_modulus", "c11", "c12", "c66")])

        if count == 1:
            values, slope = jax.jit(lambda params, of=constants: jax.jvp(of, (params,), (params,)))(simulation.params)
            # All of them are proportional to the energy, whose parameter is 1.
            np.testing.assert_allclose(slope, values, rtol=1e-9)
        else:
            values = jax.jit(constants)(simulation.params)
        found.append(values)
    assert found[0][0] > 1
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)
