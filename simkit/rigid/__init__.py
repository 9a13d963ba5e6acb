"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.bouncing_ball import bouncing_ball
from simkit.rigid.systems.box_stack import box_stack
from simkit.rigid.systems.falling_pile import falling_pile
from simkit.rigid.systems.rolling_ball import rolling_ball
from simkit.rigid.systems.sliding_block import sliding_block

__all__ = ["bouncing_ball", "box_stack", "falling_pile", "rolling_ball", "sliding_block"]
