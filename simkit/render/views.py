"""Views of a run: the input and the images of painters, and painters by name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from simkit.errors import UserError
from simkit.scenario.drawing import CLOCKS, view_of
from simkit.scenario.registry import VIEWS
from simkit.scenario.scenario import RenderSettings

if TYPE_CHECKING:
    import numpy as np

type Arrays = Mapping[str, np.ndarray]
# Width and height in pixels, or their product for a picture of free aspect ratio.
type Size = tuple[int, int] | int
DEFAULT_PIXELS = 640 * 360


@dataclasses.dataclass(frozen=True)
class Clip:
    """Input of a painter.

    Attributes:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first; ``time`` or ``iteration`` gives the time stamp.
        coordinates: physical coordinates by name; a field needs its cell centers ``x`` and ``y``.
        title: title at the upper left.
        settings: view, quantity, label, unit, limits, speed, and values of the keys of the view.
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

    def __len__(self) -> int:
        return len(next(iter({**self.frames, **self.diagnostics}.values())))

    @property
    def runs(self) -> list[Arrays]:
        """Frames of this run and of those drawn for comparison."""
        return [self.frames, *self.alongside]


class Painter(Protocol):
    """Draws stored frames as images, with static parts drawn once; made by ``view(clip, size)``."""

    def __len__(self) -> int:
        """Return the number of frames."""
        ...

    def image(self, index: int) -> "np.ndarray":
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        ...


def new_painter(
    frames: Arrays,
    diagnostics: Arrays,
    coordinates: Arrays,
    title: str,
    settings: RenderSettings,
    size: Size = DEFAULT_PIXELS,
    units: Mapping[str, str] | None = None,
    alongside: Sequence[Arrays] = (),
) -> Painter:
    """Return the painter for ``settings.view``.

    Args:
        frames: observed arrays by name, frame axis first.
        diagnostics: scalars by name, frame axis first; ``time`` or ``iteration`` gives the time stamp.
        coordinates: cell centers ``x`` and ``y`` for fields.
        title: title at the upper left.
        settings: view, quantity, label, unit, limits, and values of the keys of the view.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.
        units: units of diagnostics and coordinates by name, as far as they are known.
        alongside: frames of other runs drawn for comparison, which share colors and window.

    Raises:
        UserError: if the view is unknown, there is no frame, or the frames lack what the view needs.
    """
    declared = view_of(settings.view)
    drawn = declared.drawn(frames, diagnostics)
    # A painter of diagnostics has its own message where there are none.
    has_frames = (drawn or declared.source == "diagnosed") and all(len(array) for array in drawn.values())
    clocks = {name: diagnostics[name] for name in CLOCKS if name in diagnostics}
    lengths = {name: len(array) for name, array in {**frames, **clocks}.items()}
    if not has_frames or len(set(lengths.values())) > 1:
        problem = f"the stored arrays differ in their number of frames: {lengths}"
        raise UserError(problem if has_frames else "there are no frames to draw; run at least one frame interval")
    return VIEWS.resolve(settings.view)(
        Clip(frames, diagnostics, coordinates, title, settings, units or {}, alongside), size
    )


class Pictures:
    """Selected frames of a painter, each drawn when it is read.

    Args:
        painter: painter of the run.
        indices: indices of the frames, in order.
        report: called after each frame with the fraction drawn; frames drawn twice count twice.

    Raises:
        UserError: where the painter of another package gives no image, or one of another size than the first.
    """

    def __init__(
        self,
        painter: Painter,
        indices: "Sequence[int] | np.ndarray",
        report: Callable[[float], None] = lambda fraction: None,
    ) -> None:
        self._painter, self._indices = painter, indices
        self._report, self._painted = report, 0
        self._shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, number: int) -> "np.ndarray":
        image = image_of(self._painter, int(self._indices[number]))
        if self._shape not in (None, image.shape):
            raise UserError(f"{_name(self._painter)} paints frames of several sizes; all are of one size")
        self._shape = image.shape
        self._painted += 1
        self._report(min(self._painted / len(self), 1.0))
        return image


def image_of(painter: Painter, index: int) -> "np.ndarray":
    """Return one frame of a painter.

    Args:
        painter: of simkit or another package.
        index: of the frame.

    Raises:
        UserError: if the painter gives no array (height, width, 3) of uint8.
    """
    image = painter.image(index)
    kind = f"{image.dtype}{list(image.shape)}" if hasattr(image, "dtype") else type(image).__name__
    if not (kind.startswith("uint8[") and image.ndim == 3 and image.shape[-1] == 3):
        raise UserError(f"{_name(painter)} paints {kind}; a frame is an array (height, width, 3) of uint8")
    return image


def _name(painter: Painter) -> str:
    return f"{type(painter).__module__}.{type(painter).__name__}"
