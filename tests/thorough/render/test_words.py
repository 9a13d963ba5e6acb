"""Text on pictures: any text of a scenario file is drawn, quickly and without warnings."""

import numpy as np

from simkit.render.chart import history_chart
from simkit.render.sweep_charts import SweepData, sweep_chart
from simkit.render.views import new_painter
from tests.render.test_words import BROKEN
from tests.tables import every


@every("text", BROKEN)
def test_mathematics_that_does_not_parse_is_shown_as_plain_text(text, field_run, settings, tmp_path):
    run, chosen = field_run(2), settings("field", "speed", label=text, unit=text)
    painter = new_painter(*run, text, chosen, (320, 180))
    assert painter.image(1).shape == (180, 320, 3)
    series = {"speed": np.arange(3.0)}
    history_chart(tmp_path / "history.png", text, np.arange(3.0), series, title=text)
    # Each kind of chart of a sweep with one text of the table.
    charts = ({}, {"b": np.arange(3.0)}, {"b": np.arange(3.0), "c": np.ones(3)})
    for more in [charts[BROKEN.index(text)]] if text in BROKEN[:3] else []:
        points, values = {text: np.arange(3.0), **more}, {text: np.zeros((3, 1))}
        data = SweepData(points, values, np.zeros((3, 1), bool), {text: text}, False, {text: {text: 0.5}}, text)
        sweep_chart(tmp_path / "sweep.png", data)
