"""Articulated models in MJCF or URDF, simulated by the engines of brax and MuJoCo."""

from simkit.rigid.models.mjcf import mjcf

__all__ = ["mjcf"]
