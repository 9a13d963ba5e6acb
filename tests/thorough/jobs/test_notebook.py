"""Notebook display of progress, runs, simulations and mistakes."""

import base64
import re

import xarray

import simkit
from simkit.scenario.made_in_python import load
from tests.toys import toy


def test_only_a_whole_run_is_displayed_with_its_animation():
    run = simkit.run(load("bouncing_ball", {"steps": 4, "every": 2}))
    html = run._repr_html_()
    data = re.search(r'src="data:image/gif;base64,([^"]+)"', html)
    assert data and base64.b64decode(data[1])[:4] == b"GIF8"
    assert "xr-wrap" in html and data[0] in run._repr_html_()
    assert "image/gif" not in run.isel(time=[0, 1])._repr_html_()
    assert isinstance(run, xarray.Dataset)
    # Frames that cannot be drawn are still data.
    assert "xr-wrap" in simkit.run(toy(steps=2, every=1)).assign_attrs(a=1)._repr_html_()
