"""Selection of frames of animations: even in time, or in visible change."""

import numpy as np
import pytest
from PIL import Image

from simkit.errors import UserError
from simkit.render.animate import render
from simkit.render.selection import choose_pace, visible_changes
from simkit.render.video import write_mp4
from tests.tables import every


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
    assert pace.frames_per_second == 20.0 and pace.hold == 0.0


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
    assert pace.indices.tolist() == list(range(121)) and pace.hold == 0.0


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
    with pytest.raises(UserError, match="maximum_frames is 0"):
        choose_pace(frames, diagnostics, "contacts", 20.0, 0)


def test_the_last_frame_stays_for_a_second(settings, tmp_path):
    frames, diagnostics = relaxation(40)
    file = render(frames, diagnostics, {}, "t", settings("particles", "contacts"), tmp_path / "a.gif", size=(96, 64))
    with Image.open(file) as picture:
        delays = []
        for place in range(picture.n_frames):
            picture.seek(place)
            delays.append(picture.info["duration"])
    assert delays[-1] == pytest.approx(1000 + np.mean(delays[:-1]), abs=11)


def test_a_video_repeats_its_last_frame(tmp_path):
    import imageio_ffmpeg

    images = [np.full((64, 64, 3), level, np.uint8) for level in (0, 128, 255)]
    write_mp4(tmp_path / "a.mp4", images, 10.0, hold=0.5)
    assert imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 3 + 5
