"""Analysis of configurations of particles: order, contacts, elasticity, vibrations."""

from simkit.molecular.analysis.order import bond_order, third_order

__all__ = ["bond_order", "third_order"]
