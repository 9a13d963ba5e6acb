"""Weights of learned energies in a scenario file."""

import numpy as np
import pytest
import scipy.optimize

import simkit
from simkit.molecular.interactions.splines import basis
from simkit.scenario.made_in_python import load
from tests.molecular.description.test_weights import REACH, WEIGHTS, dimer


def test_a_file_has_weights_as_a_list_and_optimizes_them(x64, tmp_path):
    file = tmp_path / "pair.toml"
    file.write_text(
        f"""
name = "pair"
title = "A pair"
summary = "Two particles."
simulation = "molecular.system"
[config]
task = "dynamics"
particles.A = {{}}
start.positions = [[0.0, 0.0], [1.2, 0.0]]
dynamics = {{ method = "velocity_verlet", time_step = 0.001 }}
interactions = [{{ potential = "splines", reach = {REACH} }}]
[params]
weights = {{ default = {WEIGHTS.tolist()}, bounds = [-2, 2] }}
[run]
steps = 2
every = 2
precision = "float64"
[render]
view = "particles"
quantity = "species"
[quantities.deep]
expression = "(potential_energy + 0.5)**2"
unit = "energy^2"
doc = "square of the distance of the energy from -0.5"
[objectives.deep]
doc = "the same"
goal = "minimize"
"""
    )
    best = simkit.optimize(str(file), "weights", objective="deep", iterations=40)
    assert float(best["best_loss"][-1]) < 1e-8
    assert load(str(file)).config["interactions"][0]["potential"] == "splines"


def test_the_slope_of_the_energy_at_rest_by_weights_is_the_splines_at_its_bond(x64):
    system = dimer({"weights": "net.pair"}, {"net": {"pair": WEIGHTS}, "k": 1.0}, relax={"force_tolerance": 1e-9})
    energy, slope = simkit.value_and_grad(system, "net", objective="energy", steps=300)

    # The rest of the energy is the repulsion, (0.42 R / r)^12 (1 - (r / R)^2)^3.
    def closed(r):
        return (0.42 * REACH / r) ** 12 * (1 - (r / REACH) ** 2) ** 3 + basis(r, 6, REACH) @ WEIGHTS

    rest = scipy.optimize.minimize_scalar(closed, bounds=(1.0, 2.0), options={"xatol": 1e-9})
    np.testing.assert_allclose(slope["net.pair"], basis(np.asarray(rest.x), 6, REACH), atol=1e-7)
    assert energy == pytest.approx(float(rest.fun), rel=1e-12)
