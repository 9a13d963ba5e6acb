"""Words that a shell may complete, printed without importing jax."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


def completed(line, folder):
    """Return the words that may end a line, and the modules that were imported."""
    environment = os.environ | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_IFS": "\n"}
    environment |= {
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    words = folder / "words"
    command = [sys.executable, "-X", "importtime", "-m", "simkit.cli.main"]
    with words.open("w") as file:
        told = subprocess.run(
            ["bash", "-c", 'exec "$@" 8>&1 9>/dev/null >/dev/null', "-", *command],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd=folder,
        )
    return set(words.read_text().split()), {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}


def test_verbs_scenarios_parameters_objectives_and_runs_are_completed_without_jax(tmp_path):
    (tmp_path / "runs" / "ball").mkdir(parents=True)
    (tmp_path / "runs" / "ball" / "manifest.json").touch()
    lines = {
        "simkit re": {"resume", "render", "report"},
        "simkit run bouncing_b": {"bouncing_ball"},
        "simkit run bouncing_ball --set fric": {"friction="},
        "simkit grad bouncing_ball --wrt launch_speed,la": {
            f"launch_speed,launch_{n}" for n in ("angle", "height", "scatter")
        },
        "simkit optimize bouncing_ball --objective ": {"miss", "final_position"},
        "simkit status ": {"runs/ball"},
    }
    for line, words in lines.items():
        found, modules = completed(line, tmp_path)
        assert found == words, line
        assert "argcomplete" in modules and not modules & {"jax", "numpy", "xarray"}
