"""Perspective view of rigid bodies: shaded balls, capsules, boxes and disks with shadows on planes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.transforms import IdentityTransform

from simkit.render.bodies.camera import Camera, direction_of, fitted, seen_window, turned
from simkit.render.bodies.light import Ground, Plane, lamp, linear, nice_length, shadow_of
from simkit.render.bodies.motion import BodyFrames, body_colors, read_bodies
from simkit.render.bodies.raster import Line, draw_lines, edges, packed, shaded, visible
from simkit.render.bodies.solids import BALL, BOX, HULL, Solid, rod, solid
from simkit.render.page import Sheet, Size, scale_of
from simkit.render.style import ACCENT, MUTED, house_style
from simkit.render.views import Clip
from simkit.scenario.scenario import RenderSettings

_ROD, _PIN = "#8793a1", "#39434f"
# Radius of rods and of the target's rings, relative to the size of the scene.
_ROD_RADIUS, _MARK_RADIUS = 0.0032, 0.05
# Smallest radius of pivots, in radii of rods and in radii of the thinnest body.
_PIVOT, _PIN_SIZE = 2.6, 1.35
# Largest number of bodies whose paths are drawn.
_MOST_PATHS = 8
# Smallest opacity of the path of a traced point.
_TRACE = 0.65
_PATH_WIDTH, _EDGE_WIDTH = 1.7, 0.9


class PerspectivePainter:
    """Draws bodies as seen by a camera a little above them.

    Args:
        clip: frames as for ``read_bodies``; ``settings.quantity`` and the optional coordinate ``body_of_shape`` as for
            ``body_colors``.
        size: width and height in pixels; or their product, for a picture of the aspect ratio of its content.

    Raises:
        UserError: if an array is missing or has another shape.
    """

    def __init__(self, clip: Clip, size: Size) -> None:
        runs = [read_bodies(run) for run in clip.runs]
        self._bodies = runs[0]
        self._present = self._bodies.present
        body_of_shape = clip.coordinates.get("body_of_shape")
        colors, scale = body_colors(clip.runs, clip.settings, self._present.shape, body_of_shape)
        self._colors = linear(colors)
        self._two_faced = clip.settings.quantity == "orientation"
        self._turn = clip.settings.options.get("turn") or 0.0
        points, radii, direction = self._measure(runs, clip.settings)
        pivot = self._middle if self._turn else None
        self.sheet = Sheet(clip, size, seen_window(points, radii, *direction, pivot), scale, "s", stretch=True)
        self._scale, box = scale_of(self.sheet.size), self.sheet.box
        self._camera = fitted(points, radii, *direction, (box.width, box.height), pivot)
        self._light = lamp(direction[0])
        self._planes = self._chosen_planes(self._floor)
        self._grounds: dict[tuple, Ground] = {}
        self._caption = []
        if self._planes:
            with house_style():
                self._write_caption()

    def __len__(self) -> int:
        return len(self._bodies.position)

    def image(self, index: int) -> np.ndarray:
        """Return frame ``index`` as an array (height, width, 3) of uint8."""
        camera = turned(self._camera, self._middle, self._turn * index / max(len(self) - 1, 1))
        solids = self._solids(index)
        shadows = [shadow_of(body, self._light) for body in solids]
        seen = visible(solids, camera)
        light, cover = shaded(solids, shadows, camera, self._light, seen)
        image = self._ground(index, camera).shadowed(shadows) * (1 - cover[..., None]) + light
        image = draw_lines(image, self._paths(index), camera, _PATH_WIDTH * self._scale, seen)
        boxes = [line for k, body in enumerate(solids) if body.kind in (BOX, HULL) for line in edges(body, k, camera)]
        image = draw_lines(image, boxes, camera, _EDGE_WIDTH * self._scale, seen)
        return self.sheet.picture(index, self._caption, packed(image))

    def _measure(
        self, runs: Sequence[BodyFrames], settings: RenderSettings
    ) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
        """Return centers and radii of spheres around all objects, and azimuth and elevation of the camera."""
        points, radii = (np.concatenate(parts) for parts in zip(*(run.outline() for run in runs), strict=True))
        if not len(points):
            points, radii = np.zeros((1, 3)), np.ones(1)
        self._floor = all(run.has_floor() for run in runs)
        if self._floor:
            # The floor under each body is kept in view.
            points, radii = np.concatenate([points, points * [1, 1, 0]]), np.concatenate([radii, 0 * radii])
        low, high = (points - radii[:, None]).min(axis=0), (points + radii[:, None]).max(axis=0)
        self._middle, self._size = (low + high) / 2, float(np.linalg.norm(high - low)) or 1.0
        marks = [run.target[np.isfinite(run.target).all(axis=1)] for run in runs if run.target is not None]
        for mark in marks:
            points = np.concatenate([points, mark])
            radii = np.concatenate([radii, np.full(len(mark), _MARK_RADIUS * self._size)])
        if not radii.any():
            radii = radii + 0.05 * self._size
        return points, radii, direction_of(settings, low, high)

    def _chosen_planes(self, floor: bool) -> list[Plane]:
        static = self._bodies.planes[0]
        static = static[np.isfinite(static).all(axis=1)]
        level = (static[:, 2] > 1 - 1e-6) & (np.abs(static[:, 3]) < 1e-6 * self._size)
        equations = [*static[~level], *([np.array([0.0, 0.0, 1.0, 0.0])] if floor or level.any() else [])]
        tile = nice_length(self._size / 6)
        planes = []
        for *normal, offset in equations:
            normal = np.array(normal)
            middle = self._middle + (offset - normal @ self._middle) * normal
            planes.append(Plane(normal, float(offset), middle, 1.5 * self._size, tile))
        return planes

    def _ground(self, index: int, camera: Camera) -> Ground:
        target = None if self._bodies.target is None else self._bodies.target[index]
        key = (camera.eye.tobytes(), None if target is None else target.tobytes())
        if key not in self._grounds:
            mark = _MARK_RADIUS * self._size
            # Only the last ground is kept: it is the same in all frames, unless the camera turns or the target moves.
            self._grounds = {key: Ground(self._planes, camera, self._light, self._scale, target, mark)}
        return self._grounds[key]

    def _solids(self, index: int) -> list[Solid]:
        bodies, drawn = self._bodies, np.flatnonzero(self._present[index] & (self._bodies.reach[index] > 0))
        drawn_solids = [
            solid(
                bodies.position[index, body],
                bodies.orientation[index, body],
                bodies.half_lengths[index, body],
                bodies.radius[index, body],
                self._colors[index, body],
                bodies.disk[index, body],
                self._two_faced,
                bodies.corners[index, body] if bodies.corners.size else None,
            )
            for body in drawn
        ]
        thin = _ROD_RADIUS * self._size
        # A pivot inside a round body protrudes from it.
        pin = max(
            _PIVOT * thin, _PIN_SIZE * min((body.radius for body in drawn_solids if body.radius > 0), default=0.0)
        )
        drawn_solids += [rod(ends, thin, linear(_ROD)) for ends in bodies.links[index] if np.isfinite(ends).all()]
        drawn_solids += [_bead(point, pin, _PIN) for point in bodies.pivots[index] if np.isfinite(point).all()]
        target = None if bodies.target is None else bodies.target[index]
        mark = _MARK_RADIUS * self._size
        if target is not None and np.isfinite(target).all() and not self._on_plane(target, mark):
            drawn_solids.append(_bead(target, mark / 2, ACCENT))
        return drawn_solids

    def _on_plane(self, point: np.ndarray, mark: float) -> bool:
        return any(abs(plane.normal @ point - plane.offset) < 0.5 * mark for plane in self._planes)

    def _paths(self, index: int) -> list[Line]:
        count, bodies = self._present.shape
        if index == 0:
            return []
        age = np.arange(index, -1, -1) / count
        strength = 0.35 + 0.6 * np.exp(-age / 0.12)
        paths = []
        for number in range(self._bodies.trace.shape[1]):
            points = self._bodies.trace[: index + 1, number]
            is_finite = np.isfinite(points).all(axis=1)
            ink = np.tile(linear(ACCENT), (int(is_finite.sum()), 1))
            paths.append(Line(points[is_finite], ink, np.maximum(strength[is_finite], _TRACE)))
        if paths or bodies > _MOST_PATHS:
            return paths
        for body in range(bodies):
            present = self._present[: index + 1, body]
            points = self._bodies.position[: index + 1, body][present]
            paths.append(Line(points, self._colors[: index + 1, body][present], strength[present]))
        return paths

    def _write_caption(self) -> None:
        box, tile = self.sheet.box, self._planes[0].tile
        text = self.sheet.figure.text(
            box.left,
            box.bottom,
            f"squares of {tile:g} m",
            color=MUTED,
            size=8.5,
            transform=IdentityTransform(),
            va="bottom",
        )
        text.set_animated(True)
        self._caption = [text]


def _bead(center: np.ndarray, radius: float, color: str) -> Solid:
    return Solid(BALL, center, np.eye(3), np.zeros(3), radius, linear(np.array(to_rgb(color))), plain=True)
