"""Picture and animation files: frames, size, speed, reproducible bytes, atomic writes."""

import numpy as np
from PIL import Image

from simkit.render.video import write_gif
from simkit.render.views import Pictures, new_painter


def test_one_hundred_frames_of_a_field_stay_below_two_megabytes(field_run, settings, tmp_path):
    painter = new_painter(*field_run(100), "Channel", settings("field", "speed"), (640, 360))
    write_gif(tmp_path / "a.gif", Pictures(painter, range(100)), 20.0)
    assert (tmp_path / "a.gif").stat().st_size < 2e6
    with Image.open(tmp_path / "a.gif") as file:
        file.seek(99)
        shown = np.asarray(file.convert("RGB"))
    error = np.abs(shown.astype(int) - painter.image(99))
    # Some forty colors for the 256 of the map: steps of six colors, three from the middle, 1 to 2 levels each.
    assert error.mean() < 4
    assert (shown[:10] == 255).all()
