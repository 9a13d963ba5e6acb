"""Derivatives of systems of molecules by the values of their terms, and the modes of ideal chains."""

import jax
import numpy as np
import pytest

import simkit
from simkit.core.gradient import check_gradient
from simkit.core.objective import Objective
from simkit.molecular import system
from tests.molecular.description.test_molecules import VALUES, made


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("task", ["relax", "dynamics"])
def test_values_of_terms_have_derivatives(x64, task, mode):
    keys = made(task=task)
    keys["interactions"] = [{**keys["interactions"][0], "ending": "switch"}]
    values = VALUES
    if task == "relax":
        # Dihedrals are undefined where three atoms lie on a line, which stops this minimization.
        for each in ("dihedrals", "impropers"):
            keys["molecules"]["tailed"].pop(each)
        values = {name: VALUES[name] for name in ("k", "b", "k_tail", "bend", "theta_0")}
        keys["relax"], steps = {"minimizer": "fire", "force_tolerance": 1e-12}, 5000
    else:
        keys["dynamics"], steps = {"method": "velocity_verlet", "time_step": 0.002, "temperature": 0.1}, 20
    simulation = system(**keys, parameters=values)
    objective = Objective(simulation, "potential_energy", steps=steps)
    checked = check_gradient(objective, simulation.params, jax.random.key(0), list(values), mode=mode)
    assert set(checked.verdict.values()) == {"agrees"}
    assert max(checked.relative_difference.values()) < 1e-6


def test_modes_of_an_ideal_chain_relax_as_damped_oscillators(x64):
    """The autocorrelation of mode p is that of an oscillator of frequency sqrt(4 k / m) sin(p pi / 2 N)."""
    size, chains, friction, stiffness, every, step = 6, 400, 1.5, 3.0, 10, 0.02
    simulation = system(
        particles={"bead": {}},
        molecules={
            "chain": {
                "atoms": {"bead": size},
                "count": chains,
                "exclude": "none",
                "bond_length": 1.0,
                "bonds": [{"potential": "harmonic", "members": "chain", "values": {"stiffness": "k", "length": 0}}],
            }
        },
        dimension=3,
        start={"radius": 5.0, "separation": 0},
        task="dynamics",
        dynamics={"method": "langevin", "time_step": step, "temperature": 1.0, "friction": friction},
        parameters={"k": stiffness},
    )
    run = simkit.run(simulation, steps=8000, every=every)
    x = run["position"].values[100:].reshape(-1, chains, size, 3)
    for p in range(1, size):
        shape = np.sqrt(2 / size) * np.cos(p * np.pi * (np.arange(size) + 0.5) / size)
        mode = np.einsum("tcid,i->tcd", x, shape)
        squared = 4 * stiffness * np.sin(p * np.pi / 2 / size) ** 2
        # <q^2> = k_B T / (m omega^2) in each dimension; 3 x 400 numbers and 700 frames, of which few are independent.
        np.testing.assert_allclose((mode**2).mean() * squared, 1, rtol=0.05)
        for lag in (5, 10, 20):
            time, root = lag * every * step, np.sqrt(complex(friction**2 / 4 - squared))
            swing = np.cosh(root * time) + friction / 2 / root * np.sinh(root * time)
            expected = np.exp(-friction * time / 2) * swing
            found = (mode[lag:] * mode[:-lag]).mean() / (mode**2).mean()
            assert abs(found - expected.real) < 0.02, (p, lag, found, expected)
