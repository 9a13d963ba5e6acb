"""Rigid bodies: contact with physical derivatives, joints, and MJCF models."""

from simkit.rigid.algebra.vector import Vector, norm, vector, zeros
from simkit.rigid.bodies.bodies import gather, held, repeat, with_inertia
from simkit.rigid.bodies.motion import Motion, Wrench, motion_of
from simkit.rigid.collision.pairs import contacts
from simkit.rigid.contact.compliant import Compliant
from simkit.rigid.contact.events import Events
from simkit.rigid.contact.forces import Impact, grip_of
from simkit.rigid.contact.impulses import Impulses
from simkit.rigid.description.system import system
from simkit.rigid.free import Free
from simkit.rigid.joints.joint import Joint, attachment, ball, distance, hinge, hinge_angle, slider, weld
from simkit.rigid.joints.loads import damper, motor, servo, speed_motor, spring, torsion_damper, torsion_spring
from simkit.rigid.joints.rattle import Jointed
from simkit.rigid.loads import applied, drag, gravity
from simkit.rigid.models.mjcf import mjcf
from simkit.rigid.parts import PARTS
from simkit.rigid.planes import floor, gather_planes, plane
from simkit.rigid.scene import Load, Scene
from simkit.rigid.shapes.box import box
from simkit.rigid.shapes.capsule import capsule
from simkit.rigid.shapes.compound import compound
from simkit.rigid.shapes.cylinder import cylinder
from simkit.rigid.shapes.disk import disk
from simkit.rigid.shapes.ellipsoid import ellipsoid
from simkit.rigid.shapes.mesh import mesh
from simkit.rigid.shapes.sphere import sphere
from simkit.rigid.simulate import METHODS, simulate
from simkit.rigid.systems.hard_impacts import billiards_break, bouncing_ball
from simkit.rigid.systems.plans_and_identification import steered_puck, system_identification

__all__ = [
    "METHODS",
    "PARTS",
    "Compliant",
    "Events",
    "Free",
    "Impact",
    "Impulses",
    "Joint",
    "Jointed",
    "Load",
    "Motion",
    "Scene",
    "Vector",
    "Wrench",
    "applied",
    "attachment",
    "ball",
    "billiards_break",
    "bouncing_ball",
    "box",
    "capsule",
    "compound",
    "contacts",
    "cylinder",
    "damper",
    "disk",
    "distance",
    "drag",
    "ellipsoid",
    "floor",
    "gather",
    "gather_planes",
    "gravity",
    "grip_of",
    "held",
    "hinge",
    "hinge_angle",
    "mesh",
    "mjcf",
    "motion_of",
    "motor",
    "norm",
    "plane",
    "repeat",
    "servo",
    "simulate",
    "slider",
    "speed_motor",
    "sphere",
    "spring",
    "steered_puck",
    "system",
    "system_identification",
    "torsion_damper",
    "torsion_spring",
    "vector",
    "weld",
    "with_inertia",
    "zeros",
]
