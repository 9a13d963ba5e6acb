"""Charts of histories, of one diagnostic over time, of sweeps, and pictures before and after."""

import itertools
import warnings

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render import chart
from simkit.render.animate import render
from simkit.render.chart import SweepData, sweep_chart
from simkit.render.views import new_painter
from simkit.scenario.drawing import render_settings
from tests.tables import every


def test_a_loss_over_decades_gets_a_logarithmic_axis(figures, tmp_path):
    iterations = np.arange(50)
    series = {"loss": np.exp(-iterations / 3.0), "speed": 1.0 + iterations}
    chart.history_chart(tmp_path / "a.png", "iteration", iterations, series)
    assert [axes.get_yscale() for axes in figures[0].axes] == ["log", "linear"]
    assert [axes.get_xlabel() for axes in figures[0].axes] == ["iteration", "iteration"]


def test_the_objective_leads_with_its_unit_and_the_best_point(figures, tmp_path):
    losses, angles = np.array([3.0, 1.0, 2.0]), np.array([0.0, 5.0, 9.0])
    series = {"drag": losses, "angle": angles, "aspect": angles}
    units = {"drag": "U^2 D", "angle": "deg"}
    chart.history_chart(tmp_path / "a.png", "iteration", np.arange(3), series, "Ellipse", units, best=1)
    drag, angle, _ = figures[0].axes
    assert drag.get_title(loc="left") == "drag (U² D)" and angle.get_title(loc="left") == "angle (deg)"
    assert drag.get_position().width > 2 * angle.get_position().width
    assert drag.get_position().y0 > angle.get_position().y1
    assert [text.get_text() for text in drag.texts] == ["best 1"]
    assert drag.get_xticks().tolist() == [0, 1, 2]


def test_round_off_around_a_constant_is_drawn_flat(figures, tmp_path):
    energy = 5 + 1e-9 * np.random.default_rng(0).normal(size=20)
    chart.history_chart(tmp_path / "a.png", "t", np.arange(20), {"energy": energy})
    low, high = figures[0].axes[0].get_ylim()
    assert high - low > 0.1


def test_a_quantity_without_finite_values_says_so(figures, tmp_path):
    chart.history_chart(tmp_path / "a.png", "t", np.arange(3), {"energy": np.full(3, np.nan)})
    assert [text.get_text() for text in figures[0].axes[0].texts] == ["no finite values"]


def test_wrong_shapes_are_named(tmp_path):
    with pytest.raises(UserError, match=r"'drag' has shape \(4,\); give \(3,\)"):
        chart.history_chart(tmp_path / "a.png", "t", np.arange(3.0), {"drag": np.arange(4.0)})
    with pytest.raises(UserError, match=r"'drag' has shape \(3,\); give \(3, seeds\)"):
        data = SweepData({"angle": np.arange(3.0)}, {"drag": np.arange(3.0)}, np.zeros((3, 1), bool))
        sweep_chart(tmp_path / "a.png", data)
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


def run_of(values):
    return {}, {"time": np.linspace(0, 2, len(values)), "energy": np.asarray(values)}, {}


def blue(image):
    """Return how many pixels are of the line's color."""
    return int(((image[..., 2].astype(int) - image[..., 0]) > 80).sum())


def test_line_grows_with_the_run(settings):
    painter = new_painter(*run_of(np.sin(np.linspace(0, 6, 50))), "Title", settings("chart", "energy"), (320, 180))
    drawn = [blue(painter.image(index)) for index in (0, 10, 25, 49)]
    assert len(painter) == 50 and drawn == sorted(drawn) and drawn[-1] > 3 * drawn[0]
    np.testing.assert_array_equal(painter.image(10), painter.image(10))


@every("values", [[1.0, np.nan, np.inf, 2.0], [np.nan] * 3, [5.0] * 4, [0.0, 1e300], [3.0]])
def test_any_numbers_are_drawn(values, settings):
    painter = new_painter(*run_of(values), "Title", settings("chart", "energy"), 160 * 90)
    assert painter.image(len(values) - 1).shape[2] == 3


def test_quantities_that_are_not_one_number_per_frame_are_refused(settings, tmp_path):
    with pytest.raises(UserError, match="array of the frames = 'enrgy' is unknown; did you mean 'energy'"):
        new_painter(*run_of([1, 2]), "Title", settings("chart", "enrgy"), (320, 180))
    with pytest.raises(UserError, match="'energy' has shape"):
        new_painter({}, {"energy": np.zeros((2, 3))}, {}, "Title", settings("chart", "energy"), (320, 180))
    with pytest.raises(UserError, match="there is nothing to draw: no number is diagnosed"):
        render({}, {}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")
    with pytest.raises(UserError, match="no frames to draw"):
        render({}, {"energy": np.zeros(0)}, {}, "Title", settings("chart", "energy"), tmp_path / "a.gif")


@every("values", [1e5 + np.sin(np.arange(9.0)), 1e-7 * np.arange(9.0) - 1])
def test_long_labels_and_numbers_stay_on_the_page(values, settings):
    label = "mean kinetic energy of the particles in the upper half of the channel"
    painter = new_painter(*run_of(values), "Title", settings("chart", "energy", label), (640, 360))
    box, page = painter.axes.yaxis.get_tightbbox(), painter.figure.bbox
    assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= page.height


def words_of(axes):
    return " ".join(text.get_text() for text in axes.figure.texts)


def test_one_parameter_is_drawn_as_a_median_over_seeds_within_its_quantiles(drawn):
    values = np.geomspace(1, 1000, 4)
    energy = np.arange(20.0).reshape(4, 5) ** 2
    energy[1, 0] = np.nan
    units = {"time_step": "s"}
    panels = drawn({"time_step": values}, {"kinetic_energy": energy, "drag": energy + 1}, units=units)
    assert [axes.get_title(loc="left") for axes in panels] == ["kinetic energy", "drag"]
    assert (panels[0].get_xlabel(), panels[0].get_xscale()) == ("time step (s)", "log")
    *seeds, median = panels[0].lines
    np.testing.assert_array_equal([line.get_ydata() for line in seeds], energy.T)
    # A member without a value is left out: of 36, 49, 64 and 81 it is half way between the second and third.
    np.testing.assert_allclose(median.get_ydata(), [4, 56.5, 144, 289])
    wide, narrow = (band.get_paths()[0].get_extents() for band in panels[0].collections)
    assert (narrow.ymin, narrow.ymax) == pytest.approx((1, 324))  # quartiles of five are the second and fourth
    assert (wide.ymin, wide.ymax) == pytest.approx((0.2, 361 - 0.2 * 37))
    assert "median of 5 seeds" in words_of(panels[0])


def test_members_that_failed_are_crosses_left_out_of_the_median(drawn):
    energy, failed = np.array([[1.0, 3.0], [5.0, np.nan]]), [[False, True], [True, True]]
    (axes,) = drawn({"time_step": np.arange(2.0)}, {"energy": energy}, failed)
    np.testing.assert_allclose(axes.lines[-1].get_ydata(), [1, np.nan])
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    np.testing.assert_array_equal([line.get_ydata() for line in crosses[:2]], [[np.nan, 5], [3, np.nan]])
    # One that has no value is marked at the foot.
    assert crosses[2].get_xdata().tolist() == [1.0]
    assert "x: failed" in words_of(axes)


def grid(x, y):
    a, b = np.meshgrid(x, y, indexing="ij")
    return {"across": a.ravel(), "up": b.ravel()}


def test_two_parameters_are_a_heat_map_of_means_with_failures_marked(drawn):
    x, y = np.array([2.0, 0.0, 1.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    points = grid(x, y)
    values = np.stack([points["across"] + np.log10(points["up"]), points["across"] - 2], axis=1)
    failed = np.zeros((12, 2), bool)
    failed[5], failed[2, 1] = True, True
    axes, *_ = drawn(points, {"energy": values}, failed)
    (cells,) = axes.collections
    colors = cells.get_array()
    assert colors.shape == (4, 3)
    row, column = np.meshgrid(np.arange(4), np.arange(3), indexing="ij")
    expected = (column + row + column - 2) / 2
    expected[2, 2] = 2 + 2  # at (2, 100), of which one seed failed
    expected[1, 0] = np.nan  # at (0, 10)
    np.testing.assert_allclose(np.ma.filled(colors, np.nan), expected)
    assert axes.get_yscale() == "log"
    assert {*zip(*axes.lines[0].get_data(), strict=True)} == {(0.0, 10.0), (2.0, 100.0)}
    assert words_of(axes) == "mean of 2 seeds; x: failed"
    # Each value lies within its cell.
    corners = cells.get_coordinates()
    assert (corners[0, :-1, 0] < [0, 1, 2]).all() and (corners[0, 1:, 0] > [0, 1, 2]).all()
    assert (corners[:-1, 0, 1] < y).all() and (corners[1:, 0, 1] > y).all()


def test_points_in_the_plane_are_dots(drawn):
    points = {"a": np.array([0.1, 0.5, 0.3]), "b": np.array([1.0, 0.2, 0.7])}
    axes, *_ = drawn(points, {"energy": np.array([[3.0], [1], [2]])}, is_grid=False)
    (dots,) = axes.collections
    np.testing.assert_array_equal(dots.get_offsets(), np.stack(list(points.values()), axis=1))
    np.testing.assert_array_equal(dots.get_array(), [3, 1, 2])


def test_more_parameters_are_parallel_coordinates_with_shares_of_variance(drawn):
    points = {n: np.random.default_rng(i).permutation(np.linspace(-1, 1, 8)) for i, n in enumerate("abc")}
    failed = np.zeros((8, 1), bool)
    failed[3] = True
    energy = np.where(failed, np.nan, np.arange(8.0)[:, None])
    (axes,) = drawn(points, {"energy": energy}, failed, is_grid=False, indices={"energy": {"a": 0.75, "b": 0.1}})
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["a\nS = 0.75", "b\nS = 0.10", "c", "energy"]
    lines = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) > 2]
    assert sorted(map(len, lines)) == [3, *[4] * 7]
    whole = sorted((line for line in lines if len(line) == 4), key=lambda line: line[-1])
    np.testing.assert_allclose([line[-1] for line in whole], np.array([0, 1, 2, 4, 5, 6, 7]) / 7)
    for place, name in enumerate(points):
        low, high = points[name].min(), points[name].max()
        np.testing.assert_allclose([line[place] for line in whole], (np.delete(points[name], 3) - low) / (high - low))
    assert "broken: failed" in words_of(axes) and "S: share of the variance" in words_of(axes)


LONG = "mean_kinetic_energy_of_the_particles_in_the_upper_half_of_the_channel_"


def texts_of(figure):
    """Return every text that is drawn, with its extent in pixels."""
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += [axes.xaxis.label, axes.yaxis.label, axes.yaxis.get_offset_text(), axes._left_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label2 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [(text, text.get_window_extent()) for text in texts if text.get_visible() and text.get_text()]


def check_long_names(count, parameters, drawn):
    """Draw many long names, also where members failed with a value: their marks made the axes collapse."""
    generator = np.random.default_rng(0)
    names = [f"{LONG}{letter}" for letter in "abcdefgh"[:parameters]]
    points = {name: generator.permutation(np.geomspace(1, 1000, 6)) for name in names}
    series = {f"{LONG}{i}": 10.0 ** (i - 3) * generator.normal(size=(6, 2)) for i in range(count)}
    failed = np.zeros((6, 2), bool)
    failed[1] = True
    title = "A sweep over the wall temperatures of a channel " * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        units, indices = dict.fromkeys([*points, *series], "kg m^2"), {key: dict.fromkeys(names, 0.3) for key in series}
        panels = drawn(points, series, failed, is_grid=False, units=units, indices=indices, title=title)
    assert len([axes for axes in panels if axes.get_title(loc="left")]) == count
    page = panels[0].figure.bbox
    found = texts_of(panels[0].figure)
    for (one, box), (other, near) in itertools.combinations(found, 2):
        beside = box.x1 < near.x0 + 1 or near.x1 < box.x0 + 1 or box.y1 < near.y0 + 1 or near.y1 < box.y0 + 1
        assert beside, f"{one.get_text()} overlaps {other.get_text()}"
    for text, box in found:
        within = box.x0 > -1 and box.x1 < page.width + 1 and box.y0 > -1 and box.y1 < page.height + 1
        assert within, f"{text.get_text()} leaves the page"


def test_quantities_beyond_the_largest_number_of_panels_are_counted(drawn, monkeypatch):
    monkeypatch.setattr(chart, "MOST_PANELS", 2)
    panels = drawn({"a": np.arange(3.0)}, dict.fromkeys("bcd", np.ones((3, 1))))
    assert len(panels) == 2 and words_of(panels[0]) == "2 of 3 quantities"


def test_charts_are_the_same_bytes_every_time(tmp_path):
    data = SweepData({"a": np.arange(9.0)}, {"x": np.arange(18.0).reshape(9, 2)}, np.zeros((9, 2), bool))
    for name in ("a.png", "b.png"):
        sweep_chart(tmp_path / name, data)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_curves_are_drawn_over_their_coordinate_with_its_named_places():
    values = np.stack([np.full((3, 2), np.nan), np.arange(6.0).reshape(3, 2)])
    settings = render_settings({"view": "curves", "quantity": "omega", "along": "path"})
    coordinates = {"path": np.arange(3.0), "path_names": np.array(["G", "X", "L"]), "other": np.arange(4.0)}
    painter = new_painter({"omega": values}, {}, coordinates, "Phonons", settings, size=(320, 180))
    empty, full = painter.image(0), painter.image(1)
    assert (empty != full).any() and len(painter) == 2
    assert [label.get_text() for label in painter.axes.get_xticklabels()] == ["G", "X", "L"]
    assert [line.get_ydata().tolist() for line in painter._lines] == [[0, 2, 4], [1, 3, 5]]
    for along, message in (("pth", "did you mean 'path'"), ("other", "has shape")):
        wrong = render_settings({"view": "curves", "quantity": "omega", "along": along})
        with pytest.raises(UserError, match=message):
            new_painter({"omega": values}, {}, coordinates, "Phonons", wrong, size=(320, 180))
