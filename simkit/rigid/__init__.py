"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.bouncing_ball import bouncing_ball
from simkit.rigid.models import mjcf

__all__ = ["bouncing_ball", "mjcf"]
