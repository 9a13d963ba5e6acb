"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.bouncing_ball import bouncing_ball
from simkit.rigid.systems.double_pendulum import double_pendulum
from simkit.rigid.systems.four_bar_linkage import four_bar_linkage

__all__ = ["bouncing_ball", "double_pendulum", "four_bar_linkage"]
