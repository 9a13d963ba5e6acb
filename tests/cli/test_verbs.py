"""Verbs: printed output, written files and exit codes, on toys that compile in a second."""

import io
import json
import re
import sys

import numpy as np
import pytest

from simkit import open_run
from simkit.cli.main import main
from simkit.scenario import registry
from tests.tables import every
from tests.toys import PENDULUMS, SPRINGS, toys  # noqa: F401

PENDULUM = PENDULUMS.replace('view = "field"\nquantity = "position"', 'view = "chart"\nquantity = "energy"')
VALIDATION = """
[[validation]]
quantity = "time"
expected = {}
tolerance = 1e-6
source = "20 steps of 0.01"
"""
LARGEST = """
[quantities.largest_length]
doc = "the length, by a name that reports of failures show"
expression = "length"
"""


@pytest.fixture
def files(simkit, tmp_path):
    """Write the toys, and return the command line in their folder."""
    (tmp_path / "toy.toml").write_text(PENDULUM + VALIDATION.format(0.2))
    (tmp_path / "springs.toml").write_text(SPRINGS + LARGEST)
    return simkit


def test_list_names_every_scenario(simkit):
    ran = simkit("list")
    assert ran.code == 0
    assert all(name in ran.out for name in ("channel_flow", "soft_sphere_packing", "bouncing_ball"))
    listed = json.loads(simkit("list", "--json").out)
    assert {"name", "domain", "title", "summary", "tags"} <= set(listed["scenarios"][0])
    assert listed["problems"] == []


def test_simulations_are_listed_with_their_provider(simkit, monkeypatch, tmp_path):
    package = tmp_path / "packages" / "wave_kit-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: wave_kit\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[simkit.simulations]\nwaves.string = wave_kit:string\n")
    monkeypatch.syspath_prepend(package.parent)
    listed = {s["simulation"]: s for s in json.loads(simkit("list", "--simulations", "--json").out)["simulations"]}
    assert len(listed) == len(registry.FACTORIES) + 1
    assert listed["flow.turbulent_channel"]["scenarios"] == ["turbulent_channel"]
    assert listed["waves.string"]["provider"] == "package 'wave_kit'" != listed["flow.turbulent_channel"]["provider"]
    assert re.search(r"waves\.string +package 'wave_kit' +-\n", simkit("list", "--simulations").out)


def test_show_names_the_simulation_and_on_request_its_quantities(simkit):
    assert "simulation: rigid.bouncing_ball, from simkit" in simkit("show", "bouncing_ball").out
    shown = json.loads(simkit("show", "bouncing_ball", "--quantities", "--json").out)
    quantities = {(quantity["kind"], quantity["name"]): quantity for quantity in shown["quantities"]}
    assert quantities["diagnosed", "height"]["unit"] == "m"
    assert quantities["observed", "position"]["dimensions"] == {"body": 1, "space": 3}
    assert "position of the center" in simkit("show", "bouncing_ball", "--quantities").out


def test_show_repeats_the_file_in_its_hint(simkit, tmp_path):
    assert simkit("new", "mine", "--from", "bouncing_ball", "-o", "my file.toml").code == 0
    line = next(line for line in simkit("show", "my file.toml").out.splitlines() if line.startswith("observed arrays"))
    assert line == "observed arrays and diagnostics: simkit show 'my file.toml' --quantities"


@every("verb, folder", [("run", "NAME"), ("sweep", "NAME_sweep"), ("optimize", "NAME_optimize")])
def test_help_names_the_folder_that_is_written(simkit, verb, folder, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert f"(default: runs/{folder})" in " ".join(capsys.readouterr().out.split())


def test_show_gives_changed_values_with_their_bounds(simkit):
    shown = json.loads(simkit("show", "channel_flow", "--set", "reynolds=800", "--json").out)
    assert shown["parameters"]["reynolds"]["default"] == 800
    assert shown["parameters"]["reynolds"]["bounds"] == [1, 20000]
    assert "bulk Reynolds number" in simkit("show", "channel_flow").out


def test_run_draws_and_reports(files, tmp_path):
    ran = files("run", "toy.toml", "--json", "--size", "320x180", "--format", "png")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report["status"] == "ok"
    assert report["diagnostics"]["time"] == pytest.approx(0.2)
    assert (tmp_path / report["picture"]).read_bytes()[1:4] == b"PNG"
    assert open_run(report["directory"]).sizes["time"] == 11


def test_sweep_prints_a_table_and_writes_result_and_chart(files, tmp_path):
    words = ("sweep", "toy.toml", "--over", "frequency=0.1:10:3:log", "--seeds", "2")
    ran = files(*words, "--json")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report["members"] == 6
    assert (tmp_path / report["chart"]).read_bytes()[1:4] == b"PNG"
    result = open_run(report["directory"])
    assert result["energy"].dims == ("frequency", "seed", "frame")
    np.testing.assert_allclose(result["frequency"], [0.1, 1, 10])
    (tmp_path / report["chart"]).unlink()
    ran = files("resume", report["directory"], "--no-render")
    assert ran.code == 0 and "energy" in ran.out and not (tmp_path / report["chart"]).exists()


def test_objectives_of_a_sweep_are_in_json_with_the_reason_of_those_left_out(files, tmp_path):
    reduced = {"first": "first(energy)", "last_moment": "max(final(moment))", "largest_moment": "largest(max(moment))"}
    tables = (f'[objectives.{name}]\nexpression = "{text}"\n' for name, text in reduced.items())
    moment = '[quantities.moment]\ndoc = "an array"\nexpression = "position*pendulum"\n'
    named = '[objectives.at_the_end]\nquantity = "energy"\n'
    (tmp_path / "several.toml").write_text(PENDULUM + moment + named + "".join(tables))
    sweep = ("sweep", "several.toml", "--over", "frequency=1,2", "--json", "--overwrite", "--no-render")
    for words, missing in (((), ["largest_moment"]), (("--no-frames",), ["last_moment", "largest_moment"])):
        report = json.loads(files(*sweep, *words).out)
        assert {*report["objectives"]} == {"energy", "at_the_end", *reduced} - {*missing}
        assert report["objectives"]["at_the_end"] == report["objectives"]["energy"] == report["final"]["energy"]
        assert [*report["objectives_left_out"]] == missing
        for reason in report["objectives_left_out"].values():
            assert reason.endswith("or final(...) without --no-frames" if words else "or final(...)")


def test_a_failed_member_is_named_and_the_others_are_kept(files):
    # Descent with steps of 0.1 is unstable for springs as stiff as this.
    ran = files("sweep", "springs.toml", "--over", "stiffness=2,10", "--json", "--no-render")
    report = json.loads(ran.out)
    assert ran.code == 3
    assert report["status"] == [["converged"], ["non_finite"]]
    assert "member 1 (stiffness = 10, seed = 0) turned non-finite" in ran.err
    kept, lost = report["final"]["length"]
    assert np.isfinite(kept[0]) and lost == [None]


def test_grad_prints_a_central_difference_beside_each_derivative(files):
    words = ("grad", "toy.toml", "--wrt", "frequency,time_step", "--objective", "energy")
    for mode in ("reverse", "forward"):
        report = json.loads(files(*words, "--check", "--json", "--mode", mode).out)
        assert report["precision"] == "float64"
        for name in ("frequency", "time_step"):
            # Central differences of a smooth function in float64 are accurate to about 1e-10.
            assert report["wrt"][name]["relative_difference"] < 1e-7
    plain = files(*words)
    assert plain.code == 0
    assert "frequency" in plain.out and "central" not in plain.out


def test_a_derivative_that_is_not_defined_fails(files):
    ran = files("grad", "springs.toml", "--set", "steps=50", "--wrt", "rest")
    assert ran.code == 3
    assert "did not converge" in ran.line and "its derivative is not defined" in ran.line


def test_validate_compares_with_the_numbers_claimed(files, tmp_path):
    ran = files("validate", "toy.toml", "--json")
    (check,) = json.loads(ran.out)["checks"]
    assert ran.code == 0 and check["passed"]
    (tmp_path / "missed.toml").write_text(PENDULUM + VALIDATION.format(0.3))
    ran = files("validate", "toy.toml", "missed.toml")
    assert ran.code == 3
    assert ran.out.count("pass") == 1 and ran.out.count("MISS") == 1


def test_export_writes_a_program_that_agrees(files, tmp_path):
    ran = files("export", "toy.toml", "--to", "stablehlo", "--json")
    report = json.loads(ran.out)
    assert ran.code == 0 and report["passed"]
    assert report["runtimes"][0]["largest_error"] < 1e-12
    assert (tmp_path / "export/toy_pendulums-step/model.jaxexport").stat().st_size > 0


def test_a_package_that_is_missing_is_named_in_one_line(simkit, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "ase"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ase", None)
    ran = simkit("show", "silicon_vacancy", "--quantities")
    assert ran.code == 2
    assert "molecular.system" in ran.line and "ase" in ran.line and "simkit doctor" in ran.line


def test_help_and_version(simkit):
    assert all(verb in simkit("--help").out for verb in ("run", "sweep", "grad", "optimize", "resume"))
    assert simkit("--version").out.startswith("simkit ")


def test_output_in_a_narrow_encoding_is_escaped(tmp_path, monkeypatch):
    file, out = tmp_path / "\u03bc.toml", io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert main(["new", "mine", "--from", "projectile", "--output", str(file)]) == 0
    assert b"/\\u03bc.toml;" in out.getvalue()
    assert file.exists()
