"""Mechanisms in joint coordinates: trees of bodies connected by joints, as pure functions of coordinates."""

from simkit.rigid.articulated.dynamics import (
    Inertia,
    Kinematics,
    acceleration,
    bias_forces,
    forward_kinematics,
    inertia_of,
    inverse_dynamics,
    jacobian,
    mass_matrix,
)
from simkit.rigid.articulated.tree import Tree, integrate, kinematic_tree

__all__ = [
    "Inertia",
    "Kinematics",
    "Tree",
    "acceleration",
    "bias_forces",
    "forward_kinematics",
    "inertia_of",
    "integrate",
    "inverse_dynamics",
    "jacobian",
    "kinematic_tree",
    "mass_matrix",
]
