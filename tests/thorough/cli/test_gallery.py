"""Scenarios of users' files in one gallery."""

import json

from simkit.cli.main import main

FLOW = """
name = "lid"
title = "A lid"
summary = "A lid slides."
simulation = "flow.domain"
config.viscosity = 0.1
config.courant_number = 0.5
[config.axes]
x = { cells = 8, to = 1.0, lower = "wall", upper = "wall" }
y = { cells = 8, to = 1.0, lower = "wall", upper = { kind = "wall", u = 1 } }
[params]
time_step = 0.1
[run]
steps = 4
every = 1
[render]
view = "field"
quantity = "speed"
"""
PARTICLES = """
name = "pair"
title = "A pair"
summary = "Two charges repel each other in a trap."
simulation = "molecular.system"
[config]
dimension = 2
particles.charge = { count = 2, diameter = 0.15 }
start = { radius = 1.5, separation = 2.0 }
interactions = [{ energy = "1/r" }]
fields = [{ energy = "stiffness*(x**2 + y**2)" }]
relax = { force_tolerance = 1e-3 }
[params]
stiffness = 1.0
[run]
steps = 100
every = 1
[render]
view = "particles"
quantity = "species"
"""


def test_flows_and_particles_of_files_are_drawn_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in (("lid", FLOW), ("pair", PARTICLES)):
        (tmp_path / f"{name}.toml").write_text(text)
        assert main(["gallery", f"{name}.toml", "-o", "drawn"]) == 0
        card = json.loads((tmp_path / "drawn" / name / "card.json").read_text())
        assert card["command"] == f"simkit run {name}.toml" and card["diagnostics"]
    page = (tmp_path / "drawn" / "index.html").read_text()
    assert page.count("<img") == 2 and "simkit run lid.toml" in page and "simkit run pair.toml" in page
