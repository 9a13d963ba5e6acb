"""Derivatives of averages by fluctuations: on the command line, and stored."""

import pytest

from simkit.cli.main import main
from tests.tables import every

CLOUD = """
name = "cloud"
title = "Particles in a trap"
summary = "Particles that do not see each other, in a bath and a harmonic trap."
simulation = "molecular.system"

[config]
particles.A = { count = 64 }
start = { lattice = "square", repeats = [8, 8], spacing = 0.3 }
cell = { lengths = [9, 9], periodic = false }
fields = [{ energy = "k/2*(x**2 + y**2)" }]
task = "dynamics"
dynamics = { method = "langevin", time_step = 0.1, temperature = "warm", friction = 1.0 }

[params]
k = { default = 2.0, doc = "stiffness" }
warm = { default = 0.7, doc = "temperature" }

[run]
steps = 4000
every = 100

[objectives.potential_energy]
doc = "potential energy at the end"

[render]
view = "chart"
quantity = "potential_energy"
"""


@pytest.fixture
def cloud(tmp_path):
    """Return the path of the scenario file."""
    path = tmp_path / "cloud.toml"
    path.write_text(CLOUD)
    return path


@every(
    ("more", "words"),
    [
        (["--method", "fluctuation", "--check"], "--check is for a derivative through the steps"),
        (["--every", "5"], "--every is for averages"),
        (["--method", "fluctuation", "--every", "1000"], "leave fewer than 40 samples"),
        (["--method", "fluctuation", "--objective", "final(potential_energy)"], "is unknown"),
    ],
)
def test_options_of_the_other_method_are_refused(cloud, more, words, capsys):
    assert main(["grad", str(cloud), "--wrt", "warm", *more]) == 2
    assert words in capsys.readouterr().err
