"""Views of a run: input of painters, and painters by name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from simkit.errors import UserError
from simkit.render.figure import DEFAULT_PIXELS, Size
from simkit.scenario.registry import VIEWS
from simkit.scenario.scenario import RenderSettings

type Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Clip:
    """Input of a painter.

    Attributes:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first; ``time`` or ``iteration`` gives the time stamp.
        coordinates: physical coordinates by name; a field needs its cell centers ``x`` and ``y``.
        title: title at the upper left.
        settings: view, quantity, label, unit, color map, limits, speed and camera.
        units: units of diagnostics and coordinates by name, as far as they are known.
        alongside: frames of other runs drawn for comparison, which share colors and window.
    """

    frames: Arrays
    diagnostics: Arrays
    coordinates: Arrays
    title: str
    settings: RenderSettings
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    alongside: Sequence[Arrays] = ()

    @property
    def runs(self) -> list[Arrays]:
        """Frames of this run and of those drawn for comparison."""
        return [self.frames, *self.alongside]


class Painter(Protocol):
    """Draws stored frames as images, with static parts drawn once; made by ``view(clip, size)``."""

    def __len__(self) -> int:
        """Return the number of frames."""
        ...

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        ...


def new_painter(
    frames: Mapping[str, np.ndarray],
    diagnostics: Mapping[str, np.ndarray],
    coordinates: Mapping[str, np.ndarray],
    title: str,
    settings: RenderSettings,
    size: Size = DEFAULT_PIXELS,
    units: Mapping[str, str] | None = None,
    alongside: Sequence[Mapping[str, np.ndarray]] = (),
) -> Painter:
    """Return the painter for ``settings.view``.

    Args:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first; ``time`` or ``iteration`` gives the time stamp.
        coordinates: cell centers ``x`` and ``y`` for fields.
        title: title at the upper left.
        settings: view, quantity, label, unit, color map and limits.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.
        units: units of diagnostics and coordinates by name, as far as they are known.
        alongside: frames of other runs drawn for comparison, which share colors and window.

    Raises:
        UserError: if the view is unknown, there is no frame, or the frames lack what the view needs.
    """
    view = VIEWS.resolve(settings.view)
    drawn = diagnostics if settings.view == "chart" else frames
    if settings.view not in VIEWS.own:  # a view of a package may draw either
        drawn = frames or diagnostics
    # The painter of a chart has its own message for no diagnostics.
    if not (drawn or settings.view == "chart") or not all(len(array) for array in drawn.values()):
        raise UserError("there are no frames to draw; run at least one frame interval")
    clocks = {name: diagnostics[name] for name in ("time", "iteration") if name in diagnostics}
    lengths = {name: len(array) for name, array in {**frames, **clocks}.items()}
    if len(set(lengths.values())) > 1:
        raise UserError(f"the stored arrays differ in their number of frames: {lengths}")
    painter = view(Clip(frames, diagnostics, coordinates, title, settings, units or {}, alongside), size)
    return painter if settings.view in VIEWS.own else _Checked(painter)


class _Checked:
    """A painter from another package, with checks of its images."""

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self._painter)

    def image(self, index: int) -> np.ndarray:
        """Return a frame.

        Raises:
            UserError: if it is not an image, or has another size than the first.
        """
        image = self._painter.image(index)
        found = f"{image.dtype}{list(image.shape)}" if isinstance(image, np.ndarray) else type(image).__name__
        fits = found.startswith("uint8[") and image.ndim == 3 and image.shape[-1] == 3
        if not fits or self._shape not in (None, image.shape):
            name = f"{type(self._painter).__module__}.{type(self._painter).__name__}"
            raise UserError(f"{name} paints {found}; a frame is an array (height, width, 3) of uint8, all of one size")
        self._shape = image.shape
        return image


class Pictures:
    """Selected frames of a painter, each drawn when it is read.

    Args:
        painter: painter of the run.
        indices: indices of the frames, in order.
        report: called after each frame with the fraction drawn; frames drawn twice count twice.
    """

    def __init__(
        self,
        painter: Painter,
        indices: Sequence[int] | np.ndarray,
        report: Callable[[float], None] = lambda fraction: None,
    ) -> None:
        self._painter, self._indices = painter, indices
        self._report, self._painted = report, 0

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, number: int) -> np.ndarray:
        image = self._painter.image(int(self._indices[number]))
        self._painted += 1
        self._report(min(self._painted / len(self), 1.0))
        return image
