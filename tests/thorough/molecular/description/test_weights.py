"""Weights of learned energies in a scenario file."""

import simkit
from simkit.scenario.made_in_python import load
from tests.molecular.description.test_weights import REACH, WEIGHTS


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
