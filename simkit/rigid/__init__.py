"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.bouncing_ball import bouncing_ball
from simkit.rigid.systems.billiards_break import billiards_break
from simkit.rigid.systems.newtons_cradle import newtons_cradle

__all__ = ["billiards_break", "bouncing_ball", "newtons_cradle"]
