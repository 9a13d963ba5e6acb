"""Incompressible flow between walls, on a staggered grid."""

from simkit.flow.channel import channel

__all__ = ["channel"]
