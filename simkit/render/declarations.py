"""Declarations of the views: keys of ``[render]``, what they draw, and the painter, imported where one draws."""

from collections.abc import Callable

from simkit.core.settings import line, needs, number, whole, word
from simkit.render.views import Clip, Painter, Size
from simkit.scenario.checks import LONGEST_LABEL
from simkit.scenario.drawing import CLOCKS, Frame, view, window

COLORMAP = line("name of a Matplotlib color map; by default the view's own", None, LONGEST_LABEL)


def _fields(frame: Frame) -> list[str]:
    x, *rows = (frame.coordinates.get(axis, ()) for axis in ("x", "y_drawn", "y"))
    planes = [x + y for y in rows if len(x + y) == 2]
    return [name for plane in planes for name, array in frame.observed.items() if array.shape == plane]


def _per_object(size: str) -> Callable[[Frame], list[str]]:
    """Return the names of the arrays with one value for each particle or body, the array of their sizes last."""

    def names(frame: Frame) -> list[str]:
        count = frame.observed["position"].shape[:1]
        return [*(name for name, array in frame.observed.items() if array.shape == count and name != size), size]

    return names


def _numbers(frame: Frame) -> list[str]:
    names = [name for name, array in frame.diagnosed.items() if array.shape == ()]
    return sorted(names, key=lambda name: name in CLOCKS)


@view(
    keys={
        "colormap": COLORMAP,
        "window": window("part of the plane that is drawn; by default all of it"),
        "tracers": whole("number of particles that the flow carries, with tails along its streamlines", 0, 0, 5000),
    },
    source="observed",
    axes=2,
    likely=_fields,
)
def field(clip: Clip, size: Size) -> Painter:
    """Return the painter of a field in the plane as colors."""
    from simkit.render.field import FieldPainter

    return FieldPainter(clip, size)


@view(
    keys={"colormap": COLORMAP},
    source="observed",
    arrays=("position", "diameter"),
    axes=1,
    likely=_per_object("diameter"),
)
def particles(clip: Clip, size: Size) -> Painter:
    """Return the painter of particles: disks in the plane, spheres in space."""
    from simkit.render.particles import particle_painter

    return particle_painter(clip, size)


@view(
    keys={
        "colormap": COLORMAP,
        "camera": word(
            "side, along y, or perspective; by default the motion of the bodies chooses", ("side", "perspective"), None
        ),
        "azimuth": number("direction from the bodies to the camera in degrees, from x towards y", None, (-360, 360)),
        "elevation": number("elevation of the camera above the horizon in degrees", None, (-89, 89)),
        "turn": number(
            "rotation of the camera around the bodies during the animation, in degrees; by default none",
            None,
            (-3600, 3600),
        ),
    },
    rules=needs(("azimuth", "elevation", "turn"), "camera", "perspective"),
    source="observed",
    arrays=("position", "orientation", "radius"),
    likely=_per_object("radius"),
)
def bodies(clip: Clip, size: Size) -> Painter:
    """Return the painter of rigid bodies, from the side or in perspective."""
    from simkit.render.bodies.motion import are_balls_in_plane, read_bodies
    from simkit.render.bodies.perspective import PerspectivePainter
    from simkit.render.bodies.side import SidePainter

    # Balls that stay with their links in one plane y = const are drawn from the side.
    camera = clip.settings.options.get("camera")
    camera = camera or ("side" if are_balls_in_plane([read_bodies(run) for run in clip.runs]) else "perspective")
    return (SidePainter if camera == "side" else PerspectivePainter)(clip, size)


@view(
    keys={"along": line("coordinate along the horizontal axis, that of the first axis of the array")},
    source="observed",
)
def curves(clip: Clip, size: Size) -> Painter:
    """Return the painter of an array over a coordinate."""
    from simkit.render.curves import CurvePainter

    return CurvePainter(clip, size)


@view(keys={}, source="diagnosed", likely=_numbers)
def chart(clip: Clip, size: Size) -> Painter:
    """Return the painter of a diagnostic over time."""
    from simkit.render.chart import LinePainter

    return LinePainter(clip, size)
