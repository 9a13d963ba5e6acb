"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.bouncing_ball import bouncing_ball

__all__ = ["bouncing_ball"]
