"""The wheel, built from the source distribution and installed into an empty environment, does the uses of the README.

The dependencies come from the package index, so this takes minutes and a network.
"""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from tests.docs.pages import REPOSITORY


def call(*command, folder):
    """Return what a command prints, with neither this repository nor this environment on its path."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(part) for part in command], cwd=folder, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--outdir", folder / "dist", REPOSITORY, folder=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    assert len(list((folder / "dist").glob("*.tar.gz"))) == 1
    call(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    call(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, folder=folder)
    return folder, wheel


def test_the_wheel_holds_the_package_its_scenarios_and_nothing_else(installed):
    _, wheel = installed
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"simkit", "simkit_physics"}
    shipped = {name.rsplit("/", 1)[-1] for name in names if name.startswith("simkit/_scenarios/")}
    assert {path.name for path in (REPOSITORY / "scenarios").rglob("*.toml")} <= shipped
    assert wheel.stat().st_size < 4e6


def test_an_installed_wheel_lists_runs_and_differentiates(installed):
    folder, _ = installed
    simkit = folder / "venv/bin/simkit"
    where = call(folder / "venv/bin/python", "-c", "import simkit; print(simkit.__file__)", folder=folder)
    assert where.startswith(str(folder / "venv"))
    assert "bouncing_ball" in call(simkit, "list", folder=folder)
    call(simkit, "doctor", folder=folder)
    call(simkit, "run", "bouncing_ball", "--no-render", folder=folder)
    told = json.loads(call(simkit, "grad", "bouncing_ball", "--wrt", "spin", "--json", folder=folder))
    assert told["wrt"]["spin"]["derivative"] < 0
