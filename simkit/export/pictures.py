"""Pictures and animations of runs, in memory and as files."""

import base64
import dataclasses
import html
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from simkit.errors import UserError
from simkit.export.drawable import drawable_of, parts_of
from simkit.render.animate import check_size, parse_size, render
from simkit.render.chart import comparison
from simkit.storage.files import make_folder, write_bytes

if TYPE_CHECKING:
    from simkit.jobs.outcome import Outcome


def draw(
    outcome: "Outcome",
    output: Path,
    kind: str,
    size: tuple[int, int] | int,
    frame: int = -1,
    maximum_frames: int = 150,
    report: Callable[[float], None] = lambda fraction: None,
    changed: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Draw a run's stored frames.

    Args:
        outcome: a run.
        output: file to write.
        kind: ``"gif"``, ``"mp4"`` or ``"png"``.
        size: width and height in pixels, or their product for a shape that suits the view.
        frame: index of the frame of a still picture; negative counts from the end.
        maximum_frames: approximate number of frames that a longer run is thinned to.
        report: called with the fraction of the animation that is drawn.
        changed: settings of ``[render]`` that replace those of the run, such as ``quantity`` and ``limits``.

    Raises:
        UserError: if the file cannot be written, the frame does not exist, or a changed setting is not allowed.
    """
    render(
        **drawable_of(outcome, changed),
        output=output,
        format=kind,
        size=size,
        frame=frame,
        maximum_frames=maximum_frames,
        report=report,
    )
    return output


@dataclasses.dataclass(frozen=True)
class Drawing:
    """An animation or a picture in memory, which a notebook shows inline.

    Attributes:
        data: the file's bytes.
        kind: ``"gif"``, ``"mp4"`` or ``"png"``.
        title: what it shows.
    """

    data: bytes
    kind: str
    title: str

    def save(self, path: Path | str) -> Path:
        """Write the drawing to a file, and return its path.

        Args:
            path: with the suffix of ``kind``.

        Raises:
            UserError: if the path has another suffix, or cannot be written.
        """
        path = Path(path)
        if path.suffix != f".{self.kind}":
            remedy = f"name it {path.stem}.{self.kind}"
            if self.kind in ("gif", "mp4") and path.suffix in (".gif", ".mp4"):
                remedy += f", or draw with animate(..., kind='{path.suffix[1:]}')"
            raise UserError(f"{path} cannot hold this drawing, which is a {self.kind}; {remedy}")
        make_folder(path.parent)
        write_bytes(path, self.data)
        return path

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self.data).decode()
        if self.kind == "mp4":
            return f'<video controls loop src="data:video/mp4;base64,{encoded}"></video>'
        return f'<img src="data:image/{self.kind};base64,{encoded}" alt="{html.escape(self.title, quote=True)}">'

    def __repr__(self) -> str:
        """Return one line, without the bytes."""
        return f"<Drawing of {self.title}: {self.kind}, {len(self.data)} bytes; save(path) writes it>"


def animate(
    result: Any, *, size: tuple[int, int] | int = 480 * 270, frames: int = 60, kind: str = "gif", **settings: Any
) -> Drawing:
    """Return the animation of a run, to be shown in a notebook or saved.

    Args:
        result: the data set of `simkit.run` or a part of it in time; the folder of a run; or
            ``(frames, diagnostics)`` of `simkit.core.rollout.trajectory`.
        size: width and height in pixels, or their product for a shape that suits the view.
        frames: approximate number of frames that a longer run is thinned to.
        kind: ``"gif"`` or ``"mp4"``.
        **settings: ``view``, ``quantity``, ``label``, ``unit``, ``colormap``, ``limits``, ``frames_per_second``,
            ``title`` and others of a scenario's ``[render]``, which replace those of the run.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.
    """
    if kind not in ("gif", "mp4"):
        raise UserError(f"kind = {kind!r:.40} is not an animation; choose 'gif' or 'mp4'")
    return _drawing(result, kind, settings, size=size, maximum_frames=frames)


def picture(result: Any, *, frame: int = -1, size: tuple[int, int] | int = 640 * 360, **settings: Any) -> Drawing:
    """Return a picture of one frame of a run, to be shown in a notebook or saved as a PNG.

    Args:
        result: as for `animate`.
        frame: its index; negative counts from the end.
        size: width and height in pixels, or their product for a shape that suits the view.
        **settings: as for `animate`.

    Raises:
        UserError: if there is nothing to draw, or a setting is unknown or not allowed.
    """
    return _drawing(result, "png", settings, size=size, frame=frame)


def _drawing(result: Any, kind: str, settings: dict[str, Any], **options: Any) -> Drawing:

    options["size"] = parse_size(options["size"]) if isinstance(options["size"], str) else check_size(options["size"])
    drawable = drawable_of(result, settings)
    with tempfile.TemporaryDirectory() as folder:
        file = render(**drawable, output=Path(folder) / f"drawing.{kind}", format=kind, **options)
        return Drawing(file.read_bytes(), kind, drawable["title"])


def draw_before_and_after(
    before: "Outcome", after: "Outcome", output: Path, captions: tuple[str, str], size: tuple[int, int] | int
) -> Path:
    """Draw the last frames of two runs beside each other, on the same color scale.

    Args:
        before: run with the initial parameters of an optimization.
        after: run with the optimized parameters.
        output: PNG file to write.
        captions: of the two pictures.
        size: of each picture, in pixels.

    Raises:
        UserError: if the file cannot be written.
    """
    pair = [parts_of(outcome.arrays, outcome.labels) for outcome in (before, after)]
    scenario = before.scenario
    return comparison(output, pair[0], pair[1], scenario.render, scenario.title, captions, size)
