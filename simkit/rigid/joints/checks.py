"""Checks of joints before a run, on the host, with concrete numbers."""

import numpy as np

from simkit.errors import UserError
from simkit.rigid.algebra.vector import norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.joints.constraints import Joints, jacobian, place, rates_of, rows_of, violations


def name_of(place: int, joints: Joints) -> str:
    """Return how messages call a joint."""
    joint = joints[place]
    other = "space" if joint.second is None else f"body {joint.second}"
    return f"joint {place} ({joint.kind} of body {joint.first} with {other})"


def check_indices(joints: Joints, count: int) -> None:
    """Refuse joints of bodies that do not exist.

    Args:
        joints: of the scene.
        count: number of bodies.

    Raises:
        UserError: for an index outside 0 to count - 1.
    """
    for index, joint in enumerate(joints):
        for body in (joint.first, joint.second):
            if body is not None and not 0 <= body < count:
                raise UserError(
                    f"{name_of(index, joints)}: there is no body {body}; choose an index in [0, {count - 1}]"
                )


def check_joints(joints: Joints, motion: Motion, bodies: Bodies) -> None:
    """Refuse joints that are open at the start, or about to open.

    Args:
        joints: of the scene.
        motion: at the start.
        bodies: of the scene.

    Raises:
        UserError: for an index that no body has, a length that is not positive, or anchors, orientations or velocities
            that miss what a joint demands by more than a few units of round-off.
    """
    count = motion.position.x.shape[0]
    check_indices(joints, count)
    if not joints:
        return
    for index, joint in enumerate(joints):
        if joint.kind == "distance" and not float(joint.length) > 0:
            raise UserError(
                f"{name_of(index, joints)}: length = {float(joint.length):g} m is not positive; choose one above 0"
            )
    placed = place(joints, motion)
    rows = jacobian(joints, placed, count)
    violation, rate = np.abs(violations(joints, placed)), np.abs(rates_of(rows, motion, bodies))
    size = 1 + float(np.max(norm(placed.lever) + norm(placed.base_lever)))
    speed = float(np.max(norm(motion.velocity))) + size * float(np.max(norm(angular_velocity(motion, bodies))))
    few = np.finfo(violation.dtype).eps ** (2 / 3)
    remedy = "place the bodies so that they meet, with simkit.rigid.joints.assemble for instance"
    start = 0
    for row, places in rows_of(joints):
        unit, what = ("rad", "tilted") if 3 <= row < 6 else ("m", "open")
        for offset, index in enumerate(places):
            here = start + offset
            if not violation[here] <= few * size:
                raise UserError(
                    f"{name_of(index, joints)} is {what} by {violation[here]:g} {unit} at the start, "
                    f"allowed are {few * size:.1g}; {remedy}"
                )
            if not rate[here] <= few * (1 + speed):
                raise UserError(
                    f"{name_of(index, joints)} starts to open at {rate[here]:g} {unit}/s, "
                    f"allowed are {few * (1 + speed):.1g}; give its bodies velocities that agree"
                )
        start += len(places)
