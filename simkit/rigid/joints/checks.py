"""Checks of joints before a run, on the host."""

import numpy as np

from simkit.errors import UserError
from simkit.rigid.algebra.vector import norm
from simkit.rigid.bodies.bodies import Bodies
from simkit.rigid.bodies.motion import Motion, angular_velocity
from simkit.rigid.joints.constraints import Joints, jacobian, place, rates_of, rows_of, violations


def name_of(index: int, joints: Joints) -> str:
    """Return the name of a joint in error messages."""
    joint = joints[index]
    other = "the world" if joint.second is None else f"body {joint.second}"
    return f"joint {index} ({joint.kind} of body {joint.first} with {other})"


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
    """Refuse joints that are open at the start, or whose velocities would open them.

    Args:
        joints: of the scene.
        motion: state at the start.
        bodies: of the scene.

    Raises:
        UserError: for an index that no body has, a length that is not positive, or anchors, orientations or velocities
            that violate a joint by more than a tolerance for round-off.
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
    tolerance = np.finfo(violation.dtype).eps ** (2 / 3)
    remedy = "place the bodies so that it is closed, for instance by simkit.rigid.joints.assemble.assemble"
    start = 0
    for row, indices in rows_of(joints):
        unit, what = ("rad", "tilted") if 3 <= row < 6 else ("m", "open")
        for number, index in enumerate(indices, start=start):
            if not violation[number] <= tolerance * size:
                raise UserError(
                    f"{name_of(index, joints)} is {what} by {violation[number]:g} {unit} at the start, "
                    f"allowed are {tolerance * size:.1g}; {remedy}"
                )
            if not rate[number] <= tolerance * (1 + speed):
                raise UserError(
                    f"{name_of(index, joints)} starts to open at {rate[number]:g} {unit}/s, "
                    f"allowed are {tolerance * (1 + speed):.1g}; give its bodies velocities that keep it closed"
                )
        start += len(indices)
