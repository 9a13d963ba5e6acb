"""The view of rigid bodies: from the side, or shaded in perspective."""

from simkit.errors import UserError, nearest
from simkit.render.bodies.motion import flat_motion_of_balls, read_bodies
from simkit.render.bodies.perspective import PerspectivePainter
from simkit.render.bodies.side import SidePainter
from simkit.render.clip import Clip
from simkit.render.figure import Size
from simkit.scenario.schema import CAMERAS

__all__ = ["PerspectivePainter", "SidePainter", "body_painter"]


def body_painter(clip: Clip, size: Size) -> "SidePainter | PerspectivePainter":
    """Return the painter of the camera that ``settings`` names.

    Without a name it is ``"side"`` for balls that all stay, with what links them, in one plane y = const, and
    ``"perspective"`` for anything else. Arguments are those of the painters.

    Raises:
        UserError: if the camera is unknown or does not show such bodies, or an array is missing or misshapen.
    """
    runs = [read_bodies(run) for run in clip.runs]
    camera = clip.settings.camera or ("side" if flat_motion_of_balls(runs) else "perspective")
    if camera not in CAMERAS:
        raise UserError(f"unknown camera '{camera}'{nearest(camera, CAMERAS)}")
    painter = SidePainter if camera == "side" else PerspectivePainter
    return painter(clip, size)
