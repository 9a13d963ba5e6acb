"""Rendering of frames to a file."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.animate import parse_size, render
from simkit.render.style import stamps
from simkit.render.views import new_painter


def test_invalid_requests_are_refused_in_one_line(field_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    chosen, file = settings("field", "speed"), tmp_path / "a.gif"
    with pytest.raises(UserError, match="unknown format 'gfi'; did you mean 'gif'"):
        render(frames, diagnostics, coordinates, "Title", chosen, file, "gfi")
    with pytest.raises(UserError, match="no frames to draw"):
        render({}, diagnostics, coordinates, "Title", chosen, file)
    with pytest.raises(UserError, match="no frames to draw"):
        render({"speed": frames["speed"][:0]}, {"time": np.zeros(0)}, coordinates, "Title", chosen, file)
    with pytest.raises(UserError, match="size 5000x64 is out of range"):
        render(frames, diagnostics, coordinates, "Title", chosen, file, size=(5000, 64))
    assert not list(tmp_path.iterdir())


def test_sizes_are_read():
    assert parse_size("1280x720") == (1280, 720)
    assert parse_size(" 64 X 4096 ") == (64, 4096)
    for text in (
        "",
        "640",
        "640x",
        "x360",
        "640x360x2",
        "-640x360",
        "6e2x360",
        "640.5x360",
        "\N{FULLWIDTH DIGIT SIX}4x360",
    ):
        with pytest.raises(UserError, match="write for instance 1280x720"):
            parse_size(text)
    for text in ("63x360", "640x4097", "0x0", "999999x100"):
        with pytest.raises(UserError, match="64 to 4096"):
            parse_size(text)


def test_time_stamps_distinguish_frames():
    assert stamps({"time": np.arange(3) * 0.15}, 3, "s") == ["t = 0.00 s", "t = 0.15 s", "t = 0.30 s"]
    assert stamps({"time": np.float32([0, 0.1, 0.2])}, 3) == ["t = 0.0", "t = 0.1", "t = 0.2"]
    assert stamps({"time": np.array([0, 1e-6])}, 2) == ["t = 0.000e+00", "t = 1.000e-06"]
    assert stamps({"iteration": np.array([0, 40])}, 2) == ["iteration 0", "iteration 40"]
    assert stamps({}, 2) == ["frame 1", "frame 2"]
    assert stamps({"time": np.array([0.0, np.nan])}, 2) == ["t = 0.0", "t = nan"]


def test_a_long_title_is_shortened(field_run, settings):
    painter = new_painter(*field_run(2), "word " * 40, settings("field", "speed"))
    heading = next(text for text in painter.sheet.figure.texts if text.get_text().startswith("word"))
    assert heading.get_text().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert heading.get_window_extent().x1 < painter.sheet.stamp.get_window_extent().x0


def test_the_users_own_matplotlib_settings_change_nothing(field_run, settings):
    import matplotlib

    plain = new_painter(*field_run(2), "Title", settings("field", "speed")).image(1)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "font.family": "serif", "text.color": "red"}):
        changed = new_painter(*field_run(2), "Title", settings("field", "speed")).image(1)
    np.testing.assert_array_equal(changed, plain)
