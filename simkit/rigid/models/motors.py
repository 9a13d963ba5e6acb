"""Motors at joints by name, for models that have none, such as those in URDF."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from simkit.core.parameter import NOT_NEGATIVE, POSITIVE
from simkit.core.settings import declared, needs, number, word
from simkit.errors import UserError, known
from simkit.rigid.models.source import library


@dataclasses.dataclass(frozen=True)
class Motor:
    """A motor at a joint, whose control is its torque, or the position or velocity that it is to reach.

    The force is ``gain u`` for a torque u, ``gain (u - q) - damping dq/dt`` for a position u, and ``gain (u - dq/dt)``
    for a velocity u.
    """

    drive: str = declared(word("what the control is", ("torque", "position", "velocity"), "torque"))
    gain: float = declared(number("force or torque per control, in N or N m and the joint's units", 1.0, NOT_NEGATIVE))
    damping: float = declared(number("force or torque per velocity, of a position", 0.0, NOT_NEGATIVE))
    limit: float | None = declared(number("largest force in N or torque in N m", None, POSITIVE))


RULES = needs(("damping",), "drive", "position")


def add_motors(spec: Any, motors: Mapping[str, Motor]) -> None:
    """Add motors to a model, behind its own actuators and in their order.

    Args:
        spec: a `mujoco.MjSpec`, changed in place.
        motors: by name of joint.

    Raises:
        UserError: if the model has no such joint, or it is a free or ball joint.
    """
    mujoco = library("mujoco")
    joints, taken = {joint.name: joint for joint in spec.joints}, {actuator.name for actuator in spec.actuators}
    for name, motor in motors.items():
        known(name, [each for each in joints if each], "motors", "joint")
        if joints[name].type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            raise UserError(f"motors.{name}: the joint turns in several ways; drive hinges and sliders only")
        actuator = spec.add_actuator(
            name=f"{name}_motor" if name in taken else name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT
        )
        if motor.drive == "position":
            actuator.set_to_position(kp=motor.gain, kv=motor.damping)
        elif motor.drive == "velocity":
            actuator.set_to_velocity(kv=motor.gain)
        else:
            actuator.set_to_motor()
            actuator.gainprm[0] = motor.gain
        if motor.limit is not None:
            actuator.forcelimited, actuator.forcerange = 1, [-motor.limit, motor.limit]
