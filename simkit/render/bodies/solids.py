"""Ray intersections and surfaces of balls, capsules, boxes, cylinders, ellipsoids and hulls."""

import dataclasses
import functools

import numpy as np
from scipy.spatial import ConvexHull

from simkit.render.bodies.camera import Camera
from simkit.render.bodies.motion import rotation

# Lightening of every other quarter of a disk, which makes its spin visible.
_SPOT = 0.45


def meet_disk(origin: np.ndarray, line: list[np.ndarray], radius: float, half: float) -> np.ndarray:
    """Return the depth at which lines of sight hit a disk, infinite where they miss it.

    Args:
        origin: position (3,) of the eye.
        line: the three components of the directions.
        radius: radius of the disk.
        half: half its thickness.
    """
    a = line[0] ** 2 + line[1] ** 2
    b = origin[0] * line[0] + origin[1] * line[1]
    within = b * b - a * (origin[0] ** 2 + origin[1] ** 2 - radius**2)
    root = np.sqrt(within)
    inverse = 1 / line[2]
    middle, spread = -origin[2] * inverse, half * np.abs(inverse)
    enter = np.maximum((-b - root) / a, middle - spread)
    leave = np.minimum((-b + root) / a, middle + spread)
    # Lines that miss the cylinder have a NaN root, with which the comparison is false.
    return np.where(enter < leave, enter, np.inf)


def disk_surface(points: np.ndarray, radius: float, half: float, pixel: float) -> tuple[np.ndarray, np.ndarray]:
    """Return outward normals (3, n) and lightening (n,) at points of a disk's surface.

    Args:
        points: the points (3, n).
        radius: radius of the disk.
        half: half its thickness.
        pixel: size of a pixel at the disk.
    """
    distance = np.hypot(points[0], points[1])
    is_face = np.abs(points[2]) / half > distance / radius
    zero = np.zeros(points.shape[1])
    radial = np.stack([points[0], points[1], zero]) / np.maximum(distance, 1e-12 * radius)
    normal = np.where(is_face, np.stack([zero, zero, np.sign(points[2])]), radial)
    # Distance from the nearer of the two lines between the quarters, negative in the dark quarters.
    inside = np.minimum(np.abs(points[0]), np.abs(points[1])) * np.sign(points[0] * points[1])
    return normal, _SPOT * np.clip(0.5 + inside / pixel, 0.0, 1.0)


BALL, CAPSULE, BOX, DISK, ELLIPSOID, HULL = "ball", "capsule", "box", "disk", "ellipsoid", "hull"
# Lightening and darkening of the marks that make the rotation of a body visible.
_PALER, _DARKER = 0.5, 0.75
# Half-width of the stripe around a ball as the sine of its angle, and radius of the dots on it as the cosine.
_STRIPE, _DOT = 0.13, 0.98


@dataclasses.dataclass(frozen=True)
class Solid:
    """One body in one frame.

    Attributes:
        kind: ball, capsule (about its z axis), box, disk (cylinder about its z axis with the first half-length),
            ellipsoid, or hull.
        center: center (3,) in m.
        axes: rotation matrix (3, 3) whose columns are the body's axes.
        half_lengths: half-lengths (3,) in m.
        radius: radius in m.
        color: color (3,), linear in light.
        plain: whether it has no marks of its rotation.
        two_faced: whether the +z face of a box is lighter, which makes it visible when the box turns over.
        sides: outward normals and offsets in m (k, 4) of the sides of a hull.
        edges: ends (e, 2, 3) in m of its edges, in the frame of the body.
    """

    kind: str
    center: np.ndarray
    axes: np.ndarray
    half_lengths: np.ndarray
    radius: float
    color: np.ndarray
    plain: bool = False
    two_faced: bool = False
    sides: np.ndarray | None = None
    edges: np.ndarray | None = None

    @property
    def reach(self) -> float:
        """Radius of the smallest sphere about the center that contains the body, in m."""
        return float(np.linalg.norm(self.half_lengths)) + self.radius

    def corners(self) -> np.ndarray:
        """Return points (n, 3) whose convex hull, rounded by the radius, is the body."""
        if self.kind == BALL:
            return self.center[None]
        signs = (
            np.array([[0, 0, -1], [0, 0, 1]]) if self.kind == CAPSULE else np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
        )
        return self.center + (signs * self.half_lengths) @ self.axes.T


def solid(
    center: np.ndarray,
    orientation: np.ndarray,
    half_lengths: np.ndarray,
    radius: float,
    color: np.ndarray,
    disk: float = 0,
    two_faced: bool = False,
    corners: np.ndarray | None = None,
) -> Solid:
    """Return a body to be drawn, with its kind from its dimensions.

    Args:
        center: center (3,) in m.
        orientation: quaternion (4,), w first, of any length above zero.
        half_lengths: half-lengths (3,) in m; all zero for a ball, only the last one nonzero for a capsule.
        radius: radius in m; zero for a box.
        color: color (3,), linear in light.
        disk: 1 for a disk, 2 for an ellipsoid, 3 for the hull of its corners.
        two_faced: as for ``Solid``.
        corners: points (n, 3) in m in the frame of the body.
    """
    if disk == 2:
        return Solid(ELLIPSOID, center, rotation(orientation), half_lengths, 0.0, color)
    if disk == 3 and corners is not None:
        sides, edges = _hull(corners.tobytes(), len(corners))
        return Solid(HULL, center, rotation(orientation), half_lengths, 0.0, color, sides=sides, edges=edges)
    if disk:
        return Solid(DISK, center, rotation(orientation), half_lengths[[0, 0, 2]], 0.0, color)
    if not half_lengths.any():
        kind = BALL
    elif radius > 0 and not half_lengths[:2].any():
        kind = CAPSULE
    else:
        kind, half_lengths, radius = BOX, half_lengths + radius, 0.0
    return Solid(kind, center, rotation(orientation), half_lengths, float(radius), color, two_faced=two_faced)


@functools.lru_cache(maxsize=256)
def _hull(corners: bytes, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sides (k, 4) and edges (e, 2, 3) of the hull of corners (count, 3), given as bytes."""
    points = np.frombuffer(corners).reshape(count, 3)
    hull = ConvexHull(points)
    normals = hull.equations[:, :3]
    edges = []
    for side, others in enumerate(hull.neighbors):
        for place, other in enumerate(others):
            # Triangles of one flat side have no edge between them.
            if side < other and normals[side] @ normals[other] < 1 - 1e-6:
                edges.append(points[np.delete(hull.simplices[side], place)])
    return hull.equations * [1, 1, 1, -1], np.array(edges).reshape(-1, 2, 3)


def rod(ends: np.ndarray, radius: float, color: np.ndarray) -> Solid:
    """Return a thin plain capsule between two points.

    Args:
        ends: end points (2, 3) in m.
        radius: radius in m.
        color: color (3,), linear in light.
    """
    along = ends[1] - ends[0]
    length = float(np.linalg.norm(along))
    axis = along / length if length > 0 else np.array([0.0, 0.0, 1.0])
    # Any two perpendicular axes: a plain round body has no marks.
    across = np.cross(axis, np.eye(3)[np.abs(axis).argmin()])
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(axis, across), axis], axis=1)
    return Solid(CAPSULE, ends.mean(axis=0), axes, np.array([0.0, 0.0, length / 2]), radius, color, plain=True)


def depths(body: Solid, camera: Camera, across: np.ndarray, upward: np.ndarray) -> np.ndarray:
    """Return the depth (rows, columns) at which lines of sight hit a body, infinite where they miss it.

    Args:
        body: the body.
        camera: the camera.
        across: slopes of the columns.
        upward: slopes of the rows.
    """
    origin, (right, up, forward) = _in_body_axes(body, camera)
    line = [forward[k] + right[k] * across + (up[k] * upward)[:, None] for k in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        if body.kind == BOX:
            return _meet_box(origin, line, body.half_lengths)
        if body.kind == DISK:
            return meet_disk(origin, line, body.half_lengths[0], body.half_lengths[2])
        if body.kind == ELLIPSOID:
            scaled = [part / half for part, half in zip(line, body.half_lengths, strict=True)]
            return _meet_ball(origin / body.half_lengths, scaled, 1.0)
        if body.kind == HULL and body.sides is not None:
            return _meet_hull(origin, line, body.sides)
        if body.kind == CAPSULE:
            return _meet_capsule(origin, line, body.half_lengths[2], body.radius)
        return _meet_ball(origin, line, body.radius)


def surface(
    body: Solid, camera: Camera, across: np.ndarray, upward: np.ndarray, depth: np.ndarray, pixel: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points (3, n) on a body, outward normals (3, n), and lightening (n,), negative for darkening.

    Args:
        body: the body.
        camera: the camera.
        across: slopes (n,) of the columns of the lines of sight.
        upward: slopes (n,) of their rows.
        depth: depth (n,) at which they hit the body.
        pixel: size of a pixel at the body in m.
    """
    origin, (right, up, forward) = _in_body_axes(body, camera)
    points = origin[:, None] + depth * (forward[:, None] + right[:, None] * across + up[:, None] * upward)
    if body.kind == BOX:
        normal = _box_normal(points, body.half_lengths)
        pale = np.where(normal[2] > 0, _PALER, 0.0) if body.two_faced else np.zeros(len(depth))
    elif body.kind == DISK:
        normal, pale = disk_surface(points, body.half_lengths[0], body.half_lengths[2], pixel)
    elif body.kind == ELLIPSOID:
        on_ball = points / body.half_lengths[:, None]
        normal = on_ball / body.half_lengths[:, None]
        normal /= np.linalg.norm(normal, axis=0)
        pale = np.zeros(len(depth)) if body.plain else _marks(body, on_ball, pixel)
    elif body.kind == HULL and body.sides is not None:
        nearest = (body.sides[:, :3] @ points - body.sides[:, 3:]).argmax(axis=0)
        normal, pale = body.sides[nearest, :3].T, np.zeros(len(depth))
    else:
        axis = np.clip(points[2], -body.half_lengths[2], body.half_lengths[2])
        normal = np.stack([points[0], points[1], points[2] - axis]) / body.radius
        pale = np.zeros(len(depth)) if body.plain else _marks(body, normal, pixel)
    return body.center[:, None] + body.axes @ points, body.axes @ normal, pale


def _in_body_axes(body: Solid, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return the eye (3,) and the camera's axes (3, 3) in body coordinates."""
    return (camera.eye - body.center) @ body.axes, np.stack([camera.right, camera.up, camera.forward]) @ body.axes


def _meet_ball(origin: np.ndarray, line: list[np.ndarray], radius: float) -> np.ndarray:
    a = line[0] ** 2 + line[1] ** 2 + line[2] ** 2
    b = origin[0] * line[0] + origin[1] * line[1] + origin[2] * line[2]
    inside = b * b - a * (origin @ origin - radius**2)
    return np.where(inside > 0, (-b - np.sqrt(inside)) / a, np.inf)


def _meet_capsule(origin: np.ndarray, line: list[np.ndarray], half: float, radius: float) -> np.ndarray:
    a = line[0] ** 2 + line[1] ** 2
    b = origin[0] * line[0] + origin[1] * line[1]
    inside = b * b - a * (origin[0] ** 2 + origin[1] ** 2 - radius**2)
    depth = (-b - np.sqrt(inside)) / a
    height = origin[2] + depth * line[2]
    # A line that hits the infinite cylinder beyond an end of the axis can only hit the ball at that end.
    end = np.where(np.isnan(height), 0.0, np.clip(height, -half, half))
    a = a + line[2] ** 2
    b = b + (origin[2] - end) * line[2]
    within = b * b - a * (origin[0] ** 2 + origin[1] ** 2 + (origin[2] - end) ** 2 - radius**2)
    ball = np.where(within > 0, (-b - np.sqrt(within)) / a, np.inf)
    return np.where(inside > 0, np.where(np.abs(height) <= half, depth, ball), np.inf)


def _meet_box(origin: np.ndarray, line: list[np.ndarray], half: np.ndarray) -> np.ndarray:
    enter, leave = -np.inf, np.inf
    for k in range(3):
        inverse = 1 / line[k]
        middle, spread = -origin[k] * inverse, half[k] * np.abs(inverse)
        enter, leave = np.maximum(enter, middle - spread), np.minimum(leave, middle + spread)
    return np.where(enter < leave, enter, np.inf)


def _meet_hull(origin: np.ndarray, line: list[np.ndarray], sides: np.ndarray) -> np.ndarray:
    enter, leave = np.full_like(line[0], -np.inf), np.full_like(line[0], np.inf)
    for a, b, c, offset in sides:
        rate = a * line[0] + b * line[1] + c * line[2]
        depth = (offset - (a * origin[0] + b * origin[1] + c * origin[2])) / rate
        enter = np.where(rate < 0, np.maximum(enter, depth), enter)
        leave = np.where(rate > 0, np.minimum(leave, depth), leave)
    return np.where(enter < leave, enter, np.inf)


def _box_normal(points: np.ndarray, half: np.ndarray) -> np.ndarray:
    face = (np.abs(points) - half[:, None]).argmax(axis=0)
    normal, each = np.zeros_like(points), np.arange(points.shape[1])
    normal[face, each] = np.sign(points[face, each])
    return normal


def _marks(body: Solid, normal: np.ndarray, pixel: float) -> np.ndarray:
    """Return the lightening of a round body by its marks: a stripe with two dark dots, or a line on a capsule."""
    blur = pixel / (body.radius or body.half_lengths.min())
    if body.kind == CAPSULE:
        return _PALER * _soft(_STRIPE - np.abs(normal[1]), blur) * (normal[0] > 0)
    stripe = _soft(_STRIPE - np.abs(normal[2]), blur)
    # Divided by the slope of the cosine at the rim of a dot, so that the rim is one pixel wide.
    dot = _soft((np.abs(normal[0] - normal[1]) / 2**0.5 - _DOT) / (1 - _DOT**2) ** 0.5, blur)
    return (1 - dot) * _PALER * stripe - dot * _DARKER


def _soft(inside: np.ndarray, blur: float) -> np.ndarray:
    return np.clip(0.5 + inside / blur, 0.0, 1.0)
