"""`simkit check` on files whose simulation is made several times, or is large."""

import json

from simkit.cli.main import main
from simkit.scenario.catalog import find_scenario

MIXTURE = """
name = "mixture"
title = "A mixture"
summary = "Two species in a box."
simulation = "molecular.system"
config.dimension = 2
config.task = "dynamics"
config.observd = ["energy_of_particle"]
config.cell = { lengths = [6.0, "breadth"] }
config.dynamics = { method = "bussy", time_step = 0.005, thermostat_time = 0.2, temperature = "cold + heat" }
config.interactions = [{ energy = "strength/rr**12", cutoff = 2.5, ending = "shift_force" }]
config.particles.A = { count = 4, diameter = 0.5 }
[params]
strength = 1.0
cold = 0.1
[run]
steps = 10
every = 3
[objectives.energy]
doc = "energy"
quantity = "enery"
[render]
view = "particles"
quantity = "speces"
"""


def test_a_mistake_repaired_for_the_search_adds_no_other(tmp_path, capsys):
    path = tmp_path / "mixture.toml"
    repairs = [("observd", "observed"), ("rr**", "r**"), ("+ heat", ""), ("bussy", "bussi"), ("every = 3", "every = 5")]
    repairs += [("enery", "energy"), ("speces", "species"), ('"breadth"', "6.0")]
    for kept in range(len(repairs)):
        text = MIXTURE
        for index, (wrong, right) in enumerate(repairs):
            text = text if index == kept else text.replace(wrong, right)
        path.write_text(text)
        assert main(["check", str(path)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_mistake_of_a_parameter_that_is_still_declared_hides_no_formula(tmp_path, capsys):
    path = tmp_path / "mixture.toml"
    path.write_text(MIXTURE.replace("[params]", '[params]\nweak = { default = 1.0, unit = "" }'))
    assert main(["check", str(path), "--json"]) == 2
    keys = [each["key"] for each in json.loads(capsys.readouterr().out)["mistakes"]]
    assert {"params.weak.unit", "config.interactions[0].energy", "config.dynamics.method"} <= set(keys)


def test_diagnostics_that_a_wrong_key_takes_away_are_no_mistakes(tmp_path, capsys):
    path = tmp_path / "heated_cavity.toml"
    path.write_text(find_scenario("heated_cavity").text.replace("sides.x", "sides.z"))
    assert main(["check", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "scalars.temperature.sides.z is along z, and the flow is plane" in line


def test_a_mistake_with_a_remedy_hides_no_other(tmp_path, capsys):
    path = tmp_path / "mixture.toml"
    path.write_text(MIXTURE)
    assert main(["check", str(path), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["mistakes"]
    assert sorted(each["key"] for each in found) == [
        *("config.cell.lengths[1]", "config.dynamics.method", "config.dynamics.temperature"),
        *("config.interactions[0].energy", "config.observd", "objectives.energy.quantity"),
        *("render.quantity", "run.steps"),
    ]
    # Each is the message about the file as it is written.
    marked = {each["key"]: each["message"] for each in found}
    assert "column 10 of 'strength/>>>rr**12'" in marked["config.interactions[0].energy"]
    assert "'heat' is not known here" in marked["config.dynamics.temperature"]


def test_a_shipped_scenario_is_checked_by_its_name(capsys):
    assert main(["check", "projectile"]) == 0
    assert main(["check", "projectle"]) == 2
    assert "did you mean 'projectile'?" in capsys.readouterr().err
