"""Charts of histories, and pictures before and after."""

from PIL import Image

from simkit.render import chart


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
