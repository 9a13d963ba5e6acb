"""Rendering of frames to a file."""

import subprocess
import sys

import pytest
from PIL import Image

from simkit.render.animate import render
from tests.render.test_animate import check_bytes


def test_long_runs_are_thinned(field_run, settings, tmp_path):
    render(*field_run(9), "Title", settings("field", "speed"), tmp_path / "a.gif", "gif", (96, 64), maximum_frames=4)
    with Image.open(tmp_path / "a.gif") as file:
        assert file.n_frames == 4


def test_rendering_imports_neither_jax_nor_pyplot():
    code = (
        "import sys, numpy as np, simkit.render.chart, simkit.render.views as views\n"
        "from simkit.scenario.sections import RenderSettings\n"
        "settings = RenderSettings('field', 'u', 'u', '1', None, None, 20.0)\n"
        "x = np.arange(4.0)\n"
        "views.new_painter({'u': np.ones((1, 4, 4))}, {'time': [0]}, {'x': x, 'y': x}, 't', settings).image(0)\n"
        "print([name for name in ('jax', 'matplotlib.pyplot', 'xarray', 'scipy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("view", ["field", "particles", "bodies", "chart"])
@pytest.mark.parametrize("kind", ["gif", "mp4", "png"])
def test_every_view_renders_to_every_format_with_the_same_bytes(
    view, kind, field_run, particle_run, body_run, settings, tmp_path
):
    check_bytes(view, kind, field_run, particle_run, body_run, settings, tmp_path)
