"""Rendering of frames to a file."""

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render.animate import render
from simkit.render.views import new_painter
from tests.render.test_animate import check_bytes
from tests.tables import every


@every("view, kind", [("field", "gif"), ("particles", "png"), ("bodies", "mp4"), ("chart", "png")])
def test_every_view_and_every_format_have_the_same_bytes_each_time(
    view, kind, field_run, particle_run, body_run, settings, tmp_path
):
    check_bytes(view, kind, field_run, particle_run, body_run, settings, tmp_path)


def test_a_png_shows_the_requested_frame(field_run, settings, tmp_path):
    run, chosen = field_run(5), settings("field", "speed")
    painter = new_painter(*run, "Title", chosen, (160, 120))
    for frame, index in ((-1, 4), (-5, 0), (2, 2)):
        render(*run, "Title", chosen, tmp_path / "a.png", "png", (160, 120), frame=frame)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), painter.image(index))
    for frame in (5, -6):
        with pytest.raises(UserError, match=f"frame {frame} is out of range; the run has frames 0 to 4"):
            render(*run, "Title", chosen, tmp_path / "a.png", "png", (160, 120), frame=frame)
