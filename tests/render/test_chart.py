"""Charts that compare: sweeps, histories, before and after."""

import itertools

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render import chart


@pytest.fixture
def panels(monkeypatch):
    """Collect the axes of the chart that is drawn."""
    drawn = []
    write = chart._write

    def keep(path, figure):
        drawn.extend(figure.axes)
        return write(path, figure)

    monkeypatch.setattr(chart, "_write", keep)
    return drawn


def test_geometric_values_are_told_from_even_ones():
    assert chart.is_geometric(np.geomspace(1, 1000, 7))
    assert chart.is_geometric(np.array([100.0, 200.0, 400.0, 800.0]))
    assert not chart.is_geometric(np.linspace(1, 1000, 7))
    assert not chart.is_geometric(np.linspace(-1, 1, 5))
    assert not chart.is_geometric(np.array([0.0, 1.0, 10.0]))
    assert not chart.is_geometric(np.array([1.0, 10.0]))
    assert not chart.is_geometric(np.ones(4))


def test_a_sweep_shows_every_seed_and_their_mean(panels, tmp_path):
    values = np.geomspace(1, 1000, 4)
    energy = np.arange(12.0).reshape(4, 3)
    energy[1, 0] = np.nan
    chart.sweep_chart(tmp_path / "a.png", "time_step", "s", values, {"kinetic_energy": energy, "drag": energy + 1})
    assert [axes.get_title(loc="left") for axes in panels] == ["kinetic energy", "drag"]
    assert panels[0].get_xlabel() == "time step (s)"
    assert panels[0].get_xscale() == "log"
    *seeds, mean = panels[0].lines
    np.testing.assert_array_equal([line.get_ydata() for line in seeds], energy.T)
    # The member that failed is left out of its mean: (4 + 5) / 2.
    np.testing.assert_allclose(mean.get_ydata(), [1, 4.5, 7, 10])


def test_members_that_failed_are_crosses_left_out_of_the_mean(panels, tmp_path):
    values, energy = np.arange(2.0), np.array([[1.0, 3.0], [5.0, 7.0]])
    failed = np.array([[False, True], [True, True]])
    chart.sweep_chart(tmp_path / "a.png", "time_step", "s", values, {"energy": energy}, failed=failed)
    *points, mean = panels[0].lines
    np.testing.assert_allclose(mean.get_ydata(), [1, np.nan])
    crosses = [line.get_ydata() for line in points if line.get_marker() == "x"]
    np.testing.assert_array_equal(np.transpose(crosses), np.where(failed, energy, np.nan))
    assert "x: failed" in panels[0].get_title(loc="right")


@pytest.mark.parametrize("span", [3.5, 10, 29, 80, 1e3, 1e6])
@pytest.mark.parametrize("least", [3e-5, 0.7, 50])
def test_numbers_along_a_geometric_axis_stand_apart(least, span, panels, tmp_path):
    values = np.geomspace(least, span * least, 9)
    series = {name: np.ones((9, 1)) for name in "abcd"}
    chart.sweep_chart(tmp_path / "a.png", "reynolds", "1", values, series)
    for axes in panels[2:]:
        low, high = axes.get_xlim()
        ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
        labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
        assert len(boxes) >= 2
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_swept_values_are_put_in_order(panels, tmp_path):
    chart.sweep_chart(tmp_path / "a.png", "angle", "1", np.array([3.0, 1.0, 2.0]), {"x": np.array([[9.0], [1], [4]])})
    np.testing.assert_array_equal(panels[0].lines[-1].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(panels[0].lines[-1].get_ydata(), [1, 4, 9])


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
    with pytest.raises(UserError, match=r"'drag' has shape \(3,\); the chart needs \(3, seeds\)"):
        chart.sweep_chart(tmp_path / "a.png", "angle", "1", np.arange(3.0), {"drag": np.arange(3.0)})
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


def test_wide_pictures_are_stacked(field_run, settings, tmp_path):
    frames, diagnostics, coordinates = field_run(2)
    run = {"frames": frames, "diagnostics": diagnostics, "coordinates": coordinates}
    shapes = []
    for size in ((320, 180), (480, 120)):
        chart.comparison(tmp_path / "a.png", run, run, settings("field", "speed"), "Title", ("a", "b"), size)
        with Image.open(tmp_path / "a.png") as picture:
            shapes.append(picture.size)
    assert shapes[0][0] > 640 and shapes[0][1] < 360
    assert shapes[1][0] == 480 and shapes[1][1] > 240
