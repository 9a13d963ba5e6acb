"""Players: what is stored is near what was computed, within a size; texts are shown literally; refusals."""

import hashlib
import html.parser
import json
import re
import zlib

import numpy as np
import pytest

import simkit
from simkit.cli.main import main
from simkit.export import npm
from simkit.export.player import playing, scenes
from simkit.export.player.encoding import Stored, encoded, quantized
from simkit.render.views import Clip
from simkit.scenario.sections import RenderSettings

SHORT = {"steps": 60, "every": 3}
HOSTILE = "</title></script><script>alert(1)</script> \" ' & {blocks} \u202egnp.exe " + "x" * 10_000


@pytest.fixture
def three(tmp_path, monkeypatch):
    """What stands for the files of three.js, which players then carry."""
    folder = tmp_path / "three"
    folder.mkdir()
    digests = {}
    for path in npm.THREE.sha256:
        data = f"// {path}".encode()
        (folder / path.rpartition("/")[2]).write_bytes(data)
        digests[path] = hashlib.sha256(data).hexdigest()
    monkeypatch.setattr(npm, "THREE", npm.THREE._replace(sha256=digests))
    monkeypatch.setenv(npm.THREE.variable, str(folder))
    return folder


def decoded(descriptions, data):
    """Return the arrays that were encoded, as the page reads them."""
    arrays, begin, whole = {}, 0, np.frombuffer(zlib.decompress(data), np.uint8)
    for each in descriptions:
        count = each["frames"] * int(np.prod(each["shape"], dtype=int))
        width = each["bits"] // 8
        parts = whole[begin : begin + width * count].reshape(width, count)
        begin += width * count
        codes = parts[0] if width == 1 else (parts[0].astype(np.uint16) << 8) | parts[1]
        codes = codes.reshape(each["frames"], -1)
        along_frames, within = each["differences"]
        if along_frames or within:
            codes = (codes >> 1) ^ (0 - (codes & 1)).astype(codes.dtype)
        for axis, times in ((0, along_frames), (1, within)):
            for _ in range(times):
                codes = np.cumsum(codes, axis=axis, dtype=codes.dtype)
        values = np.where(codes == 2 ** each["bits"] - 1, np.nan, each["low"] + each["step"] * codes)
        arrays[each["name"]] = values.reshape(each["frames"], *each["shape"])
    return arrays


def test_stored_numbers_are_within_half_a_step_of_the_computed_ones():
    random = np.random.default_rng(0)
    walk = np.cumsum(random.normal(size=(40, 30, 3)), axis=0)
    wave = np.sin(np.linspace(0, 9, 50)[:, None, None] + np.linspace(0, 4, 600).reshape(20, 30))
    missing = np.where(random.random(walk.shape) < 0.1, np.nan, walk)
    arrays = {
        "walk": Stored(walk),
        "coarse": Stored(walk, step=0.05),
        "wave": Stored(wave, 8),
        "missing": Stored(missing),
        "rest": Stored(np.broadcast_to(walk[:1], walk.shape)),
        "species": Stored(random.integers(0, 5, (40, 30)), 8),
        "nothing": Stored(np.full((3, 2), np.nan)),
        "huge": Stored(np.array([[1e300], [-1e300], [np.inf]])),
    }
    descriptions, data = encoded(arrays)
    found = decoded(descriptions, data)
    assert len({tuple(each["differences"]) for each in descriptions}) > 1
    for name, (values, *_) in arrays.items():
        if name == "huge":
            continue
        step = next(each["step"] for each in descriptions if each["name"] == name)
        np.testing.assert_array_less(np.nan_to_num(np.abs(found[name] - values)), step * 0.5000001)
        np.testing.assert_array_equal(np.isnan(np.broadcast_to(found[name], values.shape)), np.isnan(values))
    assert np.ptp(walk) / 65534 == pytest.approx(quantized(arrays["walk"]).step)
    assert len(found["rest"]) == 1
    np.testing.assert_array_equal(found["species"], arrays["species"].values)
    assert np.isnan(found["huge"][2, 0]) and found["huge"][0, 0] == pytest.approx(1e30)


def test_values_beyond_the_color_scale_are_stored_as_its_ends():
    stored = quantized(Stored(np.array([[-5.0], [0.5], [9.0]]), 8, ends=(0.0, 1.0)))
    np.testing.assert_array_equal(stored.codes[:, 0], [0, 127, 254])


def clip_of(title="Fluid", frames=200, particles=4000, **changed):
    """Return a run of particles that wander in a periodic cell."""
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(scale=0.1, size=(frames, particles, 3)), axis=0) + 16 * random.random((particles, 3))
    arrays = {
        "position": walk.astype(np.float32),
        "diameter": np.ones((frames, particles)),
        "box": np.full((frames, 3), 16.0),
        "speed": random.random((frames, particles)),
    }
    settings = RenderSettings("particles", "speed", **changed)
    return Clip(arrays, {"time": np.arange(frames) * 0.1}, {}, title, settings)


def test_frames_are_thinned_until_the_page_has_a_size(three, monkeypatch):
    monkeypatch.setattr(playing, "BYTES", 400_000)
    clip = clip_of(frames=60, particles=2000)
    made = playing.player(clip)
    assert playing._FEWEST < made.frames < 60 == made.stored
    assert 0.5 * 400_000 < len(made.page) * 3 / 4 < 1.2 * 400_000
    data = described(made.page)
    assert len(data["stamps"]) == made.frames and data["stamps"][0] == "t = 0.0" and data["stamps"][-1] == "t = 5.9"
    # A thinned run takes as long as the whole one.
    assert made.frames / data["frames_per_second"] == pytest.approx(60 / 20, rel=0.05)


def described(page):
    return json.loads(re.search(r'id="description">(.*?)</script>', page.decode(), re.DOTALL)[1])


def test_particles_are_stored_inside_their_cell_to_a_fraction_of_their_diameter(three):
    clip = clip_of(frames=20, particles=300)
    drawing, arrays = scenes.scene_of(clip)
    found = decoded(*encoded(arrays))
    inside = np.asarray(clip.frames["position"], float) % 16
    apart = (found["position"] - inside + 8) % 16 - 8
    assert np.abs(apart).max() < 0.003
    assert found["position"].min() > -0.1 and found["position"].max() < 16.01
    np.testing.assert_allclose(found["cell"][0], 16 * np.eye(3))
    assert drawing["low"] == [0, 0, 0] and drawing["high"] == [16, 16, 16]


def test_bonds_are_those_between_neighbors_of_a_relaxation_that_is_not_packed(three):
    position = np.broadcast_to(np.array([[0.0, 0, 0], [1.1, 0, 0], [3, 0, 0]]), (3, 3, 3))
    arrays = {"position": position, "diameter": np.ones((3, 3)), "speed": np.ones((3, 3))}
    clip = Clip(arrays, {"iteration": np.arange(3)}, {}, "Trimer", RenderSettings("particles", "speed"))
    assert scenes.scene_of(clip)[0]["bonds"] == [[0, 1]]
    clip = Clip(arrays, {"time": np.arange(3.0)}, {}, "Trimer", RenderSettings("particles", "speed"))
    assert scenes.scene_of(clip)[0]["bonds"] == []


def test_a_field_in_space_is_interpolated_to_equal_cells():
    x, y, z = 0.1 * np.arange(1, 13) ** 1.2, np.linspace(0, 1, 9), np.linspace(-1, 1, 11)
    field = x[:, None, None] + 2 * y[:, None] - z
    settings = RenderSettings("field", "speed_mid")
    frames = {"speed": np.stack([field, field + 1]), "speed_mid": np.zeros((2, 12, 9))}
    clip = Clip(frames, {"time": np.arange(2.0)}, {"x": x, "y": y, "z": z}, "Wake", settings)
    drawing, arrays = scenes.scene_of(clip)
    assert drawing["kind"] == "volume" and drawing["quantity"] == "speed"
    found = decoded(*encoded(arrays))["speed"]
    low, high = np.array(drawing["low"]), np.array(drawing["high"])
    places = [low[k] + (high - low)[k] * (np.arange(n) + 0.5) / n for k, n in enumerate(found.shape[1:])]
    # Linear fields are met exactly, but for bytes and for the outer half of the end cells.
    places = [np.clip(place, line[0], line[-1]) for place, line in zip(places, (x, y, z), strict=True)]
    expected = places[0][:, None, None] + 2 * places[1][:, None] - places[2]
    step = (drawing["scale"]["high"] - drawing["scale"]["low"]) / 254
    np.testing.assert_allclose(found[0], expected, atol=0.51 * step)


class Tags(html.parser.HTMLParser):
    """Tags of a page and the text of its title."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.title = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        if self.tags[-1:] == ["title"]:
            self.title += data


def test_hostile_texts_are_escaped_and_bounded(three):
    plain = playing.player(clip_of(frames=3, particles=5)).page.decode()
    page = playing.player(clip_of(HOSTILE, 3, 5, label=HOSTILE[:200])).page.decode()
    assert Tags(page).tags == Tags(plain).tags
    title = Tags(page).title
    assert title.startswith("</title></script><script>alert(1)</script> \" ' & {blocks} gnp.exe xx")
    assert len(title) < 400 and "\u202e" not in page and len(page) < len(plain) + 4000
    assert "http:" not in page.partition("<body>")[0] and "connect-src" not in page


def test_the_command_writes_a_player_and_a_report_that_holds_one(three, tmp_path, capsys):
    simkit.run("bouncing_ball", **SHORT, output=tmp_path / "run")
    assert main(["render", str(tmp_path / "run"), "--to", "player"]) == 0
    file = tmp_path / "run" / "bouncing_ball.html"
    assert capsys.readouterr().out == f"{file}: 21 of 21 frames, {file.stat().st_size / 1e6:.1f} MB\n"
    assert described(file.read_bytes())["drawing"]["kind"] == "bodies"
    assert main(["report", str(tmp_path / "run"), "--player"]) == 0
    assert 'sandbox="allow-scripts allow-downloads"' in (tmp_path / "run" / "report.html").read_text()
    drawing = simkit.animate(tmp_path / "run", kind="html", frames=5)
    assert drawing.save(tmp_path / "b.html").exists() and "srcdoc=" in drawing._repr_html_()
    capsys.readouterr()
    mistakes = {
        (
            "--to",
            "player",
            "--quantity",
            "energy",
        ): "a player shows the views bodies, field, particles, and 'energy'",
        ("--to", "player", "--size", "300x300"): "--size is for pictures",
        ("--to", "player", "-o", "x.gif"): "x.gif is not the name of a html file; name it x.html",
        ("--to", "player", "--frame", "3"): "--frame is for a picture",
    }
    for words, phrase in mistakes.items():
        assert main(["render", str(tmp_path / "run"), *words]) == 2, words
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert phrase in line
    (three / "three.core.js").write_text("changed")
    assert main(["render", str(tmp_path / "run"), "--to", "player"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "does not hold the three.core.js of three 0.187.0" in line


def test_the_distance_from_obstacles_in_space_is_stored_about_zero():
    x = y = z = np.linspace(0.05, 0.95, 10)
    distance = np.sqrt((x[:, None, None] - 0.5) ** 2 + (y[:, None] - 0.5) ** 2 + (z - 0.5) ** 2) - 0.25
    frames = {"speed": np.ones((1, 10, 10, 10)), "body_distance": distance[None]}
    coordinates = {"x": x, "y": y, "z": z}
    clip = Clip(frames, {"time": np.zeros(1)}, coordinates, "Ball", RenderSettings("field", "speed"))
    _, arrays = scenes.scene_of(clip)
    found = decoded(*encoded(arrays))["body_distance"][0]
    np.testing.assert_allclose(found, np.clip(distance, -0.3, 0.3), atol=0.6 / 254)
