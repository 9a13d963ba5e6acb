"""Verbs that need a shipped scenario, or take long."""

import json
import os
import re

import pytest

from simkit import UserError
from simkit.scenario import registry
from simkit.storage.manifest import imports
from tests.cli.test_verbs import LARGEST, PENDULUM, VALIDATION, files  # noqa: F401
from tests.toys import PENDULUMS, toys  # noqa: F401

FLOW = (
    *("channel_flow", "--set", "config.axes.x.cells=8", "--set", "config.axes.y.cells=8"),
    *("--set", "steps=40", "--set", "every=10"),
)


def test_show_lists_the_required_arguments_of_a_simulation(simkit, tmp_path):
    body = '<body><freejoint/><geom type="sphere" size="0.1"/></body>'
    (tmp_path / "ball.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    shown = json.loads(simkit("show", "rigid.mjcf", "--set", "model=@ball.xml", "--json").out)
    assert shown["config"]["model"].startswith("<mujoco>") and "gravity" in shown["parameters"]
    told = simkit("show", "rigid.mjcf", "--set", "engine=mjx")
    assert told.code == 2 and "config.model is missing" in told.line


def test_render_draws_another_quantity_within_limits(simkit, tmp_path):
    simkit("run", *FLOW, "--no-render")
    file, drawn = tmp_path / "picture.png", []
    words = ("render", "runs/channel_flow", "-o", "picture.png", "--size", "256x144")
    changes = ((), ("--limits", "-1", "3"), ("--quantity", "u"), ("--quantity", "divergence"))
    for options in changes:
        assert simkit(*words, *options).code == 0
        drawn.append(file.read_bytes())
    assert len(set(drawn)) == len(changes)


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


def test_doctor_shows_versions_devices_and_caches(simkit):
    report = json.loads(simkit("doctor", "--json").out)
    assert {"versions", "devices", "precision", "compilation_cache", "scenarios", "problems"} <= set(report)
    assert report["devices"] and report["accelerator_plugins"] and report["import_seconds"]["jax-md"] > 0


def test_resume_reports_like_the_optimization_that_began(simkit):
    ball = ("bouncing_ball", "--set", "steps=30", "--set", "every=10", "--wrt", "launch_speed")
    simkit("optimize", *ball, "--objective", "final_position", "--iterations", "2", "--no-render")
    ran = simkit("resume", "runs/bouncing_ball_optimize", "--no-render")
    assert ran.code == 0 and "best final_position" in ran.out


def test_an_optimum_that_no_run_may_start_from_is_reported_with_the_reason(simkit, monkeypatch):
    def refuse(scenario):
        raise UserError("bouncing_ball.toml: [params]: too fast")

    monkeypatch.setattr("simkit.cli.reports.optimization.Run", refuse)
    ball = ("bouncing_ball", "--set", "steps=30", "--set", "every=10", "--wrt", "launch_speed")
    ran = simkit("optimize", *ball, "--objective", "final_position", "--iterations", "2", "--size", "128x96")
    assert ran.code == 0 and "best final_position" in ran.out and "loss.png" in ran.out
    assert "warning: a run with these parameters is refused: bouncing_ball.toml: [params]: too fast" in ran.err


def test_doctor_finds_packages_that_are_installed_and_cannot_be_imported(simkit, monkeypatch, tmp_path):
    monkeypatch.setattr("simkit.storage.manifest.MODULES", {"numpy": "numpy", "ase": "ase_that_breaks"})
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
    assert imports(3.0)["ase"].is_late
    monkeypatch.setattr("simkit.storage.manifest.imports", lambda: imports(3.0))
    (problem,) = json.loads(simkit("doctor", "--json").out)["problems"]
    assert problem == "ase was not imported within 3 s; run simkit doctor again when the machine is idle"


def test_a_stored_run_is_resumed_with_its_report_and_drawn_without_its_simulation(files, tmp_path, monkeypatch):
    assert files("run", "toy.toml", "--no-render", "-o", "run").code == 0
    assert "ran all its steps" in files("resume", "run", "--no-render").out and not list(tmp_path.glob("run/*.png"))
    monkeypatch.delitem(registry.FACTORIES, "toy.pendulums")
    for kind, magic in {"png": b"PNG", "gif": b"GIF8", "webp": b"WEBP", "mp4": b"ftyp"}.items():
        ran = files("render", "run", "--format", kind, "--size", "256x144")
        assert ran.code == 0, kind
        assert magic in (tmp_path / ran.out.strip()).read_bytes()[:12]
    words = ("render", "run", "-o", "picture.png", "--size", "256x144")
    mistakes = {
        ("--format", "png", "--frame", "11"): "from -11 to 10",
        ("--quantity", "enery"): "--quantity = 'enery' is unknown; did you mean 'energy'?",
        ("--limits", "2", "1"): "--limits = [2, 1] ",
        ("--limits", "0", "inf"): "--limits",
        ("--limits", "low", "1"): "argument --limits: invalid float value: 'low'",
    }
    told = {options: files(*words, *options) for options in mistakes}
    assert not {each: ran for each, ran in told.items() if ran.code != 2 or mistakes[each] not in ran.line}


def test_a_run_that_fails_names_its_parameters(files):
    ran = files("run", "springs.toml", "--set", "stiffness=10", "--set", "every=1", "--no-render", "-o", "unstable")
    assert ran.code == 3 and "turned non-finite" in ran.line
    assert re.search(r"between step \d+, where largest_length = [-\d.e+]+, and step \d+, with rest", ran.line), ran.line
    ran = files("run", "springs.toml", "--set", "steps=50", "--no-render", "-o", "short")
    assert ran.code == 3 and "did not converge" in ran.line


def test_gallery_names_a_scenario_that_fails_and_draws_the_others(files, tmp_path):
    (tmp_path / "broken.toml").write_text(PENDULUMS.replace("toy_pendulums", "broken"))
    ran = files("gallery", "broken.toml", "toy.toml", "--output", "pictures", "--json")
    first, second = json.loads(ran.out)["scenarios"]
    assert ran.code == 3
    assert first["scenario"] == "broken" and first["animation"] is None
    assert first["failed"] and "view" in first["message"]
    assert second["message"].endswith("ran all its steps")
    animation = tmp_path / second["animation"]
    assert b"ftyp" in animation.read_bytes()[:12] and animation.stat().st_size < 2e6
    card = json.loads((tmp_path / "pictures/toy_pendulums/card.json").read_text())
    assert card["command"] == "simkit run toy.toml" and card["diagnostics"]
    page = (tmp_path / "pictures/index.html").read_text()
    assert "toy_pendulums/film.mp4" in page and "broken/film.mp4" not in page


def test_sweeps_have_no_animation(files, tmp_path):
    files("sweep", "toy.toml", "--over", "frequency=1,2", "--output", "swept")
    ran = files("export", "swept", "--to", "extended_xyz")
    assert ran.code == 2
    assert "and no particles with a position in space" in ran.line
    for option in (("--format", "png"), ("--size", "640x360")):
        ran = files("resume", "swept", *option)
        assert ran.code == 2
        assert f"{option[0]} is not for a sweep" in ran.line
    for option in (("--format", "gif"), ("--size", "640x360"), ("--frame", 1, "--format", "png")):
        ran = files("render", "swept", *option)
        assert ran.code == 2
        assert f"{option[0]} is not for a sweep" in ran.line
    ran = files("render", "swept", "-o", "x.gif")
    assert ran.code == 2
    assert "x.gif is not the name of a png file; name it x.png" in ran.line
    assert files("render", "swept", "--format", "png", "-o", "x.png").code == 0
    (chart := tmp_path / "swept/sweep.png").unlink()
    assert files("resume", "swept", "--no-render").code == 0
    assert not chart.exists()
    files("sweep", "toy.toml", "--seeds", "2", "--output", "seeds")
    ran = files("render", "seeds")
    assert ran.code == 2
    assert "no number was swept" in ran.line
