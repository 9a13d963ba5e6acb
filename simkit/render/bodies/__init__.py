"""View of rigid bodies: from the side, or shaded in perspective."""

from simkit.errors import UserError, nearest
from simkit.render.bodies.motion import are_balls_in_plane, read_bodies
from simkit.render.bodies.perspective import PerspectivePainter
from simkit.render.bodies.side import SidePainter
from simkit.render.figure import Size
from simkit.render.views import Clip
from simkit.scenario.sections import CAMERAS

__all__ = ["PerspectivePainter", "SidePainter", "body_painter"]


def body_painter(clip: Clip, size: Size) -> "SidePainter | PerspectivePainter":
    """Return the painter of the camera named in ``settings``; arguments are those of the painters.

    The default is ``"side"`` for balls that stay with their links in one plane y = const, else ``"perspective"``.

    Raises:
        UserError: if the camera is unknown or does not show such bodies, or an array is missing or has another shape.
    """
    runs = [read_bodies(run) for run in clip.runs]
    camera = clip.settings.camera or ("side" if are_balls_in_plane(runs) else "perspective")
    if camera not in CAMERAS:
        raise UserError(f"unknown camera '{camera}'{nearest(camera, CAMERAS)}")
    painter = SidePainter if camera == "side" else PerspectivePainter
    return painter(clip, size)
