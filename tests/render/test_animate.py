"""Rendering of frames to a file, and text on pictures: any text is drawn, quickly and without warnings."""

import numpy as np
import pytest

from simkit.errors import UserError
from simkit.render.animate import parse_size, render
from simkit.render.style import drawable, fit, shown_unit, stamps
from simkit.render.views import new_painter
from tests.tables import every


def test_invalid_requests_are_refused_in_one_line(field_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    chosen, file = settings("field", "speed"), tmp_path / "a.gif"
    with pytest.raises(UserError, match="format = 'gfi' is unknown; did you mean 'gif'"):
        render(frames, diagnostics, coordinates, "Title", chosen, file, "gfi")
    with pytest.raises(UserError, match="no frames to draw"):
        render({}, diagnostics, coordinates, "Title", chosen, file)
    with pytest.raises(UserError, match="no frames to draw"):
        render({"speed": frames["speed"][:0]}, {"time": np.zeros(0)}, coordinates, "Title", chosen, file)
    with pytest.raises(UserError, match="side of the size 5000x64 = 5000 is not an integer from 64 to 4096"):
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


def test_the_users_own_matplotlib_settings_change_nothing(field_run, settings):
    import matplotlib

    plain = new_painter(*field_run(2), "Title", settings("field", "speed")).image(1)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "font.family": "serif", "text.color": "red"}):
        changed = new_painter(*field_run(2), "Title", settings("field", "speed")).image(1)
    np.testing.assert_array_equal(changed, plain)


def test_mathematics_that_parses_and_lone_dollars_stay_as_they_are():
    for text in (r"viscosity $\nu = \frac{1}{Re}$", "5 $ for one", "no mathematics"):
        assert drawable(text) == text


def test_characters_that_cannot_be_drawn_are_replaced_without_a_warning(field_run, settings, recwarn):
    text = "emoji \U0001f9ea, \u6f22\u5b57, \u05d0\u05d1, tab\there\nnext\x1b[31m\u202e"
    assert drawable(text) == "emoji \ufffd, \ufffd\ufffd, \u05d0\u05d1, tab here next [31m"
    run, chosen = field_run(2), settings("field", "speed", label=text, unit=text)
    new_painter(*run, text, chosen, (320, 180)).image(0)
    assert not [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)]


def test_shortening_does_not_cut_through_mathematics(field_run, settings):
    painter = new_painter(*field_run(2), "title", settings("field", "speed"), (320, 180))
    heading = painter.sheet.figure.texts[-1]
    for length in range(20, 400, 20):
        heading.set(text=r"flow at $\mathrm{Re} = 10^{4}$ and $\alpha = \frac{1}{2}$ in a long channel", fontsize=12)
        fit(heading, length)
        assert heading.get_text().count("$") % 2 == 0


@every(
    ("unit", "shown"),
    [
        ("1", ""),
        ("m/s^2", "m/s²"),
        ("u_tau^3/h", "u_τ³/h"),
        ("sigma sqrt(mass/epsilon)", "\N{GREEK SMALL LETTER SIGMA} √(mass/ε)"),
        ("kg m^-1", "kg m⁻¹"),
        (r"$\nu^2$", r"$\nu^2$"),
        ("energy/length^d", "energy/length^d"),
    ],
)
def test_units_are_printed_with_their_symbols(unit, shown):
    assert shown_unit(unit) == shown == drawable(shown)
    assert stamps({"time": np.array([0.0, 2.0])}, 2, unit)[1] == f"t = 2.0 {shown}".rstrip()


def test_declared_units_of_time_and_coordinates_are_on_the_picture(field_run, settings):
    units = {"time": "h/U", "x": "h", "y": "1"}
    sheet = new_painter(*field_run(2), "t", settings("field", "speed"), units=units).sheet
    assert sheet.stamp.get_text() == "t = 10.0 h/U"
    assert (sheet.axes.get_xlabel(), sheet.axes.get_ylabel()) == ("$x$ (h)", "$y$")
