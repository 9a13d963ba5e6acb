"""The view of rigid bodies: from the side, or shaded in perspective."""

from collections.abc import Mapping, Sequence

import numpy as np

from simkit.errors import UserError, nearest
from simkit.render.bodies.motion import flat_motion_of_balls, read_bodies
from simkit.render.bodies.perspective import PerspectivePainter
from simkit.render.bodies.side import SidePainter
from simkit.render.figure import Size
from simkit.scenario.scenario import RenderSettings
from simkit.scenario.schema import CAMERAS

__all__ = ["PerspectivePainter", "SidePainter", "body_painter"]


def body_painter(
    frames: Mapping[str, np.ndarray],
    diagnostics: Mapping[str, np.ndarray],
    coordinates: Mapping[str, np.ndarray],
    title: str,
    settings: RenderSettings,
    size: Size,
    alongside: Sequence[Mapping[str, np.ndarray]] = (),
) -> "SidePainter | PerspectivePainter":
    """Return the painter of the camera that ``settings`` names.

    Without a name it is ``"side"`` for balls that all stay, with what links them, in one plane y = const, and
    ``"perspective"`` for anything else. Arguments are those of the painters.

    Raises:
        UserError: if the camera is unknown or does not show such bodies, or an array is missing or misshapen.
    """
    runs = [read_bodies(run) for run in (frames, *alongside)]
    camera = settings.camera or ("side" if flat_motion_of_balls(runs) else "perspective")
    if camera not in CAMERAS:
        raise UserError(f"unknown camera '{camera}'{nearest(camera, CAMERAS)}")
    painter = SidePainter if camera == "side" else PerspectivePainter
    return painter(frames, diagnostics, coordinates, title, settings, size, alongside)
