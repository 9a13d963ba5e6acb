"""Picture and animation files, and the selection of their frames: even in time, or in visible change."""

import matplotlib
import numpy as np
import pytest
from imageio_ffmpeg import read_frames
from PIL import Image

from simkit.errors import UserError
from simkit.render.animate import render
from simkit.render.selection import choose_frames, choose_pace, visible_changes
from simkit.render.video import whole_file, write_gif, write_mp4, write_png, write_webp
from tests.tables import every


@pytest.fixture
def images():
    """A bright square that moves over a gray ramp."""
    pictures = []
    for k in range(7):
        picture = np.repeat(np.linspace(40, 200, 96, dtype=np.uint8)[None, :, None], 64, axis=0).repeat(3, axis=2)
        picture[20:40, 8 * k : 8 * k + 20] = (250, 40, 10)
        pictures.append(picture)
    return pictures


def decoded(path):
    """Return (images, frames per second) of a video file as ffmpeg sees it."""
    reader = read_frames(str(path))
    meta = next(reader)
    width, height = meta["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader], meta["fps"]


def frames_of(path):
    """Return the images of a GIF, and how many milliseconds each is shown."""
    with Image.open(path) as file:
        shown = []
        for place in range(file.n_frames):
            file.seek(place)
            shown.append((np.asarray(file.convert("RGB")), file.info["duration"]))
    return tuple(zip(*shown, strict=True))


@every(("write", "name"), [(write_gif, "a.gif"), (write_mp4, "a.mp4")])
def test_frames_size_and_speed_are_as_requested(images, tmp_path, write, name):
    write(tmp_path / name, images, 25.0)
    found, frames_per_second = decoded(tmp_path / name)
    assert len(found) == len(images)
    assert found[0].shape == (64, 96, 3)
    assert frames_per_second == pytest.approx(25.0)
    for picture, original in zip(found, images, strict=True):
        # H.264 at half the color resolution blurs edges; a shifted or missing frame would differ by the whole square,
        # 20 of 64 x 96 pixels in height and width, by some 150 levels: 10 on average.
        assert np.abs(picture.astype(int) - original).mean() < 3


@every(("write", "name"), [(write_gif, "a.gif"), (write_mp4, "a.mp4"), (write_webp, "a.webp")])
def test_animations_are_the_same_bytes_every_time(images, tmp_path, write, name):
    written = []
    for _ in range(2):
        write(tmp_path / name, images, 20.0)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]


def test_a_png_has_its_pixels_and_nothing_else(images, tmp_path):
    for name in ("a.png", "b.png"):
        write_png(tmp_path / name, images[0])
    data = (tmp_path / "a.png").read_bytes()
    assert data == (tmp_path / "b.png").read_bytes()
    for chunk in (b"tEXt", b"iTXt", b"zTXt", b"tIME", b"eXIf"):
        assert chunk not in data
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), images[0])


def test_a_gif_of_few_colors_is_exact(images, tmp_path):
    write_gif(tmp_path / "a.gif", images, 20.0)
    with Image.open(tmp_path / "a.gif") as file:
        assert file.info["loop"] == 0
    np.testing.assert_array_equal(frames_of(tmp_path / "a.gif")[0], images)


def test_a_gif_keeps_frames_in_which_nothing_changes(images, tmp_path):
    write_gif(tmp_path / "a.gif", [images[0]] * 3 + [images[1]], 20.0)
    assert len(decoded(tmp_path / "a.gif")[0]) == 4


def test_a_gif_keeps_its_speed_with_durations_in_hundredths(images, tmp_path):
    write_gif(tmp_path / "a.gif", images * 3, 30.0)
    lasts = frames_of(tmp_path / "a.gif")[1]
    assert set(lasts) == {30, 40}
    assert sum(lasts) == 700


def slow_field(count):
    """A smooth field whose colors move slowly, on 240 x 200 pixels in a page of white."""
    x, y = np.meshgrid(np.linspace(0, 1, 240), np.linspace(0, 1, 200))
    pictures = []
    for k in range(count):
        value = 0.5 + 0.5 * np.sin(3 * x + 2 * y + 0.01 * k)
        page = np.full((240, 320, 3), 255, np.uint8)
        page[20:220, 40:280] = np.rint(matplotlib.colormaps["coolwarm"](value)[..., :3] * 255)
        pictures.append(page)
    return pictures


def test_a_smooth_field_that_changes_slowly_has_no_bands(tmp_path):
    pictures = slow_field(60)
    write_gif(tmp_path / "a.gif", pictures, 20.0)
    # A picture of a third of the usual pixels may take a third of 1.8 MB.
    assert (tmp_path / "a.gif").stat().st_size < 0.6e6
    shown = frames_of(tmp_path / "a.gif")[0]
    for place in (20, 59):
        error = np.abs(shown[place].astype(int) - pictures[place])
        # 64 of 256 colors with pixels at rest; 32 colors, which cost as much without them, miss by 9 and 2.3.
        assert error.max() <= 6 and error[20:220, 40:280].mean() < 1.5


@every("shape", [(65, 97), (64, 97), (65, 96)])
def test_an_odd_video_is_filled_up_to_even_sides(tmp_path, shape):
    write_mp4(tmp_path / "a.mp4", [np.full((*shape, 3), 255, np.uint8)] * 3, 10.0)
    found, _ = decoded(tmp_path / "a.mp4")
    assert found[0].shape == (66 if shape[0] == 65 else 64, 98 if shape[1] == 97 else 96, 3)
    # White stays white, in the line filled up too: the color matrix is stated, so that at most rounding is lost.
    assert found[0].min() >= 252


def test_video_colors_are_those_of_the_pictures(tmp_path):
    patches = np.zeros((64, 96, 3), np.uint8)
    colors = np.array([[252, 255, 164], [188, 55, 84], [30, 12, 69]])
    for k, color in enumerate(colors):
        patches[:, 32 * k : 32 * k + 32] = color
    write_mp4(tmp_path / "a.mp4", [patches] * 3, 10.0)
    found, _ = decoded(tmp_path / "a.mp4")
    shown = found[-1][32, [16, 48, 80]].astype(int)
    # Luma and chroma have 220 levels for 256: rounding them costs up to 1.2 + 0.9 levels, the way back one more.
    assert np.abs(shown - colors).max() <= 3


def test_a_failure_leaves_the_old_file_and_no_other(images, tmp_path):
    path = tmp_path / "a.gif"
    write_gif(path, images, 20.0)
    before = path.read_bytes()

    class Broken(list):
        def __getitem__(self, place):
            if place == 5:
                raise RuntimeError("lost")
            return super().__getitem__(place)

        def __iter__(self):
            return (self[place] for place in range(len(self)))

    for write in (write_gif, write_mp4):
        with pytest.raises(RuntimeError, match="lost"):
            write(path, Broken(images), 20.0)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.gif"]


def test_a_file_that_got_nothing_is_refused(tmp_path):
    with pytest.raises(UserError, match="no data was written"), whole_file(tmp_path / "a.gif") as partial:
        partial.touch()
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_fails_says_why(images, tmp_path, monkeypatch):
    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_exe", lambda: "/bin/false")
    with pytest.raises(UserError, match="the video encoder failed: exit code 1; write gif instead"):
        write_mp4(tmp_path / "a.mp4", images, 20.0)
    assert not list(tmp_path.iterdir())


def test_invalid_paths_and_speeds_are_refused_in_one_line(images, tmp_path):
    with pytest.raises(UserError, match="no folder"):
        write_gif(tmp_path / "absent" / "a.gif", images, 20.0)
    with pytest.raises(UserError, match=r"choose a value in \(0, 50\]; write webp or mp4 for more"):
        write_gif(tmp_path / "a.gif", images, 60.0)
    with pytest.raises(UserError, match="frames_per_second is 0"):
        write_mp4(tmp_path / "a.mp4", images, 0.0)
    with pytest.raises(UserError, match="no frames"):
        write_gif(tmp_path / "a.gif", [], 20.0)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match=r"folder\.png is a folder, and simkit needs a file there"):
        write_png(tmp_path / "folder.png", images[0])


def test_thinning_keeps_the_ends_and_even_steps():
    assert choose_frames(10, 20).tolist() == list(range(10))
    thin = choose_frames(1001, 150)
    assert (len(thin), thin[0], thin[-1]) == (150, 0, 1000)
    assert set(np.diff(thin)) <= {6, 7}
    assert choose_frames(5, 1).tolist() == [4]
    with pytest.raises(UserError, match="maximum_frames = 0 is not an integer of at least 1"):
        choose_frames(5, 0)


def relaxation(count=200, rate=0.1, number=20):
    """Particles that approach their places exponentially, through a periodic box."""
    generator = np.random.default_rng(0)
    start, way = generator.uniform(0, 8, (number, 2)), generator.normal(0, 1, (number, 2))
    position = (start + way * (1 - np.exp(-rate * np.arange(count)))[:, None, None]) % 8
    frames = {"position": position, "diameter": np.ones((count, number)), "box": np.full((count, 2), 8.0)}
    return frames | {"contacts": np.zeros((count, number))}, {"iteration": np.arange(count)}


def test_a_relaxation_is_shown_without_frames_at_rest():
    frames, diagnostics = relaxation()
    pace = choose_pace(frames, diagnostics, "contacts", 20.0, 60)
    assert pace.indices[0] == 0 and pace.indices[-1] == 199 and np.all(np.diff(pace.indices) > 0)
    # 1 % of a diameter, of displacements of about 1, is left after 46 iterations; evenly spread, 3/4 would come later.
    assert np.mean(pace.indices > 46) < 0.1
    assert pace.hold == 1.0 and len(pace.indices) / pace.frames_per_second >= 3.0


def test_crossing_a_periodic_box_is_not_a_jump():
    frames, _ = relaxation()
    free = {name: array for name, array in frames.items() if name != "box"}
    steps = visible_changes(frames, "contacts")
    assert steps.max() < 0.2 < visible_changes(free, "contacts").max()
    # Each is exp(-rate) times the one before.
    np.testing.assert_allclose(steps[1:] / steps[:-1], np.exp(-0.1), rtol=1e-3)


def test_changes_of_color_count_as_visible():
    frames, diagnostics = relaxation()
    frames["position"][:] = frames["position"][0]
    frames["contacts"] = np.tile(np.minimum(np.arange(200), 40)[:, None], (1, 20))
    pace = choose_pace(frames, diagnostics, "contacts", 20.0, 100)
    assert pace.indices.tolist() == [*range(41), 199]


def test_frames_of_runs_in_time_are_evenly_spaced():
    frames, diagnostics = relaxation(rate=1e-3)
    pace = choose_pace(frames, {"time": diagnostics["iteration"] * 0.1}, "contacts", 20.0, 50)
    assert np.ptp(np.diff(pace.indices)) <= 1 and len(pace.indices) == 50 and pace.indices[-1] == 199
    assert pace.frames_per_second == 20.0 and pace.hold == 1.0


def test_animations_of_runs_in_time_end_at_rest():
    frames, diagnostics = relaxation()
    pace = choose_pace(frames, {"time": diagnostics["iteration"] * 0.1}, "contacts", 10.0, 1000)
    # 1 % of a diameter is left of displacements of 1.4 after ln(140)/0.1 = 49 frames.
    assert 45 <= pace.indices[-1] <= 55 and np.all(np.diff(pace.indices) == 1)
    assert pace.hold == 1.0
    still = {name: np.broadcast_to(array[:1], array.shape) for name, array in frames.items()}
    assert len(choose_pace(still, {"time": diagnostics["iteration"]}, "contacts", 10.0, 1000).indices) == 30


def test_an_oscillation_that_passes_its_last_state_is_not_at_rest():
    angle = np.linspace(0, 6 * np.pi, 121)
    position = np.stack([np.cos(angle), 0 * angle, np.sin(angle)], axis=-1)[:, None]
    pace = choose_pace({"position": position}, {"time": angle}, "position", 10.0, 1000)
    assert pace.indices.tolist() == list(range(121))


def test_animations_of_runs_in_time_begin_where_something_moves():
    frames, _ = relaxation(rate=1e-3)
    frames = {name: np.concatenate([np.repeat(array[:1], 100, axis=0), array]) for name, array in frames.items()}
    pace = choose_pace(frames, {"time": np.arange(300.0)}, "contacts", 20.0, 1000)
    # 1 % of a diameter, of displacements of 1.4, takes 7 frames at this rate.
    assert 100 <= pace.indices[0] <= 110 and pace.indices[-1] == 299


def test_a_rotating_body_is_not_at_rest():
    angle = np.linspace(0, 6, 121)
    orientation = np.stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)], axis=-1)[:, None]
    frames = {"position": np.zeros((121, 1, 3)), "orientation": orientation}
    assert len(choose_pace(frames, {"time": angle}, "position", 10.0, 1000).indices) == 121


@every("maximum", [1, 2, 3, 7, 1000])
def test_there_are_never_more_frames_than_allowed(maximum):
    frames, diagnostics = relaxation()
    pace = choose_pace(frames, diagnostics, "contacts", 20.0, maximum)
    assert 1 <= len(pace.indices) <= maximum and pace.indices[-1] == 199
    with pytest.raises(UserError, match="maximum_frames = 0 is not an integer of at least 1"):
        choose_pace(frames, diagnostics, "contacts", 20.0, 0)


def test_a_webp_shows_a_ramp_without_bands_and_a_still_picture(tmp_path):
    ramp = np.linspace(40, 200, 320)
    pictures = [
        np.rint(np.stack([ramp + 20 * k, 0 * ramp + 90, 220 - ramp], axis=1))[None].repeat(64, 0) for k in range(3)
    ]
    pictures = [picture.astype(np.uint8) for picture in pictures]
    write_webp(tmp_path / "a.webp", pictures, 20.0, hold=1.0)
    shown, milliseconds = frames_of(tmp_path / "a.webp")
    assert milliseconds == (50, 50, 1050)
    # Blocks of 4 to 8 pixels, over which the ramp rises by 2 to 4 levels, may be flat; bands of a palette of 32 colors
    # are steps of 5 in each channel, and reach over all rows.
    assert np.abs(np.diff(shown[-1][32, :, 0].astype(int))).max() <= 6
    write_webp(tmp_path / "b.webp", pictures[-1:], 20.0)
    assert Image.open(tmp_path / "b.webp").size == (320, 64)


def test_the_last_frame_stays_for_a_second(settings, tmp_path):
    frames, diagnostics = relaxation(40)
    file = render(frames, diagnostics, {}, "t", settings("particles", "contacts"), tmp_path / "a.gif", size=(96, 64))
    delays = frames_of(file)[1]
    assert delays[-1] == pytest.approx(1000 + np.mean(delays[:-1]), abs=11)


def test_a_video_repeats_its_last_frame(tmp_path):
    import imageio_ffmpeg

    images = [np.full((64, 64, 3), level, np.uint8) for level in (0, 128, 255)]
    write_mp4(tmp_path / "a.mp4", images, 10.0, hold=0.5)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 3 + 5
