"""Charts of histories, and pictures before and after."""

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render import chart


@pytest.fixture
def panels(monkeypatch):
    """Collect the axes of the chart that is drawn."""
    drawn = []
    write = chart.write

    def keep(path, figure):
        drawn.extend(figure.axes)
        return write(path, figure)

    monkeypatch.setattr(chart, "write", keep)
    return drawn


def test_a_loss_over_decades_gets_a_logarithmic_axis(panels, tmp_path):
    iterations = np.arange(50)
    series = {"loss": np.exp(-iterations / 3.0), "speed": 1.0 + iterations}
    chart.history_chart(tmp_path / "a.png", "iteration", iterations, series)
    assert [axes.get_yscale() for axes in panels] == ["log", "linear"]
    assert [axes.get_xlabel() for axes in panels] == ["iteration", "iteration"]


def test_round_off_around_a_constant_is_drawn_flat(panels, tmp_path):
    energy = 5 + 1e-9 * np.random.default_rng(0).normal(size=20)
    chart.history_chart(tmp_path / "a.png", "t", np.arange(20), {"energy": energy})
    low, high = panels[0].get_ylim()
    assert high - low > 0.1


def test_a_quantity_without_finite_values_says_so(panels, tmp_path):
    chart.history_chart(tmp_path / "a.png", "t", np.arange(3), {"energy": np.full(3, np.nan)})
    assert [text.get_text() for text in panels[0].texts] == ["no finite values"]


def test_charts_are_the_same_bytes_every_time(tmp_path):
    for name in ("a.png", "b.png"):
        chart.history_chart(tmp_path / name, "t", np.arange(9), {"energy": np.arange(9.0) ** 2}, title="Title")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_wrong_shapes_are_named(tmp_path):
    with pytest.raises(UserError, match=r"'drag' has shape \(4,\); the chart needs \(3,\)"):
        chart.history_chart(tmp_path / "a.png", "t", np.arange(3.0), {"drag": np.arange(4.0)})
    with pytest.raises(UserError, match="nothing to chart"):
        chart.history_chart(tmp_path / "a.png", "t", np.arange(3.0), {})


def test_before_and_after_share_colors_and_window(field_run, body_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    weak = {"frames": frames, "diagnostics": diagnostics, "coordinates": coordinates}
    strong = weak | {"frames": {"speed": 3 * frames["speed"]}}
    chosen = settings("field", "speed")
    chart.comparison(tmp_path / "a.png", weak, strong, chosen, "Channel", ("before", "after"), (320, 180))
    picture = np.asarray(Image.open(tmp_path / "a.png")).astype(int)
    left, right = picture[:, :320], picture[:, -320:]
    # Three times the speed on a common scale is brighter; on a scale of its own it would look the same.
    assert right.sum() > left.sum()

    runs = []
    for stretch in (1.0, 3.0):
        moved, time, _ = body_run(5)
        moved["position"][..., 0] *= stretch
        del moved["target"]
        runs.append({"frames": moved, "diagnostics": time, "coordinates": {}})
    chart.comparison(tmp_path / "b.png", *runs, settings("bodies", "position"), "Ball", ("before", "after"), (320, 180))
    picture = np.asarray(Image.open(tmp_path / "b.png"))
    # The lowest rows hold the axis: its numbers agree where the windows do.
    np.testing.assert_array_equal(picture[-30:, :320], picture[-30:, -320:])
