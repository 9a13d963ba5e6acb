"""Rigid bodies: exact contact, exact gradients, joints, and any MJCF model."""

from simkit.rigid.bodies.bodies import box, capsule, disk, gather, repeat, sphere, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, motion_of
from simkit.rigid.contact.events import Events
from simkit.rigid.free import Free
from simkit.rigid.loads import applied, gravity
from simkit.rigid.planes import floor, plane, together
from simkit.rigid.scene import Load, Scene
from simkit.rigid.simulate import simulate
from simkit.rigid.systems.asymmetric_top import asymmetric_top
from simkit.rigid.systems.billiards_break import billiards_break
from simkit.rigid.systems.bouncing_ball import bouncing_ball
from simkit.rigid.systems.heavy_top import heavy_top
from simkit.rigid.systems.newtons_cradle import newtons_cradle
from simkit.rigid.systems.projectile import projectile
from simkit.rigid.systems.steered_puck import steered_puck
from simkit.rigid.systems.system_identification import system_identification

__all__ = [
    "Events",
    "Free",
    "Load",
    "Motion",
    "Scene",
    "Wrench",
    "applied",
    "asymmetric_top",
    "billiards_break",
    "bouncing_ball",
    "box",
    "capsule",
    "disk",
    "floor",
    "gather",
    "gravity",
    "heavy_top",
    "motion_of",
    "newtons_cradle",
    "plane",
    "projectile",
    "repeat",
    "simulate",
    "sphere",
    "steered_puck",
    "system_identification",
    "together",
    "with_inertia",
]
