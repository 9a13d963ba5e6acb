"""Verbs: printed output, written files and exit codes."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from simkit import open_run
from simkit.cli.main import main
from simkit.scenario.registry import FACTORIES
from simkit.storage.software import import_failures

FLOW = (
    "channel_flow",
    "--set",
    "config.axes.x.cells=8",
    "--set",
    "config.axes.y.cells=8",
    "--set",
    "steps=40",
    "--set",
    "every=10",
)
# Cells so short that the Courant number is far above one: advection is unstable unless viscosity damps it.
UNSTABLE = (
    "channel_flow",
    "--set",
    "config.axes.x.cells=64",
    "--set",
    "config.axes.y.cells=16",
    "--set",
    "config.axes.x.length=1.0",
    "--set",
    "time_step=0.02",
)
UNSTABLE += ("--set", "forcing=0", "--set", "perturbation=0.5", "--set", "steps=1000", "--set", "every=50")
FEW_DISKS = tuple(word for name in ("small", "large") for word in ("--set", f"config.particles.{name}.count=8"))
BALL = ("bouncing_ball", "--set", "steps=30", "--set", "every=10")


def test_list_names_every_scenario(simkit):
    ran = simkit("list")
    assert ran.code == 0
    assert all(name in ran.out for name in ("channel_flow", "soft_sphere_packing", "bouncing_ball"))
    listed = json.loads(simkit("list", "--json").out)
    assert {"name", "domain", "title", "summary", "tags"} <= set(listed["scenarios"][0])
    assert listed["problems"] == []


def test_list_fits_a_terminal(simkit, monkeypatch, capsys):
    plain = simkit("list").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        main(["list"])
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns
        assert sorted(" ".join(lines[2:]).split()) == sorted(" ".join(plain.splitlines()[2:]).split())


def test_simulations_are_listed_with_their_provider(simkit, monkeypatch):
    entry = EntryPoint("waves.string", "wave_kit:string", "simkit.simulations")
    monkeypatch.setattr("simkit.scenario.registry.SIMULATIONS._entry_points", lambda: [entry])
    listed = {s["simulation"]: s for s in json.loads(simkit("list", "--simulations", "--json").out)["simulations"]}
    assert len(listed) == len(FACTORIES) + 1
    assert listed["flow.turbulent_channel"]["scenarios"] == ["turbulent_channel"]
    assert listed["waves.string"]["provider"] == "an installed package" != listed["flow.turbulent_channel"]["provider"]
    assert re.search(r"waves\.string +an installed package +-\n", simkit("list", "--simulations").out)


def test_show_names_the_simulation_and_on_request_its_quantities(simkit):
    assert "simulation: rigid.bouncing_ball, from simkit" in simkit("show", "bouncing_ball").out
    shown = json.loads(simkit("show", "channel_flow", "--quantities", "--json").out)
    quantities = {(quantity["kind"], quantity["name"]): quantity for quantity in shown["quantities"]}
    assert quantities["diagnosed", "bulk_velocity"]["unit"] == "U"
    assert quantities["observed", "speed"]["dimensions"] == {"x": 64, "y": 48}
    assert shown["arguments"]["wall_slope"] == "parabola"
    text = simkit("show", "channel_flow", "--quantities").out
    assert "config.wall_slope" in text and "flow rate per unit area" in text


def test_show_repeats_the_file_in_its_hint(simkit, tmp_path):
    assert simkit("new", "mine", "--from", "bouncing_ball", "-o", "my file.toml").code == 0
    line = next(line for line in simkit("show", "my file.toml").out.splitlines() if line.startswith("observed arrays"))
    assert line == "observed arrays and diagnostics: simkit show 'my file.toml' --quantities"


@pytest.mark.parametrize(("verb", "folder"), [("run", "NAME"), ("sweep", "NAME_sweep"), ("optimize", "NAME_optimize")])
def test_help_names_the_folder_that_is_written(simkit, verb, folder, capsys):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert f"(default: runs/{folder})" in " ".join(capsys.readouterr().out.split())


def test_show_lists_the_required_arguments_of_a_simulation(simkit, tmp_path):
    body = '<body><freejoint/><geom type="sphere" size="0.1"/></body>'
    (tmp_path / "ball.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    shown = json.loads(simkit("show", "rigid.mjcf", "--set", "model=@ball.xml", "--json").out)
    assert shown["config"]["model"].startswith("<mujoco>") and "gravity" in shown["parameters"]
    told = simkit("show", "rigid.mjcf", "--set", "engine=mjx")
    assert told.code == 2 and "config.model is missing" in told.line


def test_show_gives_changed_values_with_their_bounds(simkit):
    shown = json.loads(simkit("show", "channel_flow", "--set", "reynolds=800", "--json").out)
    assert shown["parameters"]["reynolds"]["default"] == 800
    assert shown["parameters"]["reynolds"]["bounds"] == [1, 20000]
    assert "bulk Reynolds number" in simkit("show", "channel_flow").out


def test_run_draws_and_reports(simkit, tmp_path):
    ran = simkit("run", *FLOW, "--json", "--size", "320x180")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report["status"] == "ok"
    assert report["diagnostics"]["divergence"] < 1e-4
    assert (tmp_path / report["picture"]).read_bytes()[:4] == b"GIF8"
    assert open_run(report["directory"]).sizes["time"] == 5


@pytest.mark.parametrize(("kind", "magic"), [("mp4", b"ftyp"), ("png", b"PNG"), ("gif", b"GIF8")])
def test_render_draws_a_stored_run_without_simulating(simkit, tmp_path, monkeypatch, kind, magic):
    simkit("run", *FLOW, "--no-render")

    def refuse(*arguments):
        raise AssertionError("rendering must not simulate")

    monkeypatch.setattr("simkit.scenario.build.build", refuse)
    ran = simkit("render", "runs/channel_flow", "--format", kind, "--size", "256x144")
    assert ran.code == 0
    assert magic in (tmp_path / ran.out.strip()).read_bytes()[:12]


def test_a_frame_that_does_not_exist_is_refused(simkit):
    simkit("run", *FLOW, "--no-render")
    ran = simkit("render", "runs/channel_flow", "--format", "png", "--frame", "9")
    assert ran.code == 2
    assert "0 to 4" in ran.line


def test_sweep_prints_a_table_and_writes_result_and_chart(simkit, tmp_path):
    ran = simkit("sweep", *FLOW, "--over", "reynolds=100:1000:3:log", "--seeds", "2", "--json")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report["members"] == 6
    assert (tmp_path / report["chart"]).read_bytes()[1:4] == b"PNG"
    result = open_run(report["directory"])
    assert result["bulk_velocity"].dims == ("reynolds", "seed", "frame")
    np.testing.assert_allclose(result["reynolds"], [100, 10**2.5, 1000])
    assert "bulk_velocity" in simkit("sweep", *FLOW, "--over", "reynolds=1,2", "--overwrite").out


def test_render_draws_another_quantity_within_limits(simkit, tmp_path):
    simkit("run", *FLOW, "--no-render")
    file, drawn = tmp_path / "picture.png", []
    words = ("render", "runs/channel_flow", "-o", "picture.png", "--size", "256x144")
    changes = ((), ("--limits", "-1", "3"), ("--quantity", "u"), ("--quantity", "divergence"))
    for options in changes:
        assert simkit(*words, *options).code == 0
        drawn.append(file.read_bytes())
    assert len(set(drawn)) == len(changes)
    mistakes = {
        ("--quantity", "sped"): "--quantity = 'sped' is not stored in this run; did you mean 'speed'?",
        ("--limits", "2", "1"): "--limits = 2 1 is not allowed; give two finite numbers, the smaller first",
        ("--limits", "0", "inf"): "--limits = 0 inf is not allowed",
        ("--limits", "low", "1"): "argument --limits: invalid float value: 'low'",
    }
    for options, message in mistakes.items():
        ran = simkit(*words, *options)
        assert ran.code == 2 and message in ran.err and len(ran.err.strip().splitlines()) == 1


def test_a_sweep_without_render_draws_no_chart(simkit, tmp_path):
    ran = simkit("sweep", *BALL, "--over", "launch_speed=2,3", "--no-render", "-o", "swept")
    assert ran.code == 0 and (tmp_path / "swept" / "sweep.nc").exists()
    assert not list((tmp_path / "swept").glob("*.png"))


def test_a_failed_member_is_named_and_the_others_are_kept(simkit):
    ran = simkit("sweep", *UNSTABLE, "--over", "reynolds=1,20000", "--json")
    report = json.loads(ran.out)
    assert ran.code == 3
    assert report["status"] == [["ok"], ["non_finite"]]
    assert "member 1 (reynolds = 20000, seed = 0) turned non-finite" in ran.err
    assert np.isfinite(report["final"]["bulk_velocity"][0][0])


def test_a_run_that_turns_non_finite_stops_and_names_its_parameters(simkit):
    ran = simkit("run", *UNSTABLE, "--set", "reynolds=20000", "--no-render")
    assert ran.code == 3
    message = ran.err.splitlines()[-1]
    assert "turned non-finite" in message
    assert re.search(r"between step \d+, where largest_velocity = [\d.e+]+, and step \d+, with reynolds", message)


def test_a_run_that_does_not_converge_fails(simkit):
    ran = simkit("run", "soft_sphere_packing", *FEW_DISKS, "--set", "steps=20", "--no-render")
    assert ran.code == 3
    assert "did not converge" in ran.line


def test_grad_prints_a_central_difference_beside_each_derivative(simkit):
    words = ("grad", *FLOW, "--wrt", "reynolds,forcing", "--objective", "flow_rate", "--check", "--json")
    for mode in ("reverse", "forward"):
        report = json.loads(simkit(*words, "--mode", mode).out)
        assert report["precision"] == "float64"
        for name in ("reynolds", "forcing"):
            # Central differences of a smooth function in float64 are accurate to about 1e-10.
            assert report["wrt"][name]["relative_difference"] < 1e-7
    plain = simkit("grad", *FLOW, "--wrt", "reynolds")
    assert plain.code == 0
    assert "reynolds" in plain.out and "central" not in plain.out


def test_a_derivative_that_is_not_defined_fails(simkit):
    ran = simkit("grad", "soft_sphere_packing", *FEW_DISKS, "--set", "steps=20", "--wrt", "packing_fraction")
    assert ran.code == 3
    assert "did not converge" in ran.line and "its derivative is not defined" in ran.line


def test_optimize_finds_the_throw_and_draws_before_and_after(simkit, tmp_path):
    words = ("optimize", "bouncing_ball", "--set", "time_step=0.1", "--set", "steps=36", "--set", "every=3")
    ran = simkit(*words, "--wrt", "launch_speed", "--objective", "miss", "--json")
    report = json.loads(ran.out)
    assert ran.code == 0
    # The motion is exact at any time step, so the solution is that of the scenario's own steps (stated in its file).
    assert report["best"]["launch_speed"] == pytest.approx(5.134860358, rel=1e-6)
    assert report["loss"][0] > 1e6 * report["best_loss"]
    for picture in report["pictures"].values():
        assert (tmp_path / picture).read_bytes()[1:4] == b"PNG"


def test_an_optimum_that_no_run_may_start_from_is_reported_with_the_reason(simkit, monkeypatch):
    from simkit import UserError
    from simkit.cli.reports import optimization

    def refuse(*scenarios):
        raise UserError("bouncing_ball.toml: [params]: too fast")

    monkeypatch.setattr(optimization, "_before_and_after", refuse)
    words = ("optimize", *BALL, "--wrt", "launch_speed", "--objective", "final_position", "--iterations", "2")
    ran = simkit(*words, "--size", "128x96")
    assert ran.code == 0 and "best final_position" in ran.out and "loss.png" in ran.out
    assert "warning: a run with these parameters is refused: bouncing_ball.toml: [params]: too fast" in ran.err


def test_resume_reports_like_the_verb_that_began(simkit):
    simkit("run", *BALL, "--no-render")
    simkit("sweep", *BALL, "--over", "launch_speed=3,4")
    simkit(
        "optimize", *BALL, "--wrt", "launch_speed", "--objective", "final_position", "--iterations", "2", "--no-render"
    )
    for name, words in {
        "bouncing_ball": "ran all its steps",
        "bouncing_ball_sweep": "launch_speed",
        "bouncing_ball_optimize": "best final_position",
    }.items():
        ran = simkit("resume", f"runs/{name}", "--no-render")
        assert ran.code == 0
        assert words in ran.out


def test_validate_compares_with_the_numbers_claimed(simkit, tmp_path):
    ran = simkit("validate", "bouncing_ball", "--json")
    checks = json.loads(ran.out)["checks"]
    assert ran.code == 0
    assert all(check["passed"] for check in checks)
    assert simkit("validate", "bouncing_ball").out.count("pass") == len(checks)


def test_a_number_that_is_missed_fails(simkit, tmp_path):
    from simkit.scenario.catalog import find_scenario

    text = find_scenario("bouncing_ball").text.replace("tolerance = 1e-9", "tolerance = 1e-30")
    (tmp_path / "strict.toml").write_text(text)
    ran = simkit("validate", "./strict.toml")
    assert ran.code == 3
    assert "MISS" in ran.out


def test_export_writes_a_program_that_agrees(simkit, tmp_path):
    ran = simkit("export", *BALL, "--to", "stablehlo", "--json")
    report = json.loads(ran.out)
    assert ran.code == 0 and report["passed"]
    assert report["runtimes"][0]["largest_error"] < 1e-12
    assert (tmp_path / "export/bouncing_ball-step/model.jaxexport").stat().st_size > 0


def test_gallery_renders_a_scenario_and_an_index(simkit, tmp_path):
    ran = simkit("gallery", "bouncing_ball", "--output", "pictures")
    assert ran.code == 0
    animation = tmp_path / "pictures/bouncing_ball/animation.gif"
    assert animation.read_bytes()[:4] == b"GIF8"
    assert animation.stat().st_size < 2e6
    assert "bouncing_ball/animation.gif" in (tmp_path / "pictures/index.html").read_text()


def test_gallery_names_a_scenario_that_fails_and_draws_the_others(simkit, tmp_path):
    simkit("run", *BALL, "--no-render")
    shown = (tmp_path / "runs/bouncing_ball/scenario.toml").read_text()
    (tmp_path / "broken.toml").write_text(
        shown.replace('name = "bouncing_ball"', 'name = "broken"').replace('view = "bodies"', 'view = "field"')
    )
    ran = simkit("gallery", "broken.toml", "bouncing_ball", "--output", "pictures", "--json")
    first, second = json.loads(ran.out)["scenarios"]
    assert ran.code == 3
    assert first["scenario"] == "broken" and first["animation"] is None
    assert "view" in first["status"]
    assert second["status"].endswith("ran all its steps") and (tmp_path / second["animation"]).exists()


def test_doctor_shows_versions_devices_and_caches(simkit):
    report = json.loads(simkit("doctor", "--json").out)
    assert {"versions", "devices", "precision", "compilation cache", "scenarios", "problems"} <= set(report)
    assert report["devices"]


def test_doctor_finds_packages_that_are_installed_and_cannot_be_imported(simkit, monkeypatch, tmp_path):
    monkeypatch.setattr("simkit.storage.software.MODULES", {"numpy": "numpy", "ase": "ase_that_breaks"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    broken = tmp_path / "ase_that_breaks.py"
    broken.write_text("print('chatter')\n")
    assert "ase" not in " ".join(json.loads(simkit("doctor", "--json").out)["problems"])
    broken.write_text("raise OSError('libm.so.6: no such file')")
    ran = simkit("doctor", "--json")
    assert ran.code == 3
    (problem,) = json.loads(ran.out)["problems"]
    assert problem.startswith("ase cannot be imported: OSError: libm.so.6: no such file; pip install")
    broken.write_text("import time; time.sleep(60)")
    assert import_failures(3.0)["ase"] == "not imported within 3 s"


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


def test_output_in_a_narrow_encoding_is_escaped(tmp_path):
    words = [sys.executable, "-m", "simkit.cli.main", "run", *BALL, "--no-render", "--output", str(tmp_path / "\u03bc")]
    ran = subprocess.run(words, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"/\\u03bc\n" in ran.stdout
    assert (tmp_path / "\u03bc" / "summary.json").exists()
