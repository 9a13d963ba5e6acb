"""From a finished run to the file that shows it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simkit.runtime import datasets

if TYPE_CHECKING:
    from simkit.runtime.outcome import Outcome


def draw(
    outcome: "Outcome",
    output: Path,
    kind: str,
    size: tuple[int, int] | int,
    frame: int = -1,
    maximum_frames: int = 150,
    report: Callable[[float], None] = lambda fraction: None,
) -> Path:
    """Draw a run's stored frames.

    Args:
        outcome: a run.
        output: file to write.
        kind: ``"gif"``, ``"mp4"`` or ``"png"``.
        size: width and height in pixels, or their product for a shape that suits what is shown.
        frame: which frame a still picture shows; negative counts from the end.
        maximum_frames: an animation is thinned to about this many.
        report: told the fraction of an animation that is drawn.

    Raises:
        UserError: if the file cannot be written or there is no such frame.
    """
    from simkit.render.animate import render

    render(
        **_drawable(outcome.arrays, outcome.labels),
        title=outcome.scenario.title,
        settings=outcome.scenario.render,
        output=output,
        format=kind,
        size=size,
        frame=frame,
        maximum_frames=maximum_frames,
        report=report,
    )
    return output


def animation_html(outcome: "Outcome", pixels: tuple[int, int] = (480, 270), frames: int = 60) -> str:
    """Return a run's animation as HTML that needs no other file, for a notebook.

    Args:
        outcome: a run.
        pixels: width and height.
        frames: it is thinned to about this many.

    Raises:
        UserError: if its frames cannot be drawn.
    """
    import base64
    import html
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = draw(outcome, Path(folder) / "animation.gif", "gif", pixels, maximum_frames=frames)
        data = base64.b64encode(file.read_bytes()).decode()
    title = html.escape(outcome.scenario.title, quote=True)
    return f'<img src="data:image/gif;base64,{data}" alt="{title}" width="{pixels[0]}" height="{pixels[1]}">'


def draw_before_and_after(
    before: "Outcome", after: "Outcome", output: Path, captions: tuple[str, str], size: tuple[int, int] | int
) -> Path:
    """Draw the last frames of two runs beside each other, on the same color scale.

    Args:
        before: run with the parameters an optimization began with.
        after: run with those it found.
        output: PNG file to write.
        captions: one for each.
        size: of each picture, in pixels.

    Raises:
        UserError: if the file cannot be written.
    """
    from simkit.render.chart import comparison

    pair = [_drawable(outcome.arrays, outcome.labels) for outcome in (before, after)]
    scenario = before.scenario
    return comparison(output, pair[0], pair[1], scenario.render, scenario.title, captions, size)


def _drawable(arrays: Mapping[str, np.ndarray], labels: Mapping[str, Any]) -> dict[str, Any]:
    observed, diagnosed = datasets.split(arrays)
    coordinates = {name: np.asarray(values) for name, values in labels["coordinates"].items()}
    return {"frames": observed, "diagnostics": diagnosed, "coordinates": coordinates}
