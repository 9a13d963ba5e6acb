"""Constraints of a MuJoCo model, with its rules of which geoms touch and how pairs combine their friction."""

import itertools
from typing import Any

import numpy as np

from simkit.rigid.articulated.constraints import CORNERS, SHAPES, Candidates, Constraints
from simkit.rigid.articulated.tree import turned_by
from simkit.rigid.models.source import library

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = 0, 2, 3, 4, 5, 6, 7
UPWARD = np.array([0.0, 0, 1])
# Centers of the ends of a cylinder, and points on a rim relative to that, for a radius and a half length of 1.
ENDS = np.array([[0.0, 0, -1], [0, 0, 1]])
RIM = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
# Most corners of the hull of a mesh, each of which is a contact.
MOST_CORNERS = 64


def constraints_of(model: Any) -> Constraints:
    """Return the constraints of a model, without those that its flags switch off.

    Args:
        model: a `mujoco.MjModel` without parts that the engine lacks.
    """
    bit = library("mujoco").mjtDisableBit
    flags = int(model.opt.disableflags)

    def on(name: str) -> bool:
        return not flags & (int(getattr(bit, f"mjDSBL_{name}")) | int(bit.mjDSBL_CONSTRAINT))

    limited = np.flatnonzero(model.jnt_limited) if on("LIMIT") else np.zeros(0, int)
    rubbing = np.flatnonzero(model.dof_frictionloss > 0) if on("FRICTIONLOSS") else np.zeros(0, int)
    equal = np.flatnonzero(model.eq_active0) if on("EQUALITY") else np.zeros(0, int)
    kinds = model.eq_type[equal]
    points, gears = equal[kinds <= 1], equal[kinds == 2]
    held = [_held(model, index) for index in points]
    joints = np.stack([model.eq_obj1id[gears], model.eq_obj2id[gears]], axis=1).astype(int)
    exists = joints >= 0
    coordinates = np.where(exists, model.jnt_qposadr[joints], 0)
    return Constraints(
        contacts=candidates(model, pairs_that_may_touch(model) if on("CONTACT") else []),
        limited=model.jnt_dofadr[limited],
        coordinate=model.jnt_qposadr[limited],
        limits=model.jnt_range[limited].reshape(-1, 2),
        rubbing=rubbing,
        bodies=np.array([each[0] for each in held], int).reshape(-1, 2),
        anchors=np.array([each[1] for each in held], float).reshape(-1, 2, 3),
        turned=np.flatnonzero(model.eq_type[points] == 1),
        relative=np.array([each[2] for each in held], float).reshape(-1, 4)[model.eq_type[points] == 1],
        gears=np.where(exists, model.jnt_dofadr[joints], -1),
        gear_coordinates=coordinates,
        gear_references=model.qpos0[coordinates],
        polynomial=model.eq_data[gears, :5].reshape(-1, 5),
    )


def _held(model: Any, index: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return bodies, anchors in their frames, and orientation of the second body in the first."""
    data, first, second = model.eq_data[index], int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if int(model.eq_objtype[index]) == int(library("mujoco").mjtObj.mjOBJ_SITE):
        bodies = [int(model.site_bodyid[each]) - 1 for each in (first, second)]
        anchors = model.site_pos[[first, second]]
        # The frames of both sites agree: body2 in body1 is site1 site2^-1.
        inverse = model.site_quat[second] * [1, -1, -1, -1]
        turned = np.zeros(4)
        library("mujoco").mju_mulQuat(turned, model.site_quat[first], inverse)
        return bodies, anchors, turned
    is_weld = int(model.eq_type[index]) == 1
    # Of a weld MuJoCo names the anchor of the second body first.
    anchors = np.stack([data[3:6], data[0:3]]) if is_weld else np.stack([data[0:3], data[3:6]])
    return [first - 1, second - 1], anchors, data[6:10] if is_weld else np.array([1.0, 0, 0, 0])


def pairs_that_may_touch(model: Any) -> list[tuple[int, int, np.ndarray]]:
    """Return pairs of geoms that MuJoCo would let touch, with coefficients of sliding, torsional and rolling friction.

    The coefficients of a pair are the larger ones, or those of the geom of the higher priority; those beyond the number
    of its dimensions (condim) are zero.

    Args:
        model: a `mujoco.MjModel`.
    """
    # Bodies without a joint between them count as one; parent and child do not touch unless the parent is the world.
    one = model.body_weldid[model.geom_bodyid]
    above = model.body_weldid[model.body_parentid[one]]
    filters = not model.opt.disableflags & int(library("mujoco").mjtDisableBit.mjDSBL_FILTERPARENT)
    excluded = {divmod(int(pair), 2**16) for pair in model.exclude_signature}
    able = np.flatnonzero(model.geom_contype | model.geom_conaffinity)

    def kept(friction: np.ndarray, dim: int) -> np.ndarray:
        """Return coefficients without those that a contact of 1, 3, 4 or 6 dimensions does not have."""
        return friction * (dim > np.array([1, 3, 4]))

    listed = {
        (int(a), int(b)): kept(friction[[0, 2, 3]], int(dim))
        for a, b, friction, dim in zip(
            model.pair_geom1, model.pair_geom2, model.pair_friction, model.pair_dim, strict=True
        )
    }
    pairs = [(a, b, friction) for (a, b), friction in listed.items()]
    for a, b in itertools.combinations(able.tolist(), 2):
        bits = (model.geom_contype[a] & model.geom_conaffinity[b]) | (model.geom_contype[b] & model.geom_conaffinity[a])
        related = filters and ((above[a] == one[b] and one[b]) or (above[b] == one[a] and one[a]))
        bodies = int(model.geom_bodyid[a]), int(model.geom_bodyid[b])
        known = (a, b) in listed or (b, a) in listed
        if bits and not known and one[a] != one[b] and not related and not excluded & {bodies, bodies[::-1]}:
            rank = model.geom_priority[[a, b]]
            chosen = [a, b] if rank[0] == rank[1] else [[a, b][int(np.argmax(rank))]]
            pairs.append((a, b, kept(model.geom_friction[chosen].max(axis=0), int(model.geom_condim[chosen].max()))))
    return pairs


def pair_without_rule(model: Any, pairs: list[tuple[int, int, np.ndarray]]) -> tuple[int, int] | None:
    """Return the first pair whose contact the engine has no points for, or None.

    Args:
        model: a `mujoco.MjModel`.
        pairs: as of `pairs_that_may_touch`.
    """
    for a, b, _ in pairs:
        kinds = sorted((int(model.geom_type[a]), int(model.geom_type[b])))
        known = all(kind in SHAPES for kind in kinds) and kinds[1] != PLANE
        corners = [_hull(model, geom) for geom in (a, b) if int(model.geom_type[geom]) == MESH]
        if not known or (kinds[1] > CAPSULE and kinds[0] != PLANE) or any(len(each) > MOST_CORNERS for each in corners):
            return a, b
    return None


def candidates(model: Any, pairs: list[tuple[int, int, np.ndarray]]) -> Candidates:
    """Return the points at which pairs of geoms may touch.

    Args:
        model: a `mujoco.MjModel`.
        pairs: as of `pairs_that_may_touch`.
    """
    on_plane: list[tuple[Any, ...]] = []
    segments: list[tuple[Any, ...]] = []
    rounded: list[tuple[Any, ...]] = []
    rims: list[tuple[Any, ...]] = []
    for a, b, friction in pairs:
        a, b = sorted((a, b), key=lambda geom: int(model.geom_type[geom]))
        first, second = int(model.geom_bodyid[a]) - 1, int(model.geom_bodyid[b]) - 1
        points, radius = _skeleton(model, b)
        if model.geom_type[a] == PLANE:
            normal = turned_by(model.geom_quat[a], UPWARD)
            if model.geom_type[b] in (ELLIPSOID, CYLINDER):
                # The ends of a cylinder are disks; its other points are on their rims.
                size = model.geom_size[b]
                count, half_axes = (1, size) if model.geom_type[b] == ELLIPSOID else (2, size[[0, 0, 0]] * [1, 1, 0])
                rounded += [(len(on_plane) + n, half_axes, model.geom_quat[b]) for n in range(count)]
                axis = turned_by(model.geom_quat[b], UPWARD)
                rims += [(len(on_plane) + n, axis) for n in range(count, len(points))]
            on_plane += [(first, model.geom_pos[a], normal, second, point, radius, friction) for point in points]
        else:
            others, size = _skeleton(model, a)
            segments.append((first, _ends(others), second, _ends(points), size + radius, friction))
    plane, plane_at, plane_normal, point, point_at, point_radius, rubs = _columns(on_plane, 7)
    first, first_ends, second, second_ends, radius, slides = _columns(segments, 6)
    round_points, half_axes, round_frame = _columns(rounded, 3)
    rim, rim_axis = _columns(rims, 2)
    return Candidates(
        plane=plane.astype(int),
        plane_at=plane_at.reshape(-1, 3),
        plane_normal=plane_normal.reshape(-1, 3),
        point=point.astype(int),
        point_at=point_at.reshape(-1, 3),
        point_radius=point_radius,
        round=round_points.astype(int),
        half_axes=half_axes.reshape(-1, 3),
        round_frame=round_frame.reshape(-1, 4),
        rim=rim.astype(int),
        rim_axis=rim_axis.reshape(-1, 3),
        first=first.astype(int),
        first_ends=first_ends.reshape(-1, 2, 3),
        second=second.astype(int),
        second_ends=second_ends.reshape(-1, 2, 3),
        radius=radius,
        friction=np.concatenate([rubs.reshape(-1, 3), slides.reshape(-1, 3)]),
    )


def _columns(rows: list[tuple[Any, ...]], count: int) -> list[np.ndarray]:
    return [np.array([row[n] for row in rows], float) for n in range(count)]


def _ends(points: np.ndarray) -> np.ndarray:
    return points[[0, -1]]


def _skeleton(model: Any, geom: int) -> tuple[np.ndarray, float]:
    """Return the centers of the balls whose hull a geom is, in the frame of its body, and their radius.

    Of an ellipsoid its center; of a cylinder the centers of its ends, then four points on the rim of each.
    """
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == BOX:
        points, radius = CORNERS * size, 0.0
    elif kind == MESH:
        points, radius = _hull(model, geom), 0.0
    elif kind == CAPSULE:
        points, radius = np.array([[0, 0, -size[1]], [0, 0, size[1]]]), float(size[0])
    elif kind == CYLINDER:
        points, radius = np.concatenate([ENDS, *(end + RIM for end in ENDS)]) * size[[0, 0, 1]], 0.0
    elif kind == ELLIPSOID:
        points, radius = np.zeros((1, 3)), 0.0
    else:
        points, radius = np.zeros((1, 3)), float(size[0])
    return model.geom_pos[geom] + np.array([turned_by(model.geom_quat[geom], point) for point in points]), radius


def _hull(model: Any, geom: int) -> np.ndarray:
    """Return the corners of the convex hull of a mesh, by MuJoCo, in the frame of the geom, (n, 3)."""
    mesh = int(model.geom_dataid[geom])
    first = int(model.mesh_graphadr[mesh])
    count = int(model.mesh_graph[first])
    # The numbers of corners and of faces, where the edges of each corner begin, and the indices of the corners.
    corners = model.mesh_graph[first + 2 + count : first + 2 + 2 * count]
    return model.mesh_vert[int(model.mesh_vertadr[mesh]) + corners].astype(float)
