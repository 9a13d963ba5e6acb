"""Fixtures: small runs to draw, render settings, and parts of pictures."""

import numpy as np
import pytest

from simkit.render import chart
from simkit.scenario.scenario import RenderSettings


@pytest.fixture
def settings():
    def make(view, quantity, label="label", unit="1", colormap=None, limits=None, frames_per_second=20.0):
        options = {} if colormap is None else {"colormap": colormap}
        return RenderSettings(view, quantity, label, unit, limits, frames_per_second, options)

    return make


@pytest.fixture
def field_run():
    """A channel of 4 x 2 with eddies that drift and grow, on 128 x 64 cells."""

    def make(count=5):
        x, y = (np.arange(128) + 0.5) / 32, (np.arange(64) + 0.5) / 32 - 1
        across, up = np.meshgrid(x, y, indexing="ij")
        phases = np.random.default_rng(0).uniform(0, 2 * np.pi, 12)
        speeds = []
        time = np.linspace(0, 10, count)
        for t in time:
            eddies = sum(
                np.cos(np.pi / 2 * (k % 5 + 1) * (across - (0.4 + 0.05 * k) * t) + phase)
                * np.sin((k % 3 + 1) * np.pi / 2 * (up + 1) + 0.3 * np.sin(t + phase))
                for k, phase in enumerate(phases)
            )
            speeds.append(np.abs((1 - up**2) * (1 + 0.03 * t * eddies)))
        return {"speed": np.array(speeds, np.float32)}, {"time": time}, {"x": x, "y": y}

    return make


@pytest.fixture
def particle_run():
    """Disks of two sizes that drift through a periodic box."""

    def make(count=4, number=32):
        generator = np.random.default_rng(1)
        start, step = generator.uniform(0, 8, (number, 2)), generator.normal(0, 0.3, (number, 2))
        position = np.array([(start + k * step) % 8 for k in range(count)])
        frames = {
            "position": position,
            "diameter": np.broadcast_to(np.where(np.arange(number) % 2, 1.0, 1.4), (count, number)),
            "box": np.full((count, 2), 8.0),
            "contacts": generator.integers(0, 7, (count, number)),
        }
        return frames, {"iteration": np.arange(count) * 10}, {}

    return make


@pytest.fixture
def body_run():
    """A ball thrown to the right that bounces back to 0.64 of its height and turns as it goes."""

    def make(count=41, radius=0.1):
        time = np.linspace(0, 1.6, count)
        fall = np.sqrt(2 / 9.81)
        since = np.where(time < fall, time, time - fall)
        speed = 0.8 * 9.81 * fall
        height = np.where(time < fall, 1 - 9.81 * since**2 / 2, speed * since - 9.81 * since**2 / 2)
        position = np.stack([time, np.zeros(count), np.maximum(height, 0) + radius], axis=-1)[:, None]
        angle = 3 * time
        frames = {
            "position": position,
            "orientation": np.stack([np.cos(angle / 2), 0 * time, np.sin(angle / 2), 0 * time], axis=-1)[:, None],
            "radius": np.full((count, 1), radius),
            "target": np.tile([1.5, 0.0, 0.0], (count, 1)),
        }
        return frames, {"time": time}, {}

    return make


@pytest.fixture
def window_of():
    """The part of a picture that shows data, first row at the top."""

    def cut(painter, image):
        box = painter.sheet.box
        top = image.shape[0] - box.bottom - box.height
        return image[top : top + box.height, box.left : box.left + box.width]

    return cut


@pytest.fixture
def rgb():
    """The color of a name such as ``#ffffff`` as three whole numbers."""
    from matplotlib.colors import to_rgb

    return lambda name: np.rint(np.array(to_rgb(name)) * 255).astype(np.uint8)


@pytest.fixture
def figures(monkeypatch):
    """Collect the figures of charts that are drawn."""
    kept, write = [], chart.write
    monkeypatch.setattr(chart, "write", lambda path, figure: kept.append(figure) or write(path, figure))
    return kept


@pytest.fixture
def drawn(figures, tmp_path):
    """Return a function that draws the chart of a sweep and returns its axes."""

    def draw(points, series, failed=None, **more):
        count, seeds = np.shape(next(iter(series.values())))[:2]
        bad = np.zeros((count, seeds), bool) if failed is None else np.asarray(failed)
        chart.sweep_chart(tmp_path / "a.png", chart.SweepData(points, series, bad, **more))
        return figures[-1].axes

    return draw
