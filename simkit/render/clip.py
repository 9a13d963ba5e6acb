"""Input of painters: frames, diagnostics, coordinates, title and settings of a run."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from simkit.scenario.sections import RenderSettings

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
