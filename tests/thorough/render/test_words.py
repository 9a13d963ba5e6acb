"""Text on pictures: any text of a scenario file is drawn, quickly and without warnings."""

import itertools

from simkit.render.labels import fit
from simkit.render.views import new_painter


def test_a_long_title_is_measured_a_few_times_only(field_run, settings, monkeypatch):
    painter = new_painter(*field_run(2), "title", settings("field", "speed"), (320, 180))
    heading = painter.sheet.figure.texts[-1]
    heading.set_text("word " * 4000)
    measured = itertools.count()
    original = type(heading).get_window_extent
    monkeypatch.setattr(
        type(heading), "get_window_extent", lambda self, *a, **k: (next(measured), original(self, *a, **k))[1]
    )
    fit(heading, 150)
    # Halving 20,000 letters takes 15 steps.
    assert next(measured) <= 20
    assert heading.get_text().startswith("word") and heading.get_text().endswith("\N{HORIZONTAL ELLIPSIS}")
    assert original(heading).width <= 150
