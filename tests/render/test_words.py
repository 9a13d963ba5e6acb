"""Text on pictures: any text of a scenario file is drawn, quickly and without warnings."""

import numpy as np

from simkit.render.style import drawable, fit, shown_unit, stamps
from simkit.render.views import new_painter
from tests.tables import every


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


@every(("factor", "label"), [(3e-5, "vorticity (10⁻⁵ U/h)"), (3e6, "vorticity (10⁶ U/h)")])
@every("size", [(640, 360), (420, 480)])
def test_a_power_of_ten_of_the_color_bar_keeps_clear_of_the_title(factor, label, size, field_run, settings):
    frames, times, places = field_run(2)
    frames = {"speed": factor * frames["speed"] / frames["speed"].max()}
    sheet = new_painter(frames, times, places, "t", settings("field", "speed", "vorticity", "U/h"), size).sheet
    axis = sheet.bar.axes.xaxis if sheet.bar.below else sheet.bar.axes.yaxis
    sheet.figure.canvas.draw()
    assert axis.label.get_text() == label
    assert not axis.offsetText.get_visible()
    # No number of the bar is longer than a few digits.
    assert all(len(text.get_text()) < 25 for text in axis.get_ticklabels())
