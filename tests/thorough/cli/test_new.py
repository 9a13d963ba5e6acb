"""`simkit new` for simulations that take long to make, and for all of them."""

import pytest

from simkit.cli.main import main
from simkit.scenario.catalog import find_scenario, read_scenario
from simkit.scenario.registry import SIMULATIONS
from tests.cli.test_new import check_commented_lines, check_copy, new

__all__ = ["new"]


@pytest.mark.parametrize("source", ["taylor_green", "projectile"])
def test_a_copy_equals_its_original(source, new, tmp_path):
    check_copy(source, new, tmp_path)


@pytest.mark.parametrize(
    "source", ["flow.turbulent_channel", "molecular.basin_hopping", "couette_poiseuille", "projectile"]
)
def test_every_commented_line_may_be_enabled(source, new, tmp_path):
    check_commented_lines(source, new, tmp_path)


@pytest.mark.parametrize("source", ["flow.domain", "molecular.system", "rigid.mjcf"])
def test_a_simulation_that_needs_arguments_has_a_minimal_scenario(source, new, tmp_path):
    assert new("mine", "--from", source)[0] == 0
    assert len((tmp_path / "mine.toml").read_text().splitlines()) <= 45
    assert not read_scenario(tmp_path / "mine.toml").validations
    assert main(["check", "mine.toml"]) == 0


@pytest.mark.parametrize("source", SIMULATIONS.own)
def test_the_new_scenario_of_every_simulation_runs(source, new):
    assert new("mine", "--from", source)[0] == 0
    assert main(["check", "mine.toml"]) == 0
    assert main(["run", "mine.toml", "--no-render"]) == 0


def test_a_minimal_relaxation_has_the_steps_and_precision_to_converge(new, tmp_path):
    assert new("mine", "--from", "molecular.bubble_raft")[0] == 0
    run, known = read_scenario(tmp_path / "mine.toml").run, find_scenario("bubble_raft").run
    assert (run.steps, run.precision) == (known.steps, "float64")
