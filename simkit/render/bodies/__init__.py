"""View of rigid bodies: from the side, or shaded in perspective."""

from simkit.render.bodies.motion import are_balls_in_plane, read_bodies
from simkit.render.bodies.perspective import PerspectivePainter
from simkit.render.bodies.side import SidePainter
from simkit.render.figure import Size
from simkit.render.views import Clip

__all__ = ["PerspectivePainter", "SidePainter", "body_painter"]


def body_painter(clip: Clip, size: Size) -> "SidePainter | PerspectivePainter":
    """Return the painter of the camera named in ``settings``; arguments are those of the painters.

    The default is ``"side"`` for balls that stay with their links in one plane y = const, else ``"perspective"``.

    Raises:
        UserError: if the camera does not show such bodies, or an array is missing or has another shape.
    """
    runs = [read_bodies(run) for run in clip.runs]
    camera = clip.settings.options.get("camera") or ("side" if are_balls_in_plane(runs) else "perspective")
    painter = SidePainter if camera == "side" else PerspectivePainter
    return painter(clip, size)
