"""Rigid-body simulation: impacts, friction and rotations that can be differentiated exactly."""

from simkit.rigid.systems.asymmetric_top import asymmetric_top
from simkit.rigid.systems.bouncing_ball import bouncing_ball
from simkit.rigid.systems.heavy_top import heavy_top
from simkit.rigid.systems.projectile import projectile

__all__ = ["asymmetric_top", "bouncing_ball", "heavy_top", "projectile"]
